package cli

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A crowd is clients that connect, are greeted, and leave, again and again.
type crowd struct {
	served  atomic.Int64
	failed  atomic.Int64
	ending  atomic.Bool
	clients sync.WaitGroup
	mu      sync.Mutex
	errors  []error
}

const errorsKept = 20

func startCrowd(address string, clients int) *crowd {
	l := &crowd{}
	for range clients {
		l.clients.Go(func() {
			for !l.ending.Load() && l.failed.Load() < errorsKept {
				l.once(address)
			}
		})
	}
	return l
}

func (l *crowd) once(address string) {
	if _, err := ask(address); err == nil {
		l.served.Add(1)
		return
	} else {
		l.failed.Add(1)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errors = append(l.errors, err)
	}
}

// awaitServed waits until n more connections were served, or one failed.
func (l *crowd) awaitServed(t *testing.T, n int64) {
	t.Helper()
	goal := l.served.Load() + n
	eventually(t, "clients are served", func() bool { return l.served.Load() >= goal || l.failed.Load() > 0 })
}

func (l *crowd) stop() []error {
	l.ending.Store(true)
	l.clients.Wait()
	return l.errors
}

func (l *crowd) wantNoFailure(t *testing.T) {
	t.Helper()
	for _, err := range l.stop() {
		t.Errorf("after %d connections: %v", l.served.Load(), err)
	}
}
