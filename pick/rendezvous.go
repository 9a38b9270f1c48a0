package pick

import "math"

// Rendezvous scores each server for a key and takes the best: highest random weight
// (Thaler and Ravishankar 1996), weighted by logarithms (Schindelhauer and
// Schomaker 2005). It needs no table, is perfectly even, and moves only the keys it
// must for any change of servers or weights. The cost is a hash a server.
func Rendezvous(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	r := &rendezvous{placed: newPlaced(g)}
	for _, m := range members {
		r.idents = append(r.idents, m.ident)
		r.inverse = append(r.inverse, 1/float64(m.weight()))
	}
	return r
}

type rendezvous struct {
	placed
	idents  []uint64  // beside each other, and not each with its server
	inverse []float64 // of the weight; +Inf for none
}

func (r *rendezvous) bound(factor float64) Picker {
	b := *r
	b.factor = factor
	return &b
}

func (r *rendezvous) Pick(st *State, key uint64, tried []int) int {
	if key == 0 {
		return r.turns.Pick(st, 0, tried)
	}
	key = mix(key)
	if r.factor != 0 || !r.open(tried) {
		return r.pickPast(key, tried)
	}
	if r.equal {
		return r.highest(key)
	}
	return r.lightest(key, nil, math.Inf(1))
}

// highest is the case of equal weights: the largest hash wins.
func (r *rendezvous) highest(key uint64) int {
	best, high := 0, uint64(0)
	for i, id := range r.idents {
		if h := mix(key ^ id); h > high {
			best, high = i, h
		}
	}
	return best
}

// lightest is the general case: the smallest -ln(u)/weight wins, with u the hash as
// a fraction. room is +Inf where nobody needs to be passed over.
func (r *rendezvous) lightest(key uint64, tried []int, room float64) int {
	best, low := -1, math.Inf(1)
	for i, id := range r.idents {
		u := (float64(mix(key^id)>>11) + 0.5) / (1 << 53)
		// -ln(u) is at least 1-u: most need no logarithm.
		if (1-u)*r.inverse[i] >= low || !math.IsInf(room, 1) && r.skips(i, tried, room) {
			continue
		}
		if score := -math.Log(u) * r.inverse[i]; score < low {
			best, low = i, score
		}
	}
	return best
}

func (r *rendezvous) pickPast(key uint64, tried []int) int {
	room := r.room()
	if i := r.lightest(key, tried, room); i >= 0 || room == 0 {
		return i
	}
	return r.lightest(key, tried, 0) // only those above the bound are left
}
