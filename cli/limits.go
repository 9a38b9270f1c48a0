package cli

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"sluice/conf"
)

// limits are what this process can carry, derived from the configuration and from what the kernel allows.
type limits struct {
	shards      int
	descriptors int
	sessions    int // what the descriptors carry
	pipes       int
}

// descriptorLimit raises the soft limit of descriptors to the hard limit and returns it.
func descriptorLimit() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 1024
	}
	if r.Cur < r.Max {
		if r.Cur = r.Max; unix.Setrlimit(unix.RLIMIT_NOFILE, &r) != nil {
			unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
		}
	}
	return int(min(r.Cur, 1<<30))
}

// What descriptors are needed for beside the sessions.
const (
	baseDescriptors  = 32 // standard streams, logs, netpoll, the runtime
	shardDescriptors = 5  // epoll, eventfd, timerfd; netpoll's epoll and eventfd
	checksAtOnce     = 512
)

// limitsFor divides the descriptors. Sessions take two each; pipes take two each and are only borrowed, so few are
// enough, and a stream that gets none is copied.
func limitsFor(cfg *conf.Config) (limits, error) {
	l := limits{shards: cfg.Process.Shards, descriptors: descriptorLimit()}
	if l.shards == 0 {
		// Go counts the CPUs of the affinity mask, and the cgroup's quota.
		l.shards = min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	}
	l.pipes = min(max(l.descriptors/200, 8), 1024)
	binds := 0
	for _, listener := range cfg.Listeners {
		binds += len(listener.Bind)
	}
	other := baseDescriptors + l.shards*(shardDescriptors+binds) + min(checksAtOnce, checked(cfg)) + 2*l.pipes
	l.sessions = (l.descriptors - other) / 2
	if l.sessions < 1 {
		return l, fmt.Errorf("%d descriptors (RLIMIT_NOFILE) carry no session beside %d of our own: raise the limit, or use fewer shards or listeners", l.descriptors, other)
	}
	return l, nil
}

// maxConnections is how many sessions cfg allows, which may change with every reload: what it says, as far as the
// descriptors go.
func (l limits) maxConnections(cfg *conf.Config) int {
	if n := cfg.Process.MaxConnections; n > 0 {
		return min(n, l.sessions)
	}
	return l.sessions
}

// checked counts the servers that have an active check.
func checked(cfg *conf.Config) int {
	n := 0
	for _, p := range cfg.Pools {
		if p.Check != nil {
			n += len(p.Servers)
		}
	}
	return n
}

// args are the limits as log attributes.
func (l limits) args(cfg *conf.Config) []any {
	return []any{"max_connections", l.maxConnections(cfg), "descriptors", l.descriptors, "shards", l.shards, "pipes", l.pipes,
		"somaxconn", sysctl("net/core/somaxconn")}
}

func sysctl(name string) string {
	text, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
