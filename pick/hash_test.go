package pick

import (
	"math"
	"slices"
	"testing"
)

var hashPolicies = []string{"source_hash", "ring_hash", "rendezvous"}

// mapping returns the names that keys 1..n go to.
func mapping(set *Set, n int) []string {
	st, names := NewStateAt(0), make([]string, n)
	for k := range names {
		names[k] = set.At(set.Pick(st, uint64(k+1), nil)).Name
	}
	return names
}

// A mapping depends on who is there, not on the order or on the way they came
// (LBX-05, LBX-07); who goes takes only their own keys along.
func TestHashMapping(t *testing.T) {
	const keys = 10_000
	for _, name := range hashPolicies {
		for _, weights := range [][]int{repeat(10, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
			cfg := Config{Policy: mustParse(t, name), Servers: named(weights...)}
			forwards := mapping(newPool(t, cfg).Set(), keys)

			backwards := cfg
			backwards.Servers = slices.Clone(cfg.Servers)
			slices.Reverse(backwards.Servers)
			if !slices.Equal(forwards, mapping(newPool(t, backwards).Set(), keys)) {
				t.Errorf("%s: the order of the list changes the mapping", name)
			}

			pool := newPool(t, cfg)
			pool.SetUp(find(t, pool, "e"), false)
			moved := 0
			for k, now := range mapping(pool.Set(), keys) {
				if forwards[k] != "e" && forwards[k] != now {
					moved++
				}
			}
			if limit := map[string]int{"source_hash": keys / 100}[name]; moved > limit {
				t.Errorf("%s %v: without e %d keys of others moved, want %d at most", name, weights, moved, limit)
			}
			pool.SetUp(find(t, pool, "e"), true)
			if !slices.Equal(forwards, mapping(pool.Set(), keys)) {
				t.Errorf("%s: the mapping is another after e came back", name)
			}

			fewer := cfg
			fewer.Servers = cfg.Servers[:9]
			grown := newPool(t, fewer)
			configure(t, grown, cfg)
			if !slices.Equal(forwards, mapping(grown.Set(), keys)) {
				t.Errorf("%s: a server that is added later is hashed differently", name)
			}
		}
	}
}

// No key at all is spread in turn (LBX-09).
func TestHashWithoutKey(t *testing.T) {
	for _, name := range hashPolicies {
		set := newPool(t, Config{Policy: mustParse(t, name), Servers: named(1, 1, 1, 1)}).Set()
		if got := sequence(set, NewStateAt(0), 8); got != "a b c d a b c d" {
			t.Errorf("%s without keys: got %s", name, got)
		}
	}
}

// The same key goes to the same second choice, whoever asks.
func TestHashRetryIsStable(t *testing.T) {
	for _, name := range hashPolicies {
		set := newPool(t, Config{Policy: mustParse(t, name), Servers: named(repeat(8, 1)...)}).Set()
		seconds := map[int]bool{}
		for key := uint64(1); key < 200; key++ {
			first := set.Pick(NewState(1), key, nil)
			a, b := set.Pick(NewState(2), key, []int{first}), set.Pick(NewState(3), key, []int{first})
			if a != b || a == first {
				t.Fatalf("%s, key %d: second choices %d and %d after %d", name, key, a, b, first)
			}
			if first == 0 {
				seconds[a] = true
			}
		}
		if len(seconds) < 4 {
			t.Errorf("%s: the keys of a server that is tried go to %d others only", name, len(seconds))
		}
	}
}

// TestRingAgainstWalk compares the guided search with a walk round the circle, and
// the shares with what 160 points give.
func TestRingAgainstWalk(t *testing.T) {
	r := RingHash(membersOf(1, 2, 1, 1, 3)).(*ring)
	if !slices.IsSorted(r.points) || len(r.points) != 8*ringPoints {
		t.Fatalf("%d points, sorted %v", len(r.points), slices.IsSorted(r.points))
	}
	st := NewStateAt(15)
	for range 20_000 {
		place := st.random()
		want := slices.IndexFunc(r.points, func(p uint64) bool { return p>>rankBits >= place>>rankBits })
		if got := r.clockwise(place); got != max(want, 0) {
			t.Fatalf("place %x: point %d, want %d", place, got, want)
		}
	}
}

func TestRingScale(t *testing.T) {
	r := newRing(newGroup(membersOf(1_000_000, 1, 500_000)))
	if len(r.points) > ringCap || len(r.points) < ringCap/2 {
		t.Errorf("%d points, want at most %d and not less than half", len(r.points), ringCap)
	}
	owners := make([]int, 3)
	for at := range r.points {
		owners[r.owner(at)]++
	}
	if owners[1] != 1 || math.Abs(float64(owners[0])/float64(owners[2])-2) > 0.001 {
		t.Errorf("points %v for weights 1000000, 1, 500000", owners)
	}
}

// TestRendezvousAgainstFormula compares with the textbook's formula for each score.
func TestRendezvousAgainstFormula(t *testing.T) {
	for _, weights := range [][]int{{1, 2, 3, 40, 5}, repeat(7, 4)} {
		ms := membersOf(weights...)
		p, st := Rendezvous(ms), NewStateAt(0)
		for key := uint64(1); key < 5000; key++ {
			want, high := -1, 0.0
			for i, m := range ms {
				u := (float64(mix(mix(key)^m.ident)>>11) + 0.5) / (1 << 53)
				if score := float64(m.Weight) / -math.Log(u); score > high {
					want, high = i, score
				}
			}
			if got := p.Pick(st, key, nil); got != want {
				t.Fatalf("weights %v, key %d: got %d, want %d", weights, key, got, want)
			}
		}
	}
}

// With bounded loads nobody gets more than the factor times the share, rounded up,
// even if all sessions have the same key.
func TestBoundedLoad(t *testing.T) {
	for _, name := range hashPolicies {
		for _, oneKey := range []bool{true, false} {
			weights := []int{1, 2, 3, 4}
			set := newPool(t, Config{Policy: mustParse(t, name), BoundedLoad: 1.25, Servers: named(weights...)}).Set()
			st := NewStateAt(16)
			for n := 1; n <= 1000; n++ {
				key := uint64(n)
				if oneKey {
					key = 99
				}
				i := set.Acquire(st, key, nil)
				bound := int64(math.Ceil(1.25 * float64(n) * float64(weights[i]) / 10))
				if got := set.At(i).Active(); got > bound {
					t.Fatalf("%s: %d of %d sessions on weight %d, want %d at most", name, got, n, weights[i], bound)
				}
			}
		}
	}
}

func TestBoundedLoadKeepsPlaces(t *testing.T) {
	for _, name := range hashPolicies {
		cfg := Config{Policy: mustParse(t, name), Servers: named(repeat(5, 1)...)}
		free := mapping(newPool(t, cfg).Set(), 500)
		cfg.BoundedLoad = 2
		if bounded := mapping(newPool(t, cfg).Set(), 500); !slices.Equal(free, bounded) {
			t.Errorf("%s: an idle pool maps otherwise when loads are bounded", name)
		}
	}
}

// Keys and identities are hashed the same for ever: the values are a contract
// between versions, which must agree where a session belongs.
func TestHashValues(t *testing.T) {
	for s, want := range map[string]uint64{"": 0xf52a15e9a9b5e89b, "10.0.0.1": 0x7fb1b600f0f5c6d3} {
		if got := HashString(s); got != want || got != HashBytes([]byte(s)) {
			t.Errorf("HashString(%q) = %#x, HashBytes %#x, want %#x", s, got, HashBytes([]byte(s)), want)
		}
	}
	if got := identity("a", "10.0.0.1:80"); got != 0x4ad6324b0723d8be {
		t.Errorf("identity = %#x", got)
	}
	if a, b := identity("ab", "c"), identity("a", "bc"); a == b {
		t.Error("ab, c and a, bc have one identity")
	}
}
