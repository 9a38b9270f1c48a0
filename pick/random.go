package pick

import "math/bits"

// Random draws any server with the same probability; weights do not count, but
// for weight 0.
func Random(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	return &uniform{g}
}

// WeightedRandom draws a server with the probability of its weight: a draw in [0,
// sum of weights) falls on one of the intervals that the prefix sums mark (as in
// Dubbo's random policy). The search for it is a binary one among the few
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
	i := int(st.below(uint64(len(u.members))))
	if u.open(tried) || !u.barred(i, tried) {
		return i
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
		w := weight(m)
		if at < w {
			return i
		}
		at -= w
	}
	// Nobody is left, or somebody became full between the walks.
	return g.anyFrom(0, tried)
}

// intervals cuts [0, total) into one interval for each weight, in order.
type intervals struct {
	ends  []uint64 // prefix sums: interval i is [ends[i-1], ends[i])
	guide []int32  // for each slice of [0, total), the interval that its first number is in
	shift uint     // a 64-bit fraction shifted right by this is a slice
}

func newIntervals(ws []uint64) intervals {
	slices := 4 << bits.Len(uint(len(ws))) // most lie within one interval
	v := intervals{
		ends:  make([]uint64, len(ws)),
		guide: make([]int32, slices+1),
		shift: uint(64 - bits.TrailingZeros(uint(slices))),
	}
	var total uint64
	last := int32(0) // that has a weight (apache/dubbo#14124)
	for i, w := range ws {
		total += w
		v.ends[i] = total
		if w > 0 {
			last = int32(i)
		}
	}
	i := int32(0)
	for s := range slices {
		first, _ := bits.Mul64(uint64(s)<<v.shift, total)
		for v.ends[i] <= first {
			i++
		}
		v.guide[s] = i
	}
	v.guide[slices] = last
	return v
}

// draw returns a random interval, each with the probability of its weight.
func (v *intervals) draw(st *State) int {
	fraction := st.random()
	point, _ := bits.Mul64(fraction, v.ends[len(v.ends)-1])
	return v.find(point, fraction>>v.shift)
}

// find returns the interval that a point in [0, total) lies in, given its slice.
func (v *intervals) find(point, slice uint64) int {
	lo, hi := v.guide[slice], v.guide[slice+1]
	for lo < hi { // hardly ever
		mid := int32(uint32(lo+hi) / 2)
		if point < v.ends[mid] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return int(lo)
}
