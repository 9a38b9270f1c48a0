package pick

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNoServer is the error when no server may be picked, or none that was not
// tried already or is full.
var ErrNoServer = errors.New("pick: no server left")

// A Balancer is a Pool with States of its own, for programs that have no event
// loop to keep one in: every method may be called from any goroutine. A pick takes
// no lock and, for callers on different cores, shares no memory that is written.
//
// Turns are exact for each core, as they are for each shard of a balancer: cores
// start one place apart and do not wait for each other. During a slow start a
// timer moves the Pool on; there is no goroutine otherwise.
type Balancer struct {
	*Pool
	states sync.Pool // of *State: the runtime keeps one for each core
	made   atomic.Int64
	born   time.Time
	slow   atomic.Bool // a timer is set
}

// NewBalancer returns a Balancer over the servers of cfg, of which there must be at
// least one.
func NewBalancer(cfg Config) (*Balancer, error) {
	b := &Balancer{Pool: NewPool(), born: time.Now()}
	b.Pool.onRamp = b.ramp
	if err := b.Configure(cfg); err != nil {
		return nil, err
	}
	return b, nil
}

// Configure is [Pool.Configure], except that an empty list of servers is an error:
// a registry that answers "nobody" is more often broken than right.
func (b *Balancer) Configure(cfg Config) error {
	if len(cfg.Servers) == 0 {
		return errors.New("pick: empty list of servers")
	}
	return b.Pool.Configure(cfg)
}

// state borrows a State. A goroutine that is interrupted while it has one keeps
// nobody waiting: the next finds another.
func (b *Balancer) state() *State {
	if st, ok := b.states.Get().(*State); ok {
		return st
	}
	return NewState(int(b.made.Add(1)))
}

// Pick returns the server that is next, or nil if none may be picked. It takes no
// slot: policies that look at sessions need [Balancer.Acquire].
func (b *Balancer) Pick(key uint64) *Server {
	set, st := b.Set(), b.state()
	b.tell(set, st)
	i := set.Pick(st, key, nil)
	b.states.Put(st)
	return set.server(i)
}

// Acquire returns the server that is next with one of its slots taken, or nil if
// all are full. The caller gives the slot back with [Server.Release].
func (b *Balancer) Acquire(key uint64) *Server {
	set, st := b.Set(), b.state()
	b.tell(set, st)
	i := set.Acquire(st, key, nil)
	b.states.Put(st)
	return set.server(i)
}

// server is At, or nil for -1.
func (set *Set) server(i int) *Server {
	if i < 0 {
		return nil
	}
	return set.members[i].Server
}

// tell sets the time of a State if the policy asks for it: a reading of the clock
// costs as much as ten picks.
func (b *Balancer) tell(set *Set, st *State) {
	if set.timed {
		st.Now = b.now()
	}
}

// now is the clock of the Balancer's States.
func (b *Balancer) now() int64 { return int64(time.Since(b.born)) }

// Observe is [Server.Observe] by the Balancer's clock.
func (b *Balancer) Observe(s *Server, connect, firstByte time.Duration) {
	s.Observe(b.now(), connect, firstByte)
}

// Try calls f with one server after another, none twice, until f succeeds, tries
// are used up or no server is left. It returns the server with a slot taken, to be
// given back with [Server.Release] once the session is over, or all errors of f and
// ErrNoServer if there were fewer servers than tries. How long f took is reported
// to the server ([Server.Observe]) as its connect time.
func (b *Balancer) Try(key uint64, tries int, f func(*Server) error) (*Server, error) {
	set := b.Set() // one world for all tries, so that indices keep their meaning
	tried := make([]int, 0, 8)
	var errs []error
	for range tries {
		st := b.state()
		b.tell(set, st)
		i := set.Acquire(st, key, tried)
		b.states.Put(st)
		if i < 0 {
			return nil, errors.Join(append(errs, ErrNoServer)...)
		}
		err := b.attempt(set.At(i), f)
		if err == nil {
			return set.At(i), nil
		}
		tried, errs = append(tried, i), append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// attempt calls f for a server whose slot is taken; it is given back if f fails.
func (b *Balancer) attempt(s *Server, f func(*Server) error) (err error) {
	done := false
	defer func() {
		if !done || err != nil { // also when f panics
			s.Release()
		}
	}()
	began := time.Now()
	err = f(s)
	done = true
	b.Observe(s, time.Since(began), 0)
	return err
}

// ramp keeps the Pool ticking while a slow start is under way.
func (b *Balancer) ramp(step time.Duration) {
	if b.slow.CompareAndSwap(false, true) {
		time.AfterFunc(step, b.tick)
	}
}

func (b *Balancer) tick() {
	b.slow.Store(false)
	b.Tick(time.Now())
	b.notify()
}
