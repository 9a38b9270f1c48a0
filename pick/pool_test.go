package pick

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server that is removed while it has sessions and comes back is the same one, so
// its count does not go below zero (LIM-01).
func TestCountsSurviveRemoval(t *testing.T) {
	both := Config{Policy: LeastConn, Servers: named(1, 1)}
	one := both
	one.Servers = both.Servers[1:]
	pool := newPool(t, both)
	a := find(t, pool, "a")
	for range 10 {
		a.Acquire()
	}
	configure(t, pool, one)
	if s := pool.Servers(); len(s) != 2 || !s[1].Removed || s[1].Sessions != 10 || pool.Set().Len() != 1 {
		t.Fatalf("after removal: %+v", s)
	}
	configure(t, pool, both)
	if find(t, pool, "a") != a {
		t.Fatal("a came back as another Server")
	}
	for range 10 {
		a.Release()
	}
	st := NewState(1)
	for range 20 {
		pool.Set().Acquire(st, 0, nil)
	}
	if n := a.Active(); n != 10 {
		t.Errorf("a has %d of 20 sessions, want 10", n)
	}
	for range 10 {
		a.Release()
	}
	configure(t, pool, one)
	if s := pool.Servers(); len(s) != 1 {
		t.Errorf("a is gone and idle, but still known: %+v", s)
	}
}

// A changed address is another server, even under the same name.
func TestNewAddressIsNewServer(t *testing.T) {
	pool := newPool(t, Config{Servers: named(1)})
	a := find(t, pool, "a")
	made := 0
	configure(t, pool, Config{
		Servers: []ServerConfig{{Name: "a", Addr: "elsewhere:1", Weight: 1}},
		OnNew:   func(s *Server) { s.Data, made = "mine", made+1 },
	})
	if now := pool.Set().At(0); now == a || now.Data != "mine" || made != 1 {
		t.Errorf("got %v, OnNew called %d times", now, made)
	}
}

// What was changed at run time stays, unless the file changes that very value.
func TestRunTimeChangesSurviveConfigure(t *testing.T) {
	cfg := Config{Servers: named(10, 10)}
	pool := newPool(t, cfg)
	a := find(t, pool, "a")
	pool.SetWeight(a, 20)
	pool.SetState(a, Drain)
	status := func() string { s := pool.Servers()[0]; return fmt.Sprint(s.Weight, s.Operator) }

	configure(t, pool, cfg)
	if got := status(); got != "20 drain" {
		t.Errorf("same file: got %s, want 20 drain", got)
	}
	cfg.Servers = named(11, 10)
	configure(t, pool, cfg)
	if got := status(); got != "11 drain" {
		t.Errorf("file says 11: got %s, want 11 drain", got)
	}
	cfg.Servers[0].State = Maint
	configure(t, pool, cfg)
	cfg.Servers[0].State = Ready
	configure(t, pool, cfg)
	if got := status(); got != "11 ready" {
		t.Errorf("file says maint, then ready: got %s, want 11 ready", got)
	}
}

func TestWeightChangeAtRunTime(t *testing.T) {
	for _, policy := range []Policy{RoundRobin, WeightedRoundRobin, InterleavedWRR} {
		pool := newPool(t, Config{Policy: policy, Servers: named(10, 10)})
		a, st := find(t, pool, "a"), NewStateAt(0)
		for _, tt := range []struct{ weight, want, off int }{{10, 30, 0}, {20, 40, 1}, {10, 30, 1}, {1, 5, 1}} {
			pool.SetWeight(a, tt.weight)
			if n := tally(pool.Set(), st, 60)["a"]; n < tt.want-tt.off || n > tt.want+1+tt.off {
				t.Errorf("weight %d beside 10: %d of 60, want %d", tt.weight, n, tt.want)
			}
		}
	}
}

