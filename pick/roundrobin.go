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
}

func newTurns(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	return &turns{g, newCycle(g.weights())}
}

func (t *turns) Pick(st *State, _ uint64, tried []int) int {
	if t.open(tried) {
		return t.cycle.next(st)
	}
	return t.pickPast(st, tried)
}

// pickPast moves on past who is barred. The position moves with it, so the turn
// of a server that is full goes to everybody behind it in turn and not always to
// its neighbour (LBW-09).
func (t *turns) pickPast(st *State, tried []int) int {
	i := 0
	for range len(t.members) + len(tried) {
		if i = t.cycle.next(st); !t.barred(i, tried) {
			return i
		}
	}
	return t.anyFrom(i, tried)
}
