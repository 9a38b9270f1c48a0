package pick

import "slices"

// A Set is how things are: which servers may be picked now, and by which rule. It
// never changes; a Pool publishes a new one instead. All methods are safe for
// concurrent use, each goroutine with a State of its own. The zero Set is empty.
//
// Members are ordered by tier: the servers that are used first come first, those
// that stand by for them behind. An index means something in this Set only.
type Set struct {
	Gen   uint64 // counts the Sets of a Pool
	Panic bool   // too few servers are up, so all are in use (Config.PanicThreshold)

	members []Member
	first   Picker // of the upper tier; nil: nobody may be picked
	lower   []tier
	timed   bool // the policy wants to know the time, see State.Now
}

// A tier is a run of members that are used alike, once the tiers above have
// nobody left.
type tier struct {
	base   int // index of its first member in the Set
	picker Picker
}

// Len is the number of servers that may be picked, all tiers together.
func (set *Set) Len() int { return len(set.members) }

// At returns server i of the Set.
func (set *Set) At(i int) *Server { return set.members[i].Server }

// Member returns server i with the weight it has in this Set.
func (set *Set) Member(i int) Member { return set.members[i] }

// Pick returns the index of the server that is next, or -1 if none is left. It
// passes over the indices in tried and over servers that are full, and goes down
// a tier when everybody above is. The hash policies place key; key 0 means that
// there is none, and is spread in turn. Pick takes no slot, no lock, no memory.
func (set *Set) Pick(st *State, key uint64, tried []int) int {
	if set.first == nil {
		return -1
	}
	// The first tier's indices are those of the Set, so tried is good as it is:
	// what it says about lower tiers equals none of them.
	if i := set.first.Pick(st, key, tried); i >= 0 {
		return i
	}
	return set.pickLower(st, key, tried)
}

// pickLower goes through the tiers below the first, each with its own position.
func (set *Set) pickLower(st *State, key uint64, tried []int) int {
	for n, t := range set.lower {
		at := &st.lower[min(n, lowerTiers-1)]
		st.pos, *at = *at, st.pos
		i := t.picker.Pick(st, key, t.local(st, tried))
		st.pos, *at = *at, st.pos
		if i >= 0 {
			return t.base + i
		}
	}
	return -1
}

// local translates tried into the tier's own indices. More than the scratch
// space holds makes it grow, once; the default is two retries.
func (t tier) local(st *State, tried []int) []int {
	st.scratch = st.scratch[:0]
	for _, i := range tried {
		if i >= t.base {
			st.scratch = append(st.scratch, i-t.base)
		}
	}
	return st.scratch
}

// Acquire is Pick and [Server.Acquire] in one: it returns the index of a server
// of which the caller now holds a slot, or -1 if all are tried or full. A server
// that another goroutine filled between the two is passed over.
func (set *Set) Acquire(st *State, key uint64, tried []int) int {
	// Picks see who is full, so a second round means that a slot was lost to
	// somebody else. Few rounds are enough before looking at each server once.
	for range 4 {
		i := set.Pick(st, key, tried)
		if i < 0 {
			return -1
		}
		if set.members[i].Acquire() {
			return i
		}
	}
	for i, m := range set.members {
		if !slices.Contains(tried, i) && m.Acquire() {
			return i
		}
	}
	return -1
}