// TestLimits is nginx's table of max_conns (LIM-05): how many of so many sessions
// at once each server gets.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name     string
		servers  []ServerConfig
		sessions int
		want     string
	}{
		{"one limit 3", []ServerConfig{{Name: "a", Addr: "x", Weight: 1, MaxConnections: 3}}, 4, "map[-:1 a:3]"},
		{"1 and 1", []ServerConfig{{Name: "a", Addr: "x", Weight: 1, MaxConnections: 1}, {Name: "b", Addr: "y", Weight: 1, MaxConnections: 1}}, 4, "map[-:2 a:1 b:1]"},
		{"1 and none", []ServerConfig{{Name: "a", Addr: "x", Weight: 1, MaxConnections: 1}, {Name: "b", Addr: "y", Weight: 1}}, 4, "map[a:1 b:3]"},
		{"heavy but 1", []ServerConfig{{Name: "a", Addr: "x", Weight: 2, MaxConnections: 1}, {Name: "b", Addr: "y", Weight: 1}}, 4, "map[a:1 b:3]"},
		{"one address twice", []ServerConfig{{Name: "a", Addr: "x", Weight: 1, MaxConnections: 1}, {Name: "b", Addr: "x", Weight: 1, MaxConnections: 1}, {Name: "c", Addr: "y", Weight: 1}}, 6, "map[a:1 b:1 c:4]"},
		{"backup after 2", []ServerConfig{{Name: "a", Addr: "x", Weight: 1, MaxConnections: 2}, {Name: "b", Addr: "y", Weight: 1, Backup: true}}, 5, "map[a:2 b:3]"},
	} {
		for _, policy := range []Policy{RoundRobin, LeastConn} {
			set, st, counts := newPool(t, Config{Policy: policy, Servers: tt.servers}).Set(), NewState(1), map[string]int{}
			for range tt.sessions {
				if i := set.Acquire(st, 0, nil); i >= 0 {
					counts[set.At(i).Name]++
				} else {
					counts["-"]++
				}
			}
			if got := fmt.Sprint(counts); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
	}
}

// In a rush nobody is ever one over, and all slots come back (LIM-03, LIM-07).
func TestLimitIsExact(t *testing.T) {
	servers := named(1, 1)
	servers[0].MaxConnections, servers[1].MaxConnections = 5, 3
	pool := newPool(t, Config{Policy: TwoChoices, Servers: servers})
	var over sync.Map
	rush := func(shard int) {
		st := NewState(shard)
		for range 2000 {
			set := pool.Set()
			i := set.Acquire(st, 0, nil)
			if i < 0 {
				continue
			}
			if s := set.At(i); s.Active() > s.Limit() {
				over.Store(s.Name, s.Active())
			}
			set.At(i).Release()
		}
	}
	var wg sync.WaitGroup
	for shard := range 16 {
		wg.Go(func() { rush(shard) })
	}
	wg.Wait()
	over.Range(func(name, n any) bool { t.Errorf("%v had %v sessions", name, n); return true })
	for _, s := range pool.Servers() {
		if s.Sessions != 0 {
			t.Errorf("%s has %d sessions at the end", s.Name, s.Sessions)
		}
	}
}

// A Server keeps its limit itself, whatever picks have seen.
func TestServerKeepsItsLimit(t *testing.T) {
	s := NewServer("a", "a")
	s.limit.Store(3)
	var taken sync.Map
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			if s.Acquire() {
				taken.Store(n, true)
			}
		})
	}
	wg.Wait()
	got := 0
	taken.Range(func(any, any) bool { got++; return true })
	if got != 3 || s.Active() != 3 || s.Acquire() {
		t.Errorf("%d of 16 got a slot, %d are out; want 3", got, s.Active())
	}
	s.Release()
	if !s.Acquire() || s.Acquire() {
		t.Error("one slot came back: want one more, and not two")
	}
}

func TestReleaseWithoutAcquirePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewServer("a", "a").Release()
}

