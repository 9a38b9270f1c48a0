package leak

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long what a test started may take to go away: closing is
// asynchronous nearly everywhere (goroutines return, pollers pick events up).
const patience = 5 * time.Second

// Check notes what is open now and, when the test and its later cleanups are
// over, fails the test if anything is left that was not there. Call it first:
// cleanups run last in, first out.
func Check(t testing.TB) {
	t.Helper()
	wakeRuntimePoller()
	before := look()
	t.Cleanup(func() {
		if left := settle(before, patience); left != "" {
			t.Errorf("left over after the test:\n%s", left)
		}
	})
}

// The runtime opens its epoll and eventfd descriptors with the first pipe or
// socket and keeps them: they belong in every baseline.
var wakeRuntimePoller = sync.OnceFunc(func() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.Close()
		_ = w.Close()
	}
})

// sight is what was seen at one moment.
type sight struct {
	goroutines  map[string]string // id -> stack
	pollers     int               // netpoll's event loops, which live as long as the process
	descriptors map[string]int    // what /proc/self/fd points to -> how many do
}

func look() sight {
	s := sight{descriptors: descriptors("self")}
	s.goroutines, s.pollers = goroutines()
	return s
}

// settle looks again until nothing is left beyond before, and says what is
// left when the time is over.
func settle(before sight, within time.Duration) string {
	deadline := time.Now().Add(within)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left := look().beyond(before)
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pause)
	}
}

func (now sight) beyond(before sight) string {
	var left strings.Builder
	for id, stack := range now.goroutines {
		if _, old := before.goroutines[id]; !old {
			fmt.Fprintf(&left, "%s\n\n", stack)
		}
	}
	for target, n := range now.descriptors {
		if more := n - before.allowed(target, now.pollers); more > 0 {
			fmt.Fprintf(&left, "%d x descriptor of %s\n", more, target)
		}
	}
	return left.String()
}

// allowed is how many descriptors of a target are no leak. Event loops that
// netpoll has added since own one epoll and one eventfd each; which ones
// cannot be told from outside, so they are counted. An epoll set of ours that
// stays open is still one too many.
func (before sight) allowed(target string, pollers int) int {
	n := before.descriptors[target]
	if target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" {
		n += max(0, pollers-before.pollers)
	}
	return n
}
