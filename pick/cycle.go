package pick

import (
	"math/bits"
	"slices"
)

// Turns by weight, without a counter in any server: the order of one cycle is
// computed when a Set is published, and a pick is one load from it. The order is
// smooth, that is, a heavy server's turns are spread over the cycle and not
// clumped. With weights w, their sum W and n servers there are three cases:
//
//   - n·W is small: the sequence of nginx's smooth weighted round robin (2012),
//     entry by entry; unless it drifts by more than maxDrift, as it does for weights
//     like 1, 8, 1024.
//   - W is at most cycleCap: each turn of a server has an interval in which it
//     must come, from its ideal begin to its ideal end, and of the turns whose
//     interval has begun the one that ends first is next. This is the proportionate
//     fair schedule of Baruah, Cohen, Plaxton and Varvel (1996); that all fit is
//     Tijdeman's theorem (1980). Each cycle has exactly w_i turns of server i, and
//     no server is ever a whole turn ahead or behind.
//   - W is larger: the order is not written down but computed for each turn, by a
//     walk down a tree of two-way splits (see tree). It is exact over any length,
//     and no server is more than maxDrift ahead or behind (1.4 is the most that
//     searching found). The price is time that grows with log n.
//
// Rejected: nginx's rule at pick time (n additions for each pick, state in each
// server). The deadline method (drifts by up to n/2 turns). gRPC's static stride
// (walks over light servers: a thousand steps a pick for weights 1e6, 1, 1, ...).
// Kitex's full sequence (memory grows with W). A written cycle of rounded weights,
// with or without a second cycle that deals out the remainders: two or three turns
// of drift, because the order within the written cycle cannot shift.
type cycle struct {
	length uint64  // 0: the cycle is a tree and has no end
	order  []int32 // nil: place i is server i
	tree   tree
}

const (
	maxDrift = 1.5
	cycleCap = 1 << 17 // 512 KiB, and about 10 ms to compute
	nginxCap = 1 << 20 // n·W: about a millisecond of the quadratic rule
)

func newCycle(weights []uint64) *cycle {
	ws, total := reduced(weights)
	n := uint64(len(ws))
	switch {
	case total == n && !slices.Contains(ws, 0): // all alike
		return &cycle{length: total}
	case total > cycleCap:
		return &cycle{tree: newTree(ws)}
	case total <= nginxCap/n:
		if order := nginxOrder(ws, total); order != nil {
			return written(order)
		}
	}
	return written(fairOrder(ws, total))
}

func written(order []int32) *cycle { return &cycle{length: uint64(len(order)), order: order} }

// reduced divides the weights by what they have in common. Sums are 64 bits wide:
// a million servers of MaxWeight in hundredths are 2^47 (LBW-07).
func reduced(weights []uint64) (ws []uint64, total uint64) {
	var g uint64
	for _, w := range weights {
		g = gcd(g, w)
	}
	ws = make([]uint64, len(weights))
	for i, w := range weights {
		if w > 0 {
			ws[i] = w / g
		}
		total += ws[i]
	}
	return ws, total
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// next returns the server whose turn it is and moves on. There is no counter that
// could wrap wrongly: a position is either in the cycle or brought into it.
func (c *cycle) next(st *State) int {
	p := st.pos
	if p >= c.length {
		if c.tree != nil {
			st.pos = p + 1
			return c.tree.at(p)
		}
		p = c.into(p)
	}
	st.pos = p + 1
	if c.order == nil {
		return int(p)
	}
	return int(c.order[p])
}

// into brings a position that is past the end into the cycle: mostly by one, and
// by any amount if it was counted in the longer cycle of another Set.
func (c *cycle) into(p uint64) uint64 {
	if p == c.length {
		return 0
	}
	return p % c.length
}

// nginxOrder is one cycle of smooth weighted round robin: everybody gains their
// weight, the richest is next and pays the total; ties go to the earlier entry.
// It is nil if somebody gets too far ahead or behind, which current weights tell:
// they are the drift, times the total.
func nginxOrder(ws []uint64, total uint64) []int32 {
	most := int64(maxDrift * float64(total))
	current := make([]int64, len(ws))
	order := make([]int32, total)
	for t := range order {
		best := 0
		for i, w := range ws {
			current[i] += int64(w)
			if current[i] > current[best] {
				best = i
			}
		}
		behind := current[best] - int64(ws[best])
		current[best] -= int64(total)
		if behind > most || -current[best] > most {
			return nil
		}
		order[t] = int32(best)
	}
	return order
}

// mulDiv returns a·b/c and the remainder, for a <= c, over 128 bits.
func mulDiv(a, b, c uint64) (quo, rem uint64) {
	hi, lo := bits.Mul64(a, b)
	return bits.Div64(hi, lo, c)
}

// apportion deals places among the weights: whole shares first, then one each to
// the largest remainders (Hamilton 1792). Ties go to the earlier entry. Nobody
// with a weight goes without as long as somebody has more than one.
func apportion(ws []uint64, total, places uint64) []uint64 {
	out := make([]uint64, len(ws))
	rest := make([]uint64, len(ws))
	left := places
	for i, w := range ws {
		out[i], rest[i] = mulDiv(w, places, total)
		left -= out[i]
	}
	for _, i := range largest(rest)[:left] {
		out[i]++
	}
	return lifted(ws, out)
}

// lifted takes a place from the richest for each weight that has none.
func lifted(ws, places []uint64) []uint64 {
	byPlaces := largest(places)
	rich := 0
	for i, w := range ws {
		if w == 0 || places[i] > 0 {
			continue
		}
		for rich < len(byPlaces) && places[byPlaces[rich]] <= 1 {
			rich++
		}
		if rich == len(byPlaces) {
			return places
		}
		places[byPlaces[rich]]--
		places[i]++
	}
	return places
}
