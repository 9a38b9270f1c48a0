package pick

// RoundRobin takes the servers in turn; one with weight 2 has two turns, apart
// from each other (see [WeightedRoundRobin], of which this is the usual name).
func RoundRobin(members []Member) Picker { return newTurns(members) }

// WeightedRoundRobin is smooth weighted round robin, the order of nginx (2012):
// weights 5, 1, 1 give a a b a c a a, and each cycle of the sum of the weights has
// exactly as many turns of each as it weighs. See cycle.go for cycles that are too
// long to write down. A pick is one load.
func WeightedRoundRobin(members []Member) Picker { return newTurns(members) }

type turns struct {
	group
	cycle *cycle
	order []int32 // of the cycle
	plain uint64  // the cycle's length if nobody ever needs to be passed over, else 0
}

func newTurns(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	t := turnsOf(g, newCycle(g.weights()))
	return &t
}

func turnsOf(g group, c *cycle) turns {
	t := turns{group: g, cycle: c, order: c.order}
	if !g.guarded {
		t.plain = c.length
	}
	return t
}

func (t *turns) Pick(st *State, _ uint64, tried []int) int {
	p := st.pos
	if p >= t.plain || len(tried) > 0 {
		if p != t.plain || p == 0 || len(tried) > 0 {
			return t.pickPast(st, tried)
		}
		p = 0
	}
	st.pos = p + 1
	if t.order == nil {
		return int(p)
	}
	return int(t.order[p])
}

// pickPast moves on past who is barred. The position moves with it, so the turn
// of a server that is full goes to everybody behind it in turn and not always to
// its neighbour (LBW-09).
func (t *turns) pickPast(st *State, tried []int) int {
	i := 0
	for range len(t.members) + len(tried) {
		if i = t.cycle.next(st); t.open(tried) || !t.barred(i, tried) {
			return i
		}
	}
	return t.anyFrom(i, tried)
}
