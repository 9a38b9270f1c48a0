package pick

import (
	"math/rand/v2"
	"testing"
	"time"
)

// slowLeast is the rule of least_conn without its speed: those with the smallest
// sessions/weight, exactly.
func slowLeast(set *Set, tried map[int]bool) map[int]bool {
	least := map[int]bool{}
	for i := range set.Len() {
		m := set.Member(i)
		if tried[i] || m.full() {
			continue
		}
		for j := range least {
			o := set.Member(j)
			mine, its := m.Active()*int64(o.Weight), o.Active()*int64(m.Weight)
			if mine < its {
				delete(least, j)
			} else if mine > its {
				least[i] = false
			}
		}
		if _, busier := least[i]; busier {
			delete(least, i)
		} else {
			least[i] = true
		}
	}
	return least
}

func TestLeastConnAgainstSlowModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for round := range 200 {
		servers := named(repeat(1+rnd.IntN(9), 1)...)
		for i := range servers {
			if round%2 == 0 {
				servers[i].Weight = 1 + rnd.IntN(6)
			}
			if round%4 > 1 {
				servers[i].MaxConnections = rnd.IntN(4)
			}
		}
		set, st := newPool(t, Config{Policy: LeastConn, Servers: servers}).Set(), NewState(1)
		var open []int
		for range 100 {
			want := slowLeast(set, nil)
			i := set.Acquire(st, 0, nil)
			if i >= 0 != (len(want) > 0) || i >= 0 && !want[i] {
				t.Fatalf("got %d, want one of %v", i, want)
			}
			if i >= 0 {
				open = append(open, i)
			}
			if len(open) > 0 && rnd.IntN(3) == 0 {
				k := rnd.IntN(len(open))
				set.At(open[k]).Release()
				open[k] = open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
	}
}

// Ties go in turn: an idle pool rotates, and servers that are equally busy share
// what comes, also where one between them is busier.
func TestLeastConnTies(t *testing.T) {
	pool := newPool(t, Config{Policy: LeastConn, Servers: named(1, 1, 1, 1)})
	set, st := pool.Set(), NewStateAt(0)
	if got := sequence(set, st, 8); got != "a b c d a b c d" {
		t.Errorf("idle: got %s", got)
	}
	find(t, pool, "b").Acquire()
	counts := tally(set, st, 300)
	for _, name := range []string{"a", "c", "d"} {
		if n := counts[name]; n < 99 || n > 101 {
			t.Errorf("b busy: got %v, want 100 each", counts)
		}
	}
	weighted := newPool(t, Config{Policy: LeastConn, Servers: named(5, 1, 1)}).Set()
	if got := sequence(weighted, NewStateAt(0), 7); got != "a a b a c a a" {
		t.Errorf("idle, weights 5, 1, 1: got %s", got)
	}
}

// A server that comes back empty gets everything without a slow start; with one its
// share rises (LBX-01). 100 sessions a second, two servers with 100 sessions each.
func TestLeastConnSlowStart(t *testing.T) {
	for _, slow := range []time.Duration{0, 10 * time.Second} {
		pool := newPool(t, Config{Policy: LeastConn, SlowStart: slow, Servers: named(1, 1, 1)})
		back := find(t, pool, "c")
		pool.SetUp(back, false)
		st := NewStateAt(17)
		for range 200 {
			pool.Set().Acquire(st, 0, nil)
		}
		pool.SetUp(back, true)
		began := time.Now()
		var window [5]int64 // sessions that c got in each two seconds
		var early int64     // of the first ten
		for k := range 1000 {
			pool.Tick(began.Add(time.Duration(k) * 10 * time.Millisecond))
			set := pool.Set()
			before := back.Active()
			i := set.Acquire(st, 0, nil)
			window[k/200] += back.Active() - before
			if k < 10 {
				early += back.Active() - before
			}
			if i == -1 {
				t.Fatal("nobody was picked")
			}
		}
		switch {
		case slow > 0 && early > 4:
			t.Errorf("with slow start: c got %d of the first 10, want about one", early)
		case slow == 0 && window[0] < 90:
			t.Errorf("without slow start: c got %v in each 2 s, want nearly all at first", window)
		case slow > 0 && (window[0] < 10 || window[0] > 60 || window[1] <= window[0]):
			t.Errorf("with slow start: c got %v in each 2 s, want a tenth at first and more later", window)
		}
	}
}

func TestLeastTime(t *testing.T) {
	pool := newPool(t, Config{Policy: LeastTime, Servers: named(1, 1, 1)})
	set, st := pool.Set(), NewStateAt(0)
	st.Now = int64(time.Hour)
	a, b, c := set.At(0), set.At(1), set.At(2)

	// Nothing is known: each is asked once, in turn.
	if got := sequence(set, st, 3); got != "a b c" {
		t.Errorf("first picks: %s, want a b c", got)
	}
	a.Observe(st.Now, 10*time.Millisecond, 0)
	b.Observe(st.Now, 2*time.Millisecond, 1*time.Millisecond)
	c.Observe(st.Now, 50*time.Millisecond, 0)
	if got := sequence(set, st, 3); got != "b b b" {
		t.Errorf("b answers in 3 ms, a in 10, c in 50: got %s", got)
	}
	for range 4 {
		b.Acquire()
	}
	if got := sequence(set, st, 1); got != "a" {
		t.Errorf("b has 4 sessions, 15 ms to expect: got %s, want a", got)
	}

	// A peak counts at once, a good answer after it slowly.
	a.Observe(st.Now, time.Second, 0)
	a.Observe(st.Now, time.Millisecond, 0)
	if got := sequence(set, st, 1); got != "b" {
		t.Errorf("a took a second: got %s, want b", got)
	}

	// What was heard fades, and who was not heard of for long is asked once.
	st.Now += int64(9 * time.Second)
	b.Observe(st.Now, 3*time.Millisecond, 0)
	st.Now += int64(2 * time.Second)
	got := map[string]bool{}
	for range 2 {
		got[set.At(set.Pick(st, 0, nil)).Name] = true
	}
	if !got["a"] || !got["c"] {
		t.Errorf("silent for 11 s: asked %v, want a and c", got)
	}
	if e := a.timing.expect(st.Now); e > 0.6e9 {
		t.Errorf("a is still expected to take %v", time.Duration(e))
	}
}

// Of all shards one sends the probe.
func TestLeastTimeProbesOnce(t *testing.T) {
	s := NewServer("a", "a")
	asked := 0
	for range 8 {
		if s.timing.due(int64(time.Minute)) {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d probes, want 1", asked)
	}
}

func TestEWMAWord(t *testing.T) {
	var e ewma
	e.observe(int64(time.Second), 100*time.Millisecond)
	for _, tt := range []struct {
		after time.Duration
		want  float64
	}{{0, 100e6}, {fade, 50e6}, {3 * fade, 25e6}} {
		if got := e.value(int64(time.Second + tt.after)); got < tt.want*0.999 || got > tt.want*1.001 {
			t.Errorf("after %v: %v, want %v", tt.after, got, tt.want)
		}
	}
	if got := e.value(0); got < 99e6 || got > 101e6 {
		t.Errorf("by a clock that is behind: %v, want it undiminished", got)
	}
}

func TestFirstFillsOneAfterAnother(t *testing.T) {
	servers := named(1, 1, 1)
	servers[0].MaxConnections, servers[1].MaxConnections = 2, 1
	set, st := newPool(t, Config{Policy: First, Servers: servers}).Set(), NewState(1)
	want := []int{0, 0, 1, 2, 2, 2}
	for k, w := range want {
		if i := set.Acquire(st, 0, nil); i != w {
			t.Errorf("session %d: got %d, want %d", k, i, w)
		}
	}
	set.At(1).Release()
	if i := set.Acquire(st, 0, nil); i != 1 {
		t.Errorf("after the second server's slot came back: got %d", i)
	}
}
