package pick

import (
	"cmp"
	"math/bits"
	"slices"
)

// A tree gives smooth turns for weights whose cycle is too long to write down. It
// is a binary tree with the servers as leaves. Of the turns that come to a node, a
// share goes to its left child, spread as evenly as whole turns can be: after m
// turns the left child has had round(m·share) of them, and the right one the
// rest. So the server of turn m is a pure function of m: nothing is counted
// anywhere, and shares are kept to one in 2^64 for as long as anybody counts.
//
// A node's rounding is off by half a turn at most, and an ancestor's error comes
// down in proportion, so the drift of a server is at most half the sum of
// weight/weight(ancestor-or-self but for the root) over its path. The tree is
// Huffman's (1952), in which weights at least double every other level on the way
// up; that keeps the sum, and with it the drift, small: see drift.
type tree []node

// A node is 16 bytes, so that a path through 1,000 servers is ten cache lines.
type node struct {
	left  uint64   // the left child's share of the turns, in 2^-64ths
	child [2]int32 // right and left: a node further on, or a server as ^index
}

// at returns the server of turn m. It has no branch to mispredict but its end.
func (t tree) at(m uint64) int {
	i := int32(0)
	for i >= 0 {
		n := &t[i]
		had, part := bits.Mul64(m, n.left)
		part, carry := bits.Add64(part, 1<<63, 0)
		had += carry // turns that the left child had before this one
		_, left := bits.Add64(part, n.left, 0)
		m = had&-left | (m-had)&(left-1)
		i = n.child[left&1]
	}
	return int(^i)
}

// newTree builds the tree of at least two weights, none of them 0.
func newTree(ws []uint64) tree {
	nodes := huffman(ws)
	// Nodes were made from the leaves up; a walk goes the other way.
	t := make(tree, 0, len(nodes))
	last := int32(len(nodes) - 1)
	for k := range nodes {
		h := nodes[int(last)-k]
		share, _ := bits.Div64(h.left.weight, 0, h.weight())
		t = append(t, node{share, [2]int32{h.right.place(last), h.left.place(last)}})
	}
	return t
}

// A branch is a leaf (at is ^index) or a node that was made before (at >= 0).
type branch struct {
	weight uint64
	at     int32
}

type join struct{ left, right branch }

func (j join) weight() uint64 { return j.left.weight + j.right.weight }

func (b branch) place(last int32) int32 {
	if b.at < 0 {
		return b.at
	}
	return last - b.at
}

// huffman joins the two lightest branches until one is left. Leaves are sorted
// and joins come out in order of weight, so two queues do for a heap.
func huffman(ws []uint64) []join {
	leaves := make([]branch, 0, len(ws))
	for i, w := range ws {
		if w > 0 {
			leaves = append(leaves, branch{w, ^int32(i)})
		}
	}
	slices.SortStableFunc(leaves, func(a, b branch) int { return cmp.Compare(a.weight, b.weight) })
	joins := make([]join, 0, len(leaves)-1)
	made := 0 // joins that are part of another
	lightest := func() branch {
		if made == len(joins) || len(leaves) > 0 && leaves[0].weight <= joins[made].weight() {
			b := leaves[0]
			leaves = leaves[1:]
			return b
		}
		made++
		return branch{joins[made-1].weight(), int32(made - 1)}
	}
	for len(leaves)+len(joins)-made > 1 {
		light := lightest()
		joins = append(joins, join{left: lightest(), right: light})
	}
	return joins
}

// drift returns the most that any server can be ahead or behind, in turns counted
// from turn 0.
func (t tree) drift() float64 {
	most := 0.0
	var walk func(i int32, above float64)
	walk = func(i int32, above float64) {
		if i < 0 {
			most = max(most, above)
			return
		}
		left := float64(t[i].left) / (1 << 64)
		walk(t[i].child[1], 0.5+left*above)
		walk(t[i].child[0], 0.5+(1-left)*above)
	}
	walk(0, 0)
	return most
}
