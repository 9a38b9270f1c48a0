package leak

import (
	"runtime"
	"strings"
)

// A goroutine whose stack names one of these belongs to the machinery below
// the test: it comes and goes, or stays, as it pleases.
var notOurs = []string{
	"os/signal.loop(",
	"os/signal.signal_recv(",
	"runtime.ensureSigM(",
	"runtime.runFinalizers(",
	"runtime.runCleanups(",
	"runtime/pprof.profileWriter(",
	"runtime/trace.Start.",
	"testing.(*T).Run(",
	"testing.(*F).Fuzz(",
	"testing.(*M).",
	"testing.runFuzzing(",
	"testing.tRunner(",
}

const poller = "github.com/cloudwego/netpoll.(*defaultPoll).Wait("

// goroutines returns the stacks of the goroutines that somebody has to end,
// by id (ids are never used twice), and the number of netpoll's event loops.
func goroutines() (stacks map[string]string, pollers int) {
	stacks = make(map[string]string)
	self, _, _ := strings.Cut(allStacks(false), " [")
	for stack := range strings.SplitSeq(strings.TrimSpace(allStacks(true)), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		switch {
		case strings.Contains(stack, poller):
			pollers++
		case id != self && !containsAny(stack, notOurs):
			stacks[id] = stack
		}
	}
	return stacks, pollers
}

func allStacks(all bool) string {
	for size := 64 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, all); n < size {
			return string(buf[:n])
		}
	}
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
