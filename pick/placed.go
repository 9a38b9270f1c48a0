package pick

// placed is what the hash policies have in common: keys without a place take
// turns, and loads may be bounded.
type placed struct {
	turns
	weight float64 // of all
	factor float64 // no server above factor times its share; 0: not bounded
}

func newPlaced(g group) placed {
	p := placed{turns: turnsOf(g, newCycle(g.weights()))}
	for _, m := range g.members {
		p.weight += float64(m.weight())
	}
	return p
}

// room is the bound of this moment: how many sessions a server may have for each
// unit of its weight, 0 if it is not bounded. Consistent hashing with bounded loads
// (Mirrokni, Thorup, Zadimoghaddam 2016) in its weighted form. Counting all
// sessions is one load a server; a counter that all shards share would cost each
// session more than that.
func (p *placed) room() float64 {
	if p.factor == 0 {
		return 0
	}
	sessions := int64(1) // the one to be placed
	for _, m := range p.members {
		sessions += m.Active()
	}
	return p.factor * float64(sessions) / p.weight
}

// skips reports whether a pick must pass over member i. One that is below its bound
// by less than a session takes one more, as the bound rounded up allows: so all
// together hold all sessions.
func (p *placed) skips(i int, tried []int, room float64) bool {
	m := p.members[i]
	return p.barred(i, tried) ||
		room > 0 && float64(m.Active()) >= room*float64(m.weight())*(1-1e-12)
}

// scan returns the first member from start on that is not to be passed over. If
// only those above the bound are left, they must do.
func (p *placed) scan(start int, tried []int, room float64) int {
	for k := range p.members {
		i := (start + k) % len(p.members)
		if !p.skips(i, tried, room) {
			return i
		}
	}
	return p.anyFrom(start, tried)
}

// again is the hash of the k-th try to place a key.
func again(key uint64, k int) uint64 { return mix(key + uint64(k)*0x9e3779b97f4a7c15) }
