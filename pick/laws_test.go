package pick

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// sizesOfLaws are the numbers of servers that every law is tried with.
func sizesOfLaws() []int {
	sizes := []int{1000}
	for n := 1; n <= 64; n++ {
		sizes = append(sizes, n)
	}
	return sizes
}

// eachPolicy runs a law for every policy and size, with weights of one kind after
// another, and for the hash policies with bounded loads too.
func eachPolicy(t *testing.T, law func(t *testing.T, cfg Config)) {
	for _, p := range policies {
		for _, bound := range []float64{0, 1.25} {
			cfg := Config{Policy: p.policy, BoundedLoad: bound}
			if bound != 0 && !cfg.hashes() {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", p.name, bound), func(t *testing.T) {
				for _, n := range sizesOfLaws() {
					cfg.Servers = serversOf(n, weightings[n%len(weightings)].weight)
					law(t, cfg)
				}
			})
		}
	}
}

// keyOf is a key for each pick, and every fourth without.
func keyOf(k int) uint64 {
	if k%4 == 3 {
		return 0
	}
	return uint64(k) * 0x9e3779b97f4a7c15
}

// Picks are members. A retry never repeats a server while another is left, and then
// says that none is.
func TestLawRetriesVisitEveryoneOnce(t *testing.T) {
	eachPolicy(t, func(t *testing.T, cfg Config) {
		set, st := newPool(t, cfg).Set(), NewState(2)
		for k := range 50 {
			if i := set.Pick(st, keyOf(k), nil); i < 0 || i >= set.Len() {
				t.Fatalf("%d servers: pick %d is %d", set.Len(), k, i)
			}
		}
		key := keyOf(set.Len())
		var tried []int
		for range min(set.Len(), 40) {
			i := set.Pick(st, key, tried)
			if i < 0 || slices.Contains(tried, i) {
				t.Fatalf("%d servers, tried %v: got %d", set.Len(), tried, i)
			}
			tried = append(tried, i)
		}
		if len(tried) == set.Len() {
			if i := set.Pick(st, key, tried); i != -1 {
				t.Fatalf("%d servers, all tried: got %d, want -1", set.Len(), i)
			}
		}
	})
}

// Everybody fills up exactly, and then nobody is left (LBX-03).
func TestLawFullServersAreLeftAlone(t *testing.T) {
	eachPolicy(t, func(t *testing.T, cfg Config) {
		slots := 0
		for i := range cfg.Servers {
			cfg.Servers[i].MaxConnections = 1 + i%3
			slots += 1 + i%3
		}
		set, st := newPool(t, cfg).Set(), NewState(3)
		for k := range slots {
			i := set.Pick(st, keyOf(k), nil)
			if i < 0 || !set.At(i).Acquire() {
				t.Fatalf("%d servers, %d of %d slots taken: got %d", set.Len(), k, slots, i)
			}
		}
		if i := set.Pick(st, keyOf(1), nil); i != -1 {
			t.Fatalf("%d servers, all full: got %d, want -1", set.Len(), i)
		}
		set.At(set.Len() / 2).Release()
		if i := set.Acquire(st, keyOf(1), nil); i != set.Len()/2 {
			t.Fatalf("%d servers, slot free at %d: got %d", set.Len(), set.Len()/2, i)
		}
	})
}

// Weight 0 takes nothing; all of them 0 is an answer (LBW-03, LBW-05), from a Pool
// and from Members built by hand.
func TestLawWeightZero(t *testing.T) {
	for _, p := range policies {
		for _, weights := range [][]int{{1, 0}, {0, 1}, {0, 0, 1}, {1, 0, 0}, {0, 5, 0}, {0, 7, 0, 7}, {0, 0, 0}, {0}, {}} {
			set := newPool(t, Config{Policy: p.policy, Servers: named(weights...)}).Set()
			picker, st := p.policy(membersOf(weights...)), NewState(4)
			total := 0
			for _, w := range weights {
				total += w
			}
			for k := range 1000 {
				i := set.Pick(st, keyOf(k), nil)
				if (i < 0) != (total == 0) {
					t.Fatalf("%s %v: pool picked %d", p.name, weights, i)
				}
				if i = picker.Pick(st, keyOf(k), nil); total == 0 && i != -1 || total > 0 && weights[i] == 0 {
					t.Fatalf("%s %v: picked %d", p.name, weights, i)
				}
			}
		}
	}
}