func TestTiers(t *testing.T) {
	servers := named(1, 1, 1, 1, 1)
	servers[0].Backup = true
	servers[1].Priority, servers[2].Priority = 2, 2
	servers[3].Priority = 1
	servers[4].Priority = 1 // order of use: d e, then b c, then a
	pool := newPool(t, Config{Servers: servers})
	st := NewStateAt(0)
	if got := sequence(pool.Set(), st, 3); got != "d e d" {
		t.Errorf("all up: got %s, want d e d", got)
	}
	pool.SetUp(find(t, pool, "d"), false)
	if got := sequence(pool.Set(), st, 2); got != "e e" {
		t.Errorf("d down: got %s, want e e", got)
	}
	pool.SetEjected(find(t, pool, "e"), true)
	if got := sequence(pool.Set(), NewStateAt(0), 3); got != "b c b" {
		t.Errorf("d down, e ejected: got %s, want b c b", got)
	}
	pool.SetState(find(t, pool, "b"), Drain)
	pool.SetState(find(t, pool, "c"), Maint)
	if got := sequence(pool.Set(), st, 2); got != "a a" {
		t.Errorf("backup only: got %s, want a a", got)
	}
	pool.SetWeight(find(t, pool, "a"), 0)
	if got := sequence(pool.Set(), st, 1); got != "-" || pool.Set().Len() != 0 {
		t.Errorf("nobody: got %s", got)
	}
	pool.SetUp(find(t, pool, "d"), true)
	if got := sequence(pool.Set(), st, 1); got != "d" {
		t.Errorf("d back: got %s", got)
	}
}

// A session that has tried all of a tier goes on below, in turn there too.
func TestTriedGoesDownATier(t *testing.T) {
	servers := named(1, 1, 1, 1)
	servers[2].Backup, servers[3].Backup = true, true
	set, st := newPool(t, Config{Servers: servers}).Set(), NewStateAt(0)
	for k, want := range []int{2, 3, 2, 3} {
		if i := set.Pick(st, 0, []int{1, 0}); i != want {
			t.Errorf("pick %d after a and b: got %d, want %d", k, i, want)
		}
	}
	if i := set.Pick(st, 0, []int{1, 2, 0}); i != 3 {
		t.Errorf("after a, b, c: got %d, want 3", i)
	}
	if i := set.Pick(st, 0, []int{3, 1, 2, 0}); i != -1 {
		t.Errorf("after all: got %d, want -1", i)
	}
}

func TestPanicThreshold(t *testing.T) {
	servers := named(1, 1, 1, 1, 1)
	servers[4].State = Drain
	pool := newPool(t, Config{PanicThreshold: 0.5, Servers: servers})
	for k, want := range []struct {
		len   int
		panic bool
	}{{3, false}, {2, false}, {4, true}, {4, true}} {
		pool.SetUp(find(t, pool, letter(k)), false)
		if set := pool.Set(); set.Len() != want.len || set.Panic != want.panic {
			t.Errorf("%d of 4 down: %d in use, panic %v; want %+v", k+1, set.Len(), set.Panic, want)
		}
	}
	pool.SetUp(find(t, pool, "a"), true)
	pool.SetUp(find(t, pool, "b"), true)
	if set := pool.Set(); set.Len() != 2 || set.Panic {
		t.Errorf("2 of 4 up again: %d in use, panic %v", set.Len(), set.Panic)
	}
}

