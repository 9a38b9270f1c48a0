package pick

import "math/bits"

// WeightedRandom draws a server with the probability of its weight: a draw in [0,
// sum of weights) falls on one of the intervals that the prefix sums mark (Dubbo's
// random policy). The search for the interval is a binary one within the few
// candidates that a guide table leaves (Chen and Asau 1974). If all weigh the same
// the draw is the index.
func WeightedRandom(members []Member) Picker {
	g := newGroup(members)
	switch {
	case g.idle():
		return nobody{}
	case g.equal:
		return &uniform{g}
	}
	return &weighted{g, newIntervals(g.weights())}
}

type uniform struct{ group }

func (u *uniform) Pick(st *State, _ uint64, tried []int) int {
	if u.open(tried) {
		return int(st.below(uint64(len(u.members))))
	}
	return u.draw(st, tried, func(Member) uint64 { return 1 })
}

type weighted struct {
	group
	intervals intervals
}

func (w *weighted) Pick(st *State, _ uint64, tried []int) int {
	i := w.intervals.draw(st)
	if w.open(tried) || !w.barred(i, tried) {
		return i
	}
	return w.draw(st, tried, Member.weight)
}

// draw is one draw among those who are not barred, in two walks over all.
func (g *group) draw(st *State, tried []int, weight func(Member) uint64) int {
	var total uint64
	for i, m := range g.members {
		if !g.barred(i, tried) {
			total += weight(m)
		}
	}
	at := st.below(total)
	for i, m := range g.members {
		if g.barred(i, tried) {
			continue
		}
		if w := weight(m); at >= w {
			at -= w
		} else {
			return i
		}
	}
	// Nobody is left, or somebody became full between the walks.
	return g.anyFrom(0, tried)
}

// intervals cuts [0, total) into one interval for each weight, in order.
type intervals struct {
	ends  []uint64 // prefix sums: interval i is [ends[i-1], ends[i])
	guide []int32  // for each equal slice of [0, total), the interval its first number is in
	shift uint     // a 64-bit fraction shifted right by this is a slice
}

func newIntervals(ws []uint64) intervals {
	slices := 1 << bits.Len(uint(len(ws)))
	v := intervals{
		ends:  make([]uint64, len(ws)),
		guide: make([]int32, slices+1),
		shift: uint(64 - bits.TrailingZeros(uint(slices))),
	}
	var total uint64
	for i, w := range ws {
		total += w
		v.ends[i] = total
	}
	i := int32(0)
	for s := range slices {
		first, _ := bits.Mul64(uint64(s)<<v.shift, total)
		for v.ends[i] <= first {
			i++
		}
		v.guide[s] = i
	}
	v.guide[slices] = int32(len(ws) - 1)
	return v
}

func (v *intervals) total() uint64 { return v.ends[len(v.ends)-1] }

// draw returns a random interval, each with the probability of its weight.
func (v *intervals) draw(st *State) int { return v.at(st.random()) }

// at returns the interval at a fraction of the total, in 2^-64ths.
func (v *intervals) at(fraction uint64) int {
	point, _ := bits.Mul64(fraction, v.total())
	slice := fraction >> v.shift
	lo, hi := v.guide[slice], v.guide[slice+1]
	for lo < hi {
		mid := (lo + hi) / 2
		if point < v.ends[mid] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return int(lo)
}
