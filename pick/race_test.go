package pick

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestPickWhilePoolChanges has 8 shards open and close sessions while 4 goroutines
// change everything about the Pool. It is for the race detector, and for the counts
// at the end.
func TestPickWhilePoolChanges(t *testing.T) {
	for _, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			cfg := Config{Policy: p.policy, SlowStart: time.Millisecond, Servers: serversOf(12, smallWeights)}
			for i := range cfg.Servers {
				cfg.Servers[i].MaxConnections = i % 3 * 2
				cfg.Servers[i].Backup = i > 9
			}
			pool := newPool(t, cfg)
			var shards, changers sync.WaitGroup
			var stop atomic.Bool
			for n := range 4 {
				changers.Go(func() { changeUntil(t, &stop, pool, cfg, n) })
			}
			for n := range 8 {
				shards.Go(func() { pickFor(t, 300, pool, NewState(n)) })
			}
			shards.Wait()
			stop.Store(true)
			changers.Wait()
			for _, s := range pool.Servers() {
				if s.Sessions != 0 {
					t.Errorf("%s has %d sessions at the end", s.Name, s.Sessions)
				}
			}
		})
	}
}

func pickFor(t *testing.T, sessions int, pool *Pool, st *State) {
	for k := range sessions {
		set := pool.Set()
		st.Now += 1e6
		i := set.Acquire(st, keyOf(k), nil)
		if i < 0 {
			continue
		}
		j := set.Acquire(st, keyOf(k), []int{i})
		if i == j {
			t.Error("a tried server was picked")
		}
		if j >= 0 {
			set.At(j).Observe(st.Now, time.Duration(k), time.Millisecond)
			set.At(j).Release()
		}
		set.At(i).Release()
	}
}

// changeUntil flaps, drains, weighs and replaces servers.
func changeUntil(t *testing.T, stop *atomic.Bool, pool *Pool, cfg Config, n int) {
	for k := n; !stop.Load(); k++ {
		s := pool.Servers()[k%len(cfg.Servers)].Server
		switch k % 7 {
		case 0, 1:
			pool.SetUp(s, k%2 == 0)
		case 2:
			pool.SetEjected(s, k%4 == 0)
		case 3:
			pool.SetState(s, OperatorState(k%3))
		case 4:
			pool.SetWeight(s, k%20)
		case 5:
			pool.Tick(time.Now())
		case 6:
			other := cfg
			other.Servers = append([]ServerConfig{{Addr: fmt.Sprint("new", k%5), Weight: 1}}, cfg.Servers...)
			if err := pool.Configure(other); err != nil {
				t.Error(err)
			}
		}
	}
}