// A returning server gets some at once, more later, and its share at the end
// (LBX-11). Two servers of weight 1, 100 sessions a second, ten seconds.
func TestSlowStart(t *testing.T) {
	for _, name := range []string{"round_robin", "weighted_round_robin", "interleaved_wrr", "weighted_random", "two_choices", "least_conn", "source_hash", "ring_hash", "rendezvous"} {
		pool := newPool(t, Config{Policy: mustParse(t, name), SlowStart: 10 * time.Second, Servers: named(1, 1)})
		if e := pool.Servers()[1].Effective; e != 1 {
			t.Errorf("%s: weight %v at the start of the process, want 1", name, e)
		}
		b := find(t, pool, "b")
		pool.SetUp(b, false)
		pool.SetUp(b, true)
		began, st := time.Now(), NewStateAt(18)
		var window [7]int
		for k := range 1400 {
			pool.Tick(began.Add(time.Duration(k) * 10 * time.Millisecond))
			i := pool.Set().Acquire(st, uint64(k+1)*0x9e3779b97f4a7c15, nil)
			if pool.Set().At(i) == b {
				window[k/200]++
			}
			pool.Set().At(i).Release()
		}
		if window[0] < 5 || window[0] > 60 || window[4] <= window[0]+20 {
			t.Errorf("%s: b got %v of 200 in each 2 s, want a tenth of its share at first, rising", name, window)
		}
		if last := window[6]; last < 90-10 || last > 110+10 {
			t.Errorf("%s: b got %d of 200 after its slow start, want 100", name, last)
		}
		if pool.Tick(began.Add(20*time.Second)) || pool.Servers()[1].Effective != 1 {
			t.Errorf("%s: the ramp has no end", name)
		}
	}
}

// New servers ramp up, those of the first configuration do not; neither does one
// whose first check succeeds.
func TestWhoStartsSlowly(t *testing.T) {
	servers := named(10, 10, 10)
	servers[1].Initial = Checking
	pool := newPool(t, Config{SlowStart: time.Minute, Servers: servers[:2]})
	if pool.Set().Len() != 1 {
		t.Fatal("a server that is being checked is in use")
	}
	pool.SetUp(find(t, pool, "b"), true)
	configure(t, pool, Config{SlowStart: time.Minute, Servers: servers})
	var got []string
	for _, s := range pool.Servers() {
		got = append(got, fmt.Sprint(s.Name, s.Effective))
	}
	if strings.Join(got, " ") != "a10 b10 c1" {
		t.Errorf("effective weights %v, want a10 b10 c1", got)
	}
}

func TestConfigureRefusesAll(t *testing.T) {
	pool := newPool(t, Config{Servers: named(1, 1)})
	before := pool.Set()
	err := pool.Configure(Config{
		PanicThreshold: 2, SlowStart: -1, BoundedLoad: 0.5,
		Servers: []ServerConfig{
			{Addr: "a", Weight: -1}, {Addr: "a", Weight: 1 << 31}, {Name: "n", Weight: 1}, {Addr: "c", MaxConnections: -1}, {Addr: "d", State: 9}, {Addr: "e", Initial: Ejected},
		},
	})
	if err == nil || pool.Set() != before {
		t.Fatalf("error %v, set replaced %v", err, pool.Set() != before)
	}
	for _, part := range []string{"panic threshold 2", "slow start", "bounded load 0.5", "only the hash policies", "used twice", "weight -1", "weight 2147483648", "no address", "max connections -1", "operator state 9", "initial state ejected"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not tell of %q: %v", part, err)
		}
	}
}

// The largest weights make the largest sums; nothing wraps (LBW-07).
func TestLargestWeights(t *testing.T) {
	for _, p := range policies {
		pool := newPool(t, Config{Policy: p.policy, Servers: named(MaxWeight, MaxWeight, MaxWeight-1)})
		counts := tally(pool.Set(), NewState(1), 3000)
		if p.name == "first" || p.name == "least_time" {
			continue
		}
		for i := range 3 {
			if n := counts[letter(i)]; n < 650 || n > 1350 {
				t.Errorf("%s: %v of 3000, want about 1000 each", p.name, counts)
			}
		}
	}
}

// An old Set goes on working while the Pool moves on, so one session sees one world.
func TestOldSetsStay(t *testing.T) {
	pool := newPool(t, Config{Servers: named(1, 1, 1)})
	old, st := pool.Set(), NewStateAt(0)
	configure(t, pool, Config{Servers: named(1)})
	if got := sequence(old, st, 3); got != "a b c" || pool.Set().Gen <= old.Gen {
		t.Errorf("old set: %s, generations %d and %d", got, old.Gen, pool.Set().Gen)
	}
}
