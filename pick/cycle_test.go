package pick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// slowSmooth is nginx's rule as its source has it, with a current weight for each
// server that all picks share: the model for the written cycles.
type slowSmooth struct{ weights, current []int }

func (s *slowSmooth) next() int {
	best, total := -1, 0
	for i, w := range s.weights {
		s.current[i] += w
		total += w
		if best < 0 || s.current[i] > s.current[best] {
			best = i
		}
	}
	s.current[best] -= total
	return best
}

// slowInterleaved is the rule of LVS as the textbook has it.
type slowInterleaved struct {
	weights  []int
	i, level int
}

func (s *slowInterleaved) next() int {
	g, most := 0, 0
	for _, w := range s.weights {
		g, most = int(gcd(uint64(g), uint64(w))), max(most, w)
	}
	for {
		s.i = (s.i + 1) % len(s.weights)
		if s.i == 0 {
			if s.level -= g; s.level <= 0 {
				s.level = most
			}
		}
		if s.weights[s.i] >= s.level {
			return s.i
		}
	}
}

func TestCyclesAgainstSlowModels(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		weights := make([]int, 1+rnd.IntN(12))
		for i := range weights {
			weights[i] = rnd.IntN(20)
		}
		weights[rnd.IntN(len(weights))] = 1 + rnd.IntN(20)
		smooth := &slowSmooth{weights, make([]int, len(weights))}
		lvs := &slowInterleaved{weights: weights, i: -1}
		fast, fastLVS := RoundRobin(membersOf(weights...)), InterleavedWRR(membersOf(weights...))
		st, stLVS := NewStateAt(0), NewStateAt(0)
		for k := range 500 {
			if got, want := fast.Pick(st, 0, nil), smooth.next(); got != want {
				t.Fatalf("smooth %v, pick %d: got %d, want %d", weights, k, got, want)
			}
			if got, want := fastLVS.Pick(stLVS, 0, nil), lvs.next(); got != want {
				t.Fatalf("interleaved %v, pick %d: got %d, want %d", weights, k, got, want)
			}
		}
	}
}

// drift returns the most that any server was ahead of or behind its share in the
// first picks of a cycle.
func drift(c *cycle, weights []uint64, picks int) float64 {
	var total float64
	for _, w := range weights {
		total += float64(w)
	}
	st, counts, worst := NewStateAt(0), make([]int, len(weights)), 0.0
	off := func(i, t int) float64 { return float64(counts[i]) - float64(t)*float64(weights[i])/total }
	for t := 1; t <= picks; t++ {
		i := c.next(st)
		worst = max(worst, -off(i, t-1)) // just before its turn it is furthest behind
		counts[i]++
		worst = max(worst, off(i, t))
		if t%101 == 0 || t == picks {
			for j := range weights {
				worst = max(worst, math.Abs(off(j, t)))
			}
		}
	}
	return worst
}

func TestSmoothDrift(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	kinds := map[string]func(i int) uint64{
		"small":      func(int) uint64 { return 1 + rnd.Uint64N(20) },
		"hundreds":   func(int) uint64 { return 1 + rnd.Uint64N(300) },
		"any":        func(int) uint64 { return 1 + rnd.Uint64N(MaxWeight) },
		"one heavy":  func(i int) uint64 { return 1 + uint64(i%7)/6*3 + uint64(max(0, 1-i))*MaxWeight },
		"nearly all": func(i int) uint64 { return MaxWeight - uint64(i%7) },
		"powers":     func(int) uint64 { return 1 << rnd.Uint64N(20) },
	}
	for kind, weight := range kinds {
		for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 30, 200, 1000} {
			weights := make([]uint64, n)
			for i := range weights {
				weights[i] = weight(i)
			}
			c := newCycle(weights)
			if got := drift(c, weights, 100_000); got > 1.5 {
				t.Errorf("%s, %d servers: drift %.2f, want 1.5 at most (cycle of %d)", kind, n, got, c.length)
			}
			if c.tree != nil && c.tree.drift() > 1.5 {
				t.Errorf("%s, %d servers: the tree may drift by %.2f, want 1.5 at most", kind, n, c.tree.drift())
			}
		}
	}
}

// TestExactCounts holds each written cycle to exactly as many turns of each server
// as it weighs, from any start.
func TestExactCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, most := range []int{1, 3, 20, 130} {
		for _, n := range []int{1, 2, 3, 17, 64, 1000} {
			weights := make([]uint64, n)
			for i := range weights {
				weights[i] = 1 + rnd.Uint64N(uint64(most))
			}
			ws, total := reduced(weights)
			c := newCycle(weights)
			if c.length != total {
				t.Fatalf("%d servers up to %d: cycle of %d, want %d", n, most, c.length, total)
			}
			st, counts := NewState(3), make([]uint64, n)
			for range total {
				counts[c.next(st)]++
			}
			if fmt.Sprint(counts) != fmt.Sprint(ws) {
				t.Errorf("%d servers up to %d: turns %v, want %v", n, most, counts, ws)
			}
		}
	}
}

