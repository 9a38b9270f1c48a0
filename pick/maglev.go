package pick

import "math/bits"

// SourceHash places keys with the lookup table of Maglev (Eisenbud et al. 2016):
// each server claims the slots of a table in an order of its own, turn by turn,
// until all are taken. A pick is one load; the table is even to one slot; when a
// server goes, few keys move but its own. Turns go by weight. The table depends on
// the servers' names and addresses, not on the order of the list.
func SourceHash(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	return &maglev{newPlaced(g), maglevTable(&g)}
}

// maglevPrimes are table sizes. The paper asks for a hundred slots a server, to be
// even to 1 %; with turns by weight and 65,537 slots a thousand servers have 65 or
// 66, which is close, and a table ten times as large would not stay in the cache.
var maglevPrimes = []uint64{65_537, 655_373, 6_553_601}

type maglev struct {
	placed
	table []int32
}

func (m *maglev) bound(factor float64) Picker {
	b := *m
	b.factor = factor
	return &b
}

func (m *maglev) Pick(st *State, key uint64, tried []int) int {
	if key == 0 {
		return m.turns.Pick(st, 0, tried)
	}
	i := m.slot(mix(key))
	if m.factor == 0 && m.open(tried) {
		return i
	}
	return m.pickPast(key, i, tried)
}

func (m *maglev) slot(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(len(m.table)))
	return int(m.table[at])
}

// pickPast hashes again while the place is taken, so that the keys of a full
// server spread over all others by weight.
func (m *maglev) pickPast(key uint64, i int, tried []int) int {
	room := m.room()
	for k := 1; m.skips(i, tried, room); k++ {
		if k > 8+len(tried) {
			return m.scan(i, tried, room)
		}
		i = m.slot(again(key, k))
	}
	return i
}

func maglevTable(g *group) []int32 {
	size := maglevPrimes[0]
	for _, prime := range maglevPrimes {
		size = prime
		if uint64(len(g.members))*50 <= size {
			break
		}
	}
	order := g.byIdentity()
	walks := make([]walk, len(order))
	for k, i := range order {
		id := g.members[i].ident
		walks[k] = walk{at: id % size, skip: mix(id)%(size-1) + 1}
	}
	table := maglevFill(size, walks, maglevTurns(g, order, size))
	for slot, k := range table {
		table[slot] = order[k]
	}
	return table
}

// maglevTurns says who claims a slot at each turn, or is nil if all in turn: a fair
// order with each server's share of the slots. The paper leaves weights open.
func maglevTurns(g *group, order []int32, size uint64) []int32 {
	if g.equal {
		return nil
	}
	ws := make([]uint64, len(order))
	for k, i := range order {
		ws[k] = g.members[i].weight()
	}
	ws, total := reduced(ws)
	return fairOrder(apportion(ws, total, size), size)
}

// A walk is the order in which a server wants the slots of a table of prime size:
// from at on, in steps of skip.
type walk struct{ at, skip uint64 }

// maglevFill returns who has each slot. Time is about size·log(size) steps, nearly
// all onto slots that are taken: those are looked up in a bit set, which fits into
// the innermost cache.
func maglevFill(size uint64, walks []walk, turns []int32) []int32 {
	table := make([]int32, size)
	taken := make([]uint64, size/64+1)
	k := 0
	for n := range table {
		if turns != nil {
			k = int(turns[n])
		}
		w := &walks[k]
		at, skip := w.at, w.skip
		for taken[at/64]>>(at%64)&1 != 0 {
			at = step(at, skip, size)
		}
		taken[at/64] |= 1 << (at % 64)
		table[at] = int32(k)
		w.at = step(at, skip, size)
		if k++; k == len(walks) {
			k = 0
		}
	}
	return table
}

func step(at, skip, size uint64) uint64 {
	if at += skip; at >= size {
		at -= size
	}
	return at
}
