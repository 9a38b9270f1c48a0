package pick

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newBalancer(tb testing.TB, cfg Config) *Balancer {
	tb.Helper()
	b, err := NewBalancer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestBalancerFromManyGoroutines(t *testing.T) {
	b := newBalancer(t, Config{Servers: named(1, 2, 3)})
	var counts [3]atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 6000 {
				s := b.Acquire(0)
				counts[s.Name[0]-'a'].Add(1)
				s.Release()
			}
		})
	}
	wg.Wait()
	for i := range counts {
		// Each State may be in the middle of a cycle; the race detector's sync.Pool
		// drops States at random, which makes more of them.
		if got, want := counts[i].Load(), int64(8000*(i+1)); got < want*9/10 || got > want*11/10 {
			t.Errorf("weight %d got %d of 48000, want about %d", i+1, got, want)
		}
	}
}

func TestBalancerNobody(t *testing.T) {
	if _, err := NewBalancer(Config{}); err == nil {
		t.Error("an empty list is no error")
	}
	b := newBalancer(t, Config{Servers: named(0)})
	if b.Pick(1) != nil || b.Acquire(1) != nil {
		t.Error("a server of weight 0 was picked")
	}
	if _, err := b.Try(1, 3, func(*Server) error { return nil }); !errors.Is(err, ErrNoServer) {
		t.Errorf("Try: %v, want ErrNoServer", err)
	}
	if err := b.Configure(Config{}); err == nil {
		t.Error("Configure with an empty list is no error")
	}
}

func TestTry(t *testing.T) {
	b := newBalancer(t, Config{Servers: named(1, 1, 1)})
	refused := errors.New("refused")
	var asked []*Server
	s, err := b.Try(0, 3, func(s *Server) error {
		if asked = append(asked, s); len(asked) < 3 {
			return refused
		}
		return nil
	})
	if err != nil || s != asked[2] || s.Active() != 1 {
		t.Fatalf("got %v, %v", s, err)
	}
	if asked[0] == asked[1] || asked[1] == asked[2] || asked[0] == asked[2] || asked[0].Active()+asked[1].Active() != 0 {
		t.Errorf("asked %v: want three servers, and the slots of two back", asked)
	}
	s.Release()
	_, err = b.Try(0, 9, func(*Server) error { return refused })
	if !errors.Is(err, refused) || !errors.Is(err, ErrNoServer) {
		t.Errorf("all refuse: %v", err)
	}
}

// A slot comes back from a dial that panics.
func TestTryPanics(t *testing.T) {
	b := newBalancer(t, Config{Servers: named(1)})
	func() {
		defer func() { _ = recover() }()
		_, _ = b.Try(0, 1, func(*Server) error { panic("dial") })
	}()
	if n := b.Servers()[0].Sessions; n != 0 {
		t.Errorf("%d sessions after a panic", n)
	}
}

// A Balancer brings its slow starts to an end by itself.
func TestBalancerTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, Config{SlowStart: time.Minute, Servers: named(100, 100)})
		s := b.Servers()[1].Server
		b.SetUp(s, false)
		b.SetUp(s, true)
		for _, tt := range []struct {
			after time.Duration
			want  float64
		}{{0, 10}, {30*time.Second + 100*time.Millisecond, 50}, {30 * time.Second, 100}} {
			time.Sleep(tt.after) // of the bubble's clock
			synctest.Wait()
			if got := b.Servers()[1].Effective; got < tt.want-1 || got > tt.want+1 {
				t.Errorf("%v later: effective weight %v, want %v", tt.after, got, tt.want)
			}
		}
		synctest.Wait() // no timer is left, or the bubble would not end
	})
}

func TestBalancerLeastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBalancer(t, Config{Policy: LeastTime, Servers: named(1, 1)})
		took := map[string]time.Duration{"a": 50 * time.Millisecond, "b": 5 * time.Millisecond}
		counts := map[string]int{}
		for range 100 {
			s, err := b.Try(0, 1, func(s *Server) error {
				time.Sleep(took[s.Name])
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			counts[s.Name]++
			s.Release()
		}
		if counts["a"] == 0 || counts["a"] > 5 {
			t.Errorf("a is ten times slower: %v", counts)
		}
	})
}

func TestServices(t *testing.T) {
	var lookups atomic.Int64
	fail := errors.New("registry is away")
	var arrived sync.WaitGroup
	s := NewServices(func(name string) (Config, error) {
		lookups.Add(1)
		arrived.Wait() // so that all ask before there is an answer
		switch name {
		case "away":
			return Config{}, fail
		case "empty":
			return Config{}, nil
		}
		return Config{Servers: named(1, 1)}, nil
	})
	balancers := make([]*Balancer, 8)
	arrived.Add(len(balancers))
	var wg sync.WaitGroup
	for i := range balancers {
		wg.Go(func() {
			arrived.Done()
			balancers[i], _ = s.Balancer("db")
		})
	}
	wg.Wait()
	for _, b := range balancers {
		if b == nil || b != balancers[0] || lookups.Load() != 1 {
			t.Fatalf("8 callers at once: %v after %d lookups, want one", balancers, lookups.Load())
		}
	}
	if _, err := s.Balancer("away"); !errors.Is(err, fail) {
		t.Errorf("failed lookup: %v", err)
	}
	if _, err := s.Balancer("empty"); err == nil {
		t.Error("an empty list is no error")
	}
	if _, err := s.Balancer("away"); err == nil || lookups.Load() != 4 {
		t.Errorf("a failure was kept: %d lookups, want 4", lookups.Load())
	}

	held := balancers[0].Acquire(0)
	if err := s.Update("db", Config{Servers: named(1, 1, 1)}); err != nil {
		t.Fatal(err)
	}
	if now, _ := s.Balancer("db"); now != balancers[0] || now.Set().Len() != 3 || held.Active() != 1 {
		t.Errorf("after Update: %d servers, %d sessions", now.Set().Len(), held.Active())
	}
	if err := s.Update("db", Config{}); err == nil || balancers[0].Set().Len() != 3 {
		t.Errorf("Update with an empty list: %v", err)
	}
	if err := s.Update("early", Config{Servers: named(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Balancer("early"); err != nil || lookups.Load() != 4 {
		t.Errorf("updated before it was asked for: %v, %d lookups", err, lookups.Load())
	}
	s.Forget("early")
	if _, err := s.Balancer("early"); err != nil || lookups.Load() != 5 {
		t.Errorf("forgotten: %v, %d lookups, want 5", err, lookups.Load())
	}
}
