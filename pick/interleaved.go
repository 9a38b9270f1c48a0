package pick

import (
	"cmp"
	"slices"
	"sort"
)

// InterleavedWRR is the weighted round robin of the Linux Virtual Server (ip_vs_wrr,
// 1999): a level starts at the largest weight and falls by the greatest common
// divisor after each walk over the list; a walk takes everybody whose weight
// reaches the level. Weights 4, 3, 2 give a a b a b c a b c. Counts are exact, the
// order is not smooth: a heavy server's turns come together. It is here for those
// who move from IPVS; [RoundRobin] is better.
//
// If a cycle is too long to write down, each walk goes by falling weight instead
// of by place in the list.
func InterleavedWRR(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	ws, total := reduced(g.weights())
	if total <= cycleCap {
		t := turnsOf(g, written(lvsOrder(ws, total)))
		return &t
	}
	return newSweeps(g, ws, total)
}

// lvsOrder is one cycle for weights without a common divisor. Walks look only at
// who is still in: the list of those shrinks where the level passes a weight.
func lvsOrder(ws []uint64, total uint64) []int32 {
	order := make([]int32, 0, total)
	for level := slices.Max(ws); level > 0; level-- {
		for i, w := range ws {
			if w >= level {
				order = append(order, int32(i))
			}
		}
	}
	return order
}

// sweeps is a cycle of walks by falling weight, so that each walk is a prefix of
// one list, and walks over the same prefix follow each other in one stretch.
type sweeps struct {
	group
	list      []int32 // by falling weight
	stretches []stretch
	total     uint64
}

type stretch struct {
	from uint64 // its first place in the cycle
	walk uint64 // how many of the list each walk takes
}

func newSweeps(g group, ws []uint64, total uint64) *sweeps {
	s := &sweeps{group: g, total: total}
	for i := range ws {
		s.list = append(s.list, int32(i))
	}
	slices.SortStableFunc(s.list, func(a, b int32) int { return cmp.Compare(ws[b], ws[a]) })
	var from uint64
	for k, i := range s.list {
		next := uint64(0)
		if k+1 < len(s.list) {
			next = ws[s.list[k+1]]
		}
		if ws[i] > next {
			s.stretches = append(s.stretches, stretch{from, uint64(k) + 1})
			from += (ws[i] - next) * (uint64(k) + 1)
		}
	}
	return s
}

func (s *sweeps) Pick(st *State, _ uint64, tried []int) int {
	i := 0
	for range len(s.members) + len(tried) + 1 {
		if i = s.next(st); s.open(tried) || !s.barred(i, tried) {
			return i
		}
	}
	return s.anyFrom(i, tried)
}

func (s *sweeps) next(st *State) int {
	p := st.pos % s.total
	st.pos = p + 1
	k := sort.Search(len(s.stretches), func(k int) bool { return s.stretches[k].from > p }) - 1
	at := s.stretches[k]
	return int(s.list[(p-at.from)%at.walk])
}
