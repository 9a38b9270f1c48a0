package pick

import "math"

// LeastConn takes the server with the fewest sessions for its weight (IPVS wlc,
// HAProxy leastconn, nginx least_conn). Ties go in smooth weighted turn, so that an
// idle pool rotates too. A server in slow start takes part only in as large a share
// of the picks as its ramp has reached: with no sessions it would win them all
// (LBX-01). The cost is one load a server.
func LeastConn(members []Member) Picker {
	l := newLoads(members)
	if l.idle() {
		return nobody{}
	}
	c := &leastConn{loads: l, cycle: newCycle(l.ws)}
	for i, s := range l.servers {
		c.paces = append(c.paces, pace{s, 1 / float64(l.ws[i])})
	}
	return c
}

// loads is a group that is compared by sessions for weight.
type loads struct {
	group
	servers []*Server // of the members, close together
	ws      []uint64
}

func newLoads(members []Member) loads {
	g := newGroup(members)
	servers := make([]*Server, len(members))
	for i, m := range members {
		servers[i] = m.Server
	}
	return loads{g, servers, g.weights()}
}

// busier reports whether a has more sessions for its weight than b. The loads are
// compared as products, which is exact and divides nothing.
func (l *loads) busier(a, b int) bool {
	return uint64(l.servers[a].Active())*l.ws[b] > uint64(l.servers[b].Active())*l.ws[a]
}

type leastConn struct {
	loads
	cycle *cycle
	paces []pace // of all, if weights differ
}

// A pace is what a server's load is computed from.
type pace struct {
	server  *Server
	inverse float64 // of the weight
}

func (l *leastConn) Pick(st *State, _ uint64, tried []int) int {
	if l.ramped || !l.open(tried) {
		return l.leastOf(st, tried)
	}
	best, ties := 0, 0
	if l.equal {
		best, ties = l.fewest()
	} else {
		best, ties = l.lightest()
	}
	if ties > 0 {
		return l.inTurn(st, best, nil, false)
	}
	return best
}

// fewest is the usual case: equal weights and nobody to pass over. It returns the
// first of the least busy and how many others are no busier.
func (l *leastConn) fewest() (best, ties int) {
	low := int64(math.MaxInt64)
	for i, s := range l.servers {
		n := s.active.Load()
		if n == low {
			ties++
		}
		if n < low {
			best, low, ties = i, n, 0
		}
	}
	return best, ties
}

// lightest is fewest for weights that differ. It multiplies by the inverse of the
// weight, which is half the work of comparing products, and takes for a tie what
// is equal but for the rounding: two loads that differ do so by more.
func (l *leastConn) lightest() (best, ties int) {
	const rounding = 1e-15
	low, high := math.Inf(1), math.Inf(1)
	for i, p := range l.paces {
		load := float64(p.server.active.Load()) * p.inverse
		if load > high {
			continue
		}
		ties++
		if load < low {
			best, low, high, ties = i, load*(1-rounding), load*(1+rounding), 0
		}
	}
	return best, ties
}

// leastOf is the general case. A server in slow start that wins by its load alone
// has to be admitted, or the least busy of the others is taken.
func (l *leastConn) leastOf(st *State, tried []int) int {
	best, ties := l.scan(tried, false)
	if ties > 0 {
		best = l.inTurn(st, best, tried, false)
	}
	if best < 0 || l.admits(st, best) {
		return best
	}
	other, ties := l.scan(tried, true)
	switch {
	case other < 0 || !l.busier(other, best):
		return best // it was its turn, and turns are by the ramped weight already
	case ties > 0:
		return l.inTurn(st, other, tried, true)
	}
	return other
}

// scan returns the first of the least busy and how many others are no busier, of
// all or only of those that are not in slow start.
func (l *leastConn) scan(tried []int, settled bool) (best, ties int) {
	best = -1
	for i := range l.members {
		if l.barred(i, tried) || settled && l.ramping(i) {
			continue
		}
		switch {
		case best < 0 || l.busier(best, i):
			best, ties = i, 0
		case !l.busier(i, best):
			ties++
		}
	}
	return best, ties
}

// inTurn returns the next in turn of those that are no busier than best. Others
// may take and give back slots meanwhile, so the walk has an end.
func (l *leastConn) inTurn(st *State, best int, tried []int, settled bool) int {
	for range 2 * len(l.members) {
		i := l.cycle.next(st)
		if !l.busier(i, best) && !l.barred(i, tried) && !(settled && l.ramping(i)) {
			return i
		}
	}
	return best
}

// admits draws whether member i takes part in a pick by load: always, or in slow
// start with the probability that its ramp has reached. That limits the new
// sessions of a returning server to a share of the pool's, without a clock or a
// counter that shards would have to share.
func (g *group) admits(st *State, i int) bool {
	return !g.ramping(i) || st.below(100) < uint64(g.members[i].Ramp)
}

func (g *group) ramping(i int) bool {
	ramp := g.members[i].Ramp
	return 0 < ramp && ramp < 100
}