// TestTreeShares counts what the tree gives over many picks, from far out too.
func TestTreeShares(t *testing.T) {
	weights := []uint64{1_000_000, 999_983, 3, 70_001}
	const total, picks = 2_069_987, 2_069_987
	for _, start := range []uint64{0, 1 << 40, math.MaxUint64 - 1000} {
		c, st, counts := newCycle(weights), NewStateAt(start), make([]uint64, len(weights))
		if c.tree == nil {
			t.Fatal("the cycle is written, want a tree")
		}
		for range picks {
			counts[c.next(st)]++
		}
		for i, n := range counts {
			if n+2 < weights[i] || n > weights[i]+2 {
				t.Errorf("from %d: server %d had %d turns, want %d or 2 off", start, i, n, weights[i])
			}
		}
	}
}

// TestInterleavedLongCycle holds the cycles that are not written down to the exact
// counts of a stretch.
func TestInterleavedLongCycle(t *testing.T) {
	ms := membersOf(1_000_000, 1, 500_000)
	p, st, counts := InterleavedWRR(ms), NewStateAt(0), make([]int, 3)
	if _, ok := p.(*sweeps); !ok {
		t.Fatalf("%T, want sweeps", p)
	}
	for range 1_500_001 {
		counts[p.Pick(st, 0, nil)]++
	}
	if fmt.Sprint(counts) != "[1000000 1 500000]" {
		t.Errorf("got %v", counts)
	}
}

// TestWrap starts each policy just before its counter could wrap, with numbers of
// servers that do not divide it.
func TestWrap(t *testing.T) {
	for _, p := range policies {
		for _, start := range []uint64{1<<31 - 3, 1<<32 - 3, 1<<63 - 3, math.MaxUint64 - 2} {
			for _, n := range []int{3, 5, 7} {
				set := newPool(t, Config{Policy: p.policy, Servers: named(repeat(n, 1)...)}).Set()
				st, counts := NewStateAt(start), make([]int, n)
				for range 12 {
					i := set.Acquire(st, 0, nil)
					if i < 0 || i >= n {
						t.Fatalf("%s of %d from %d: index %d", p.name, n, start, i)
					}
					counts[i]++
				}
				if !inTurn[p.name] {
					continue
				}
				for i, c := range counts {
					if c < 12/n || c > (12+n-1)/n {
						t.Errorf("%s from %d: server %d of %d had %d of 12 turns", p.name, start, i, n, c)
					}
				}
			}
		}
	}
}

// inTurn is which policies go strictly in turn if nobody has a key or differs.
var inTurn = map[string]bool{
	"round_robin": true, "weighted_round_robin": true, "interleaved_wrr": true,
	"least_conn": true, "source_hash": true, "ring_hash": true, "rendezvous": true,
}

// TestStarts: a hundred balancers, or shards, do not all begin on one server, and
// with weights the first pick follows the weights (LBW-11).
func TestStarts(t *testing.T) {
	for weights, want := range map[[4]int][4][2]int{
		{1, 1, 1, 1}: {{10, 40}, {10, 40}, {10, 40}, {10, 40}},
		{7, 1, 1, 1}: {{60, 80}, {5, 20}, {5, 20}, {5, 20}},
	} {
		set := newPool(t, Config{Servers: named(weights[:]...)}).Set()
		var shards, processes [4]int
		seed := mix(7)
		for n := range 100 {
			shards[set.Pick(NewState(n), 0, nil)]++
			seed = mix(seed)
			processes[set.Pick(NewStateAt(seed), 0, nil)]++ // a process begins anywhere
		}
		for i, w := range want {
			if shards[i] < w[0] || shards[i] > w[1] {
				t.Errorf("weights %v: shards first took %v, want %v", weights, shards, want)
			}
			if processes[i] < w[0]-5 || processes[i] > w[1]+10 {
				t.Errorf("weights %v: processes first took %v, want about %v", weights, processes, want)
			}
		}
	}
}

// TestShardsStagger: as many shards as servers begin on one server each.
func TestShardsStagger(t *testing.T) {
	set := newPool(t, Config{Servers: named(repeat(8, 1)...)}).Set()
	seen := map[int]bool{}
	for n := range 8 {
		seen[set.Pick(NewState(n), 0, nil)] = true
	}
	if len(seen) != 8 {
		t.Errorf("8 shards began on %d servers, want 8", len(seen))
	}
}
