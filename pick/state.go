package pick

import (
	"math/bits"
	"math/rand/v2"
)

// A State is where one user of a Pool is: the turn it is at and its random
// numbers. It survives every Set, so a change of membership does not send
// everybody back to the first server.
//
// A State is used by one goroutine at a time and with one Pool: two Pools that
// share a State would take turns at each other's expense (alternate between two
// pools of two servers, and each sees only even turns). It is padded, so States
// of different goroutines may lie next to each other.
type State struct {
	// Now is the time in nanoseconds on any clock that does not run backwards,
	// set by the owner as often as it likes (an event loop: once a turn). Only
	// least_time reads it; picks never read a clock.
	Now int64

	pos   uint64             // next place in the cycle; brought into range at use
	lower [lowerTiers]uint64 // pos of the tiers below the first
	rng   uint64

	scratch []int // tried, as a lower tier counts; capacity made by newState
	_       [64]byte
}

const lowerTiers = 3 // with a position of their own; tiers below share the last

// processStart is where this process begins: balancers that are started together
// must not march in step (envoyproxy/envoy#3271, grpc/proposal A58). Half the
// range, so that adding a shard's number does not wrap.
var processStart = rand.Uint64() >> 1

// NewState returns the State of shard n. Shards start one place apart and
// processes anywhere, so k shards or k processes do not all begin on the same
// server; with weights, the first pick follows the weights.
func NewState(n int) *State {
	return newState(processStart+uint64(n), mix(processStart^mix(uint64(n)+1)))
}

// NewStateAt returns the State that is the same in every process: turns begin at
// place pos, random numbers follow from pos. It is for tests, simulations and
// dumps; servers that all start so hit the same server first.
func NewStateAt(pos uint64) *State { return newState(pos, mix(pos+1)) }

func newState(pos, seed uint64) *State {
	st := &State{pos: pos, rng: seed, scratch: make([]int, 0, 32)}
	for i := range st.lower {
		st.lower[i] = pos
	}
	return st
}

// random returns 64 random bits: SplitMix64 (Steele, Lea, Flood 2014). It is not
// for secrets; a client that could predict it would gain a choice of server.
func (st *State) random() uint64 {
	st.rng += 0x9e3779b97f4a7c15
	return mix(st.rng)
}

// below returns a random number in [0, n): the high half of a product instead of
// a division (Lemire 2019). The bias is under n/2^64 and not corrected.
func (st *State) below(n uint64) uint64 {
	hi, _ := bits.Mul64(st.random(), n)
	return hi
}