// One server is always the one (LBW-15), whatever a second that is down does.
func TestLawSingleServer(t *testing.T) {
	for _, p := range policies {
		pool := newPool(t, Config{Policy: p.policy, Servers: named(3, 3)})
		pool.SetUp(find(t, pool, "b"), false)
		st := NewState(5)
		for k := range 1000 {
			if i := pool.Set().Pick(st, keyOf(k), nil); i != 0 {
				t.Fatalf("%s: got %d", p.name, i)
			}
		}
	}
}

func TestLawNoAllocation(t *testing.T) {
	for _, p := range policies {
		for _, bound := range []float64{0, 1.25} {
			cfg := Config{Policy: p.policy, BoundedLoad: bound, Servers: serversOf(50, smallWeights)}
			if bound != 0 && !cfg.hashes() {
				continue
			}
			for i := range cfg.Servers {
				cfg.Servers[i].MaxConnections = i % 2 * 100
				cfg.Servers[i].Backup = i > 30
			}
			set, st, key := newPool(t, cfg).Set(), NewState(6), uint64(0)
			tried := []int{3, 1, 33}
			if n := testing.AllocsPerRun(200, func() {
				key++
				set.Pick(st, key, nil)
				set.Pick(st, key, tried)
				set.At(set.Acquire(st, key, tried)).Release()
			}); n != 0 {
				t.Errorf("%s: %v allocations a pick, want 0", p.name, n)
			}
		}
	}
}

// Weights count: over many keys, sessions that end at once and idle servers, each
// policy that weighs gives a server its share.
func TestLawSharesFollowWeights(t *testing.T) {
	const picks = 60_000
	for _, p := range policies {
		if p.name == "random" || p.name == "first" || p.name == "least_time" {
			continue
		}
		set := newPool(t, Config{Policy: p.policy, Servers: named(1, 2, 3, 4)}).Set()
		counts := tally(set, NewStateAt(9), picks)
		tolerance := 0.06
		if p.name == "ring_hash" {
			tolerance = 0.25 // of a few hundred points
		}
		for i := range 4 {
			want := float64(picks) * float64(i+1) / 10
			if got := float64(counts[letter(i)]); math.Abs(got-want) > want*tolerance {
				t.Errorf("%s: weight %d got %v of %d, want %v", p.name, i+1, got, picks, want)
			}
		}
	}
}

// A position survives a change of membership: nobody starts over.
func TestLawPositionSurvives(t *testing.T) {
	pool := newPool(t, Config{Servers: named(1, 1, 1, 1)})
	st := NewStateAt(0)
	sequence(pool.Set(), st, 2)
	configure(t, pool, Config{Servers: named(1, 1, 1, 1, 1)})
	if got := sequence(pool.Set(), st, 3); got != "c d e" {
		t.Errorf("after a b and a fifth server: got %s, want c d e", got)
	}
}

// The neighbour of a server that is down, or full, does not get its turns (LBW-09).
func TestLawNeighbourIsSpared(t *testing.T) {
	down := newPool(t, Config{Servers: named(1, 1, 1, 1)})
	down.SetUp(find(t, down, "b"), false)
	full := newPool(t, Config{Servers: []ServerConfig{
		{Addr: "a", Weight: 1}, {Addr: "b", Weight: 1, MaxConnections: 1}, {Addr: "c", Weight: 1}, {Addr: "d", Weight: 1},
	}})
	find(t, full, "b").Acquire()
	for _, pool := range []*Pool{down, full} {
		counts := tally(pool.Set(), NewStateAt(0), 3000)
		for name, want := range map[string]int{"a": 1000, "b": 0, "c": 1000, "d": 1000} {
			if got := counts[name]; got < want-1 || got > want+1 {
				t.Errorf("server %s got %d of 3000, want %d", name, got, want)
			}
		}
	}
}
