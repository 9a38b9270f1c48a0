package pick

// TwoChoices draws two servers by weight and takes the one with fewer sessions for
// its weight: the power of two choices (Mitzenmacher 1996; HAProxy's and Kitex's
// default kin). It is nearly as even as [LeastConn] at a constant cost, and many
// balancers that see only their own sessions do not all run to one server.
func TwoChoices(members []Member) Picker {
	l := newLoads(members)
	if l.idle() {
		return nobody{}
	}
	c := &twoChoices{loads: l}
	if !l.equal {
		c.intervals = newIntervals(l.ws)
	}
	return c
}

type twoChoices struct {
	loads
	intervals intervals // if not all weigh the same
}

func (c *twoChoices) Pick(st *State, _ uint64, tried []int) int {
	if !c.open(tried) || c.ramped || len(c.members) == 1 {
		return c.pickAmong(st, tried)
	}
	a, b := c.two(st)
	if c.busier(a, b) {
		return b
	}
	return a
}

// two draws two servers. With equal weights they differ; with others they are
// drawn anew a few times, for one server may weigh nearly everything.
func (c *twoChoices) two(st *State) (a, b int) {
	if c.equal {
		n := uint64(len(c.members))
		a, b = int(st.below(n)), int(st.below(n-1))
		if b >= a {
			b++
		}
		return a, b
	}
	a = c.intervals.draw(st)
	for range 3 {
		if b = c.intervals.draw(st); b != a {
			break
		}
	}
	return a, b
}

// pickAmong is the choice among those who are not barred, in walks over all.
func (c *twoChoices) pickAmong(st *State, tried []int) int {
	a := c.draw(st, tried, Member.weight)
	if a < 0 {
		return -1
	}
	b := a
	for k := 0; k < 3 && b == a; k++ {
		if b = c.draw(st, tried, Member.weight); b < 0 {
			return a
		}
	}
	// Whoever has just returned would win by load each time it is drawn.
	switch {
	case c.busier(a, b) && c.admits(st, b), c.busier(b, a) && !c.admits(st, a):
		return b
	}
	return a
}
