package pick

// LeastConn takes the server with the fewest sessions for its weight (IPVS wlc,
// HAProxy leastconn, nginx least_conn). Ties go in smooth weighted turn, so that an
// idle pool rotates too. A server in slow start is looked at only in as large a
// share of the picks as its ramp has reached: with no sessions it would win them
// all (LBX-01). The cost is one load a server.
func LeastConn(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	return &leastConn{g, g.weights(), newCycle(g.weights())}
}

type leastConn struct {
	group
	ws    []uint64
	cycle *cycle
}

func (l *leastConn) Pick(st *State, _ uint64, tried []int) int {
	if l.equal && !l.ramped && l.open(tried) {
		return l.fewest(st)
	}
	if i := l.leastFor(st, tried, l.ramped); i >= 0 || !l.ramped {
		return i
	}
	return l.leastFor(st, tried, false) // only servers in slow start are left
}

// fewest is the common case: equal weights, nobody can be barred.
func (l *leastConn) fewest(st *State) int {
	best, low, ties := 0, l.members[0].Active(), 0
	for i := range l.members {
		n := l.members[i].active.Load()
		if n < low {
			best, low, ties = i, n, 0
		}
		if n == low {
			ties++
		}
	}
	if ties > 1 {
		return l.inTurn(st, best, nil)
	}
	return best
}

// leastFor is the general case. Loads are compared as products, sessions times
// the other's weight, which is exact and divides nothing.
func (l *leastConn) leastFor(st *State, tried []int, gate bool) int {
	best, ties := -1, 0
	for i := range l.members {
		if l.barred(i, tried) || gate && !l.admits(st, i) {
			continue
		}
		switch {
		case best < 0 || l.busier(best, i):
			best, ties = i, 1
		case !l.busier(i, best):
			ties++
		}
	}
	if ties > 1 {
		return l.inTurn(st, best, tried)
	}
	return best
}

// busier reports whether a has more sessions for its weight than b.
func (l *leastConn) busier(a, b int) bool {
	return uint64(l.members[a].Active())*l.ws[b] > uint64(l.members[b].Active())*l.ws[a]
}

// inTurn returns the next in turn of those that are no busier than best. Others
// may take and give back slots meanwhile, so the walk has an end. Who is in slow
// start was admitted only if it is best itself.
func (l *leastConn) inTurn(st *State, best int, tried []int) int {
	for range 2 * len(l.members) {
		i := l.cycle.next(st)
		if i == best || !l.ramping(i) && !l.busier(i, best) && !l.barred(i, tried) {
			return i
		}
	}
	return best
}

// admits draws whether member i takes part in a pick: always, or in slow start
// with the probability that its ramp has reached.
func (g *group) admits(st *State, i int) bool {
	return !g.ramping(i) || st.below(100) < uint64(g.members[i].Ramp)
}

func (g *group) ramping(i int) bool {
	ramp := g.members[i].Ramp
	return 0 < ramp && ramp < 100
}
