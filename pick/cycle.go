package pick

import "math/bits"

// Turns by weight, without a counter in any server: the order of one cycle is
// computed when a Set is published, and a pick is one load from it. The order is
// smooth, that is, a heavy server's turns are spread over the cycle and not
// clumped. With weights w, total W and n servers there are three cases:
//
//   - n·W is small: the sequence of nginx's smooth weighted round robin (2012),
//     entry by entry.
//   - W is at most cycleCap: each turn of a server has an interval in which it
//     must come, from its ideal begin to its ideal end, and of the turns whose
//     interval has begun the one that ends first is next. This is the proportionate
//     fair schedule of Baruah, Cohen, Plaxton and Varvel (1996); that all fit is
//     Tijdeman's theorem (1980). Each cycle has exactly w_i turns of server i, and
//     no server is ever a whole turn ahead or behind.
//   - W is larger: a cycle of cycleCap places in which each server has the whole
//     part of its share, and the places that remain are spills: they are dealt by
//     a second cycle over the fractional parts, and that by a third. Shares are
//     kept to about one in cycleCap³.
//
// The drift, |turns of i in the first t picks - t·w_i/W|, is under 1 in the second
// case. In the third it is under 1 for each cycle and in practice under 1.5
// together, which the tests hold it to.
//
// Rejected: nginx's rule at pick time (n additions for each pick, state in each
// server), the deadline method (drifts by n/2 turns), gRPC's static stride (lock
// free, but walks over light servers: a thousand steps a pick for weights 1e6, 1,
// 1, ...), Kitex's full sequence (memory grows with W).
type cycle struct {
	length uint64
	order  []int32 // nil: place i is server i
	spill  *cycle  // deals the places marked spillMark
	level  int     // 0 for the cycle itself, 1.. for spills
}

const (
	cycleCap    = 1 << 16
	nginxCap    = 1 << 20 // n·W: about a millisecond of the quadratic rule
	spillLevels = 2
	spillMark   = -1
)

func newCycle(weights []uint64) *cycle { return cycleAt(0, weights) }

func cycleAt(level int, weights []uint64) *cycle {
	ws, total := reduced(weights)
	c := &cycle{level: level}
	switch {
	case total == uint64(len(ws)): // all alike
		c.length = total
		return c
	case total*uint64(len(ws)) <= nginxCap:
		c.order = nginxOrder(ws, total)
	case total <= cycleCap:
		c.order = fairOrder(ws, total)
	default:
		c.order, c.spill = longOrder(level, ws, total)
	}
	c.length = uint64(len(c.order))
	return c
}

// reduced divides the weights by what they have in common. Sums are 64 bits wide:
// a million servers of MaxWeight in hundredths are 2^47 (LBW-07).
func reduced(weights []uint64) (ws []uint64, total uint64) {
	var g uint64
	for _, w := range weights {
		g = gcd(g, w)
	}
	ws = make([]uint64, len(weights))
	for i, w := range weights {
		if w > 0 {
			ws[i] = w / g
		}
		total += ws[i]
	}
	return ws, total
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// next returns the server whose turn it is and moves on. There is no counter that
// could wrap: a position is either in the cycle or brought into it.
func (c *cycle) next(st *State) int {
	i := c.step(&st.pos)
	if i < 0 {
		return c.spill.nextSpill(st)
	}
	return i
}

func (c *cycle) nextSpill(st *State) int {
	i := c.step(&st.spill[c.level-1])
	if i < 0 {
		return c.spill.nextSpill(st)
	}
	return i
}

func (c *cycle) step(pos *uint64) int {
	p := *pos
	if p >= c.length {
		p = c.into(p)
	}
	*pos = p + 1
	if c.order == nil {
		return int(p)
	}
	return int(c.order[p])
}

// into brings a position that is past the end into the cycle: mostly by one, and
// by any amount if it was counted in the longer cycle of another Set.
func (c *cycle) into(p uint64) uint64 {
	if p == c.length {
		return 0
	}
	return p % c.length
}

// nginxOrder is one cycle of smooth weighted round robin: everybody gains their
// weight, the richest is next and pays the total; ties go to the earlier entry.
func nginxOrder(ws []uint64, total uint64) []int32 {
	current := make([]int64, len(ws))
	order := make([]int32, total)
	for t := range order {
		best := 0
		for i, w := range ws {
			current[i] += int64(w)
			if current[i] > current[best] {
				best = i
			}
		}
		current[best] -= int64(total)
		order[t] = int32(best)
	}
	return order
}

// longOrder is the order of a cycle whose total is above cycleCap. The last level
// rounds instead of spilling: what it is wrong by comes once in cycleCap spills
// of spills.
func longOrder(level int, ws []uint64, total uint64) ([]int32, *cycle) {
	if level == spillLevels {
		return fairOrder(apportion(ws, total, cycleCap), cycleCap), nil
	}
	whole := make([]uint64, len(ws)+1)
	rest := make([]uint64, len(ws))
	left := uint64(cycleCap)
	for i, w := range ws {
		whole[i], rest[i] = mulDiv(w, cycleCap, total)
		left -= whole[i]
	}
	whole[len(ws)] = left
	order := fairOrder(whole, cycleCap)
	if left == 0 {
		return order, nil
	}
	for t, i := range order {
		if int(i) == len(ws) {
			order[t] = spillMark
		}
	}
	return order, cycleAt(level+1, narrowed(rest))
}

// mulDiv returns a·b/c and the remainder, for a <= c, over 128 bits.
func mulDiv(a, b, c uint64) (quo, rem uint64) {
	hi, lo := bits.Mul64(a, b)
	return bits.Div64(hi, lo, c)
}

// narrowed drops low bits until the sum of the weights is far from overflow: the
// fractional parts of fractional parts would grow for ever.
func narrowed(ws []uint64) []uint64 {
	var top uint64
	for _, w := range ws {
		top = max(top, w)
	}
	if drop := bits.Len64(top) - 40; drop > 0 {
		for i := range ws {
			ws[i] >>= drop
		}
	}
	return ws
}

// apportion deals places among the weights: whole shares first, then one each to
// the largest remainders (Hamilton 1792). Ties go to the earlier entry. Nobody
// with a weight goes without as long as somebody has more than one.
func apportion(ws []uint64, total, places uint64) []uint64 {
	out := make([]uint64, len(ws))
	rest := make([]uint64, len(ws))
	left := places
	for i, w := range ws {
		out[i], rest[i] = mulDiv(w, places, total)
		left -= out[i]
	}
	for _, i := range largest(rest)[:left] {
		out[i]++
	}
	return lifted(ws, out)
}

// lifted takes a place from the richest for each weight that has none.
func lifted(ws, places []uint64) []uint64 {
	byPlaces := largest(places)
	rich := 0
	for i, w := range ws {
		if w == 0 || places[i] > 0 {
			continue
		}
		for rich < len(byPlaces) && places[byPlaces[rich]] <= 1 {
			rich++
		}
		if rich == len(byPlaces) {
			return places
		}
		places[byPlaces[rich]]--
		places[i]++
	}
	return places
}
