package l4

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/leak"
	peers "sluice/internal/peer"
	"sluice/pick"
)

// A path is one way through a balancer: how bytes move, and over what kinds of sockets.
type path struct {
	mode           Splice
	listen, server string // peers.V4, peers.V6 or peers.Unix
}

var modeNames = [...]string{SpliceAuto: "auto", SpliceOff: "off", SpliceAlways: "always"}

func (p path) String() string {
	return modeNames[p.mode] + "_" + kindOf(p.listen) + "_" + kindOf(p.server)
}

func kindOf(where string) string {
	switch where {
	case peers.V6:
		return "tcp6"
	case peers.Unix:
		return "unix"
	}
	return "tcp"
}

func (p path) unixClient() bool { return p.listen == peers.Unix }
func (p path) unixServer() bool { return p.server == peers.Unix }

// clientReset is how a session ends whose client, all bytes read, resets: a unix socket knows no resets, only ends.
func (p path) clientReset() Reason {
	if p.unixClient() {
		return Normal
	}
	return ClientReset
}

// forEachMode runs a test over TCP in every splice mode: the bytes and the ends must be the same.
func forEachMode(t *testing.T, test func(t *testing.T, p path)) {
	runPaths(t, test, []path{{listen: peers.V4, server: peers.V4}})
}

// forEachPath runs it over TCP and unix sockets on either side too.
func forEachPath(t *testing.T, test func(t *testing.T, p path)) {
	runPaths(t, test, []path{
		{listen: peers.V4, server: peers.V4}, {listen: peers.V6, server: peers.V6}, {listen: peers.V4, server: peers.Unix},
		{listen: peers.Unix, server: peers.V4}, {listen: peers.Unix, server: peers.Unix},
	})
}

func runPaths(t *testing.T, test func(t *testing.T, p path), paths []path) {
	for _, p := range paths {
		for _, p.mode = range []Splice{SpliceAuto, SpliceOff, SpliceAlways} {
			t.Run(p.String(), func(t *testing.T) {
				leak.Check(t)
				test(t, p)
			})
		}
	}
}

// A balancer is a whole Server under test, with one service "s".
type balancer struct {
	*Server
	t    testing.TB
	addr string
	stop func() error // cuts what is left, waits for Run

	mu      sync.Mutex
	list    []Ended
	changed chan struct{}
}

// limit is how long a test waits for something that has to happen.
const limit = 30 * time.Second

// An option changes a configuration before it is used.
type option func(*Config, *Service)

// configure makes a configuration with one service over path p. Servers are tried in their order.
func configure(t testing.TB, p path, servers []string, options ...option) Config {
	svc := &Service{Name: "s", Bind: []string{bindFor(t, p.listen)}, Pool: poolOf(t, servers...), IdleTimeout: time.Minute}
	cfg := Config{Shards: 2, MaxConnections: 9000, MaxPipes: 64, Splice: p.mode, Services: []*Service{svc}}
	for _, change := range options {
		change(&cfg, svc)
	}
	return cfg
}

func poolOf(t testing.TB, servers ...string) *Pool {
	t.Helper()
	var list []pick.ServerConfig
	for i, addr := range servers {
		list = append(list, pick.ServerConfig{Addr: addr, Weight: 1, Priority: i})
	}
	p := pick.NewPool()
	if err := p.Configure(pick.Config{Servers: list, OnNew: Attach}); err != nil {
		t.Fatal(err)
	}
	return &Pool{Name: "p", Pool: p, ConnectTimeout: 5 * time.Second, ConnectRetries: 2}
}

func bindFor(t testing.TB, where string) string {
	if where != peers.Unix {
		return where
	}
	return "unix:" + socketPath(t)
}

// socketPath is short whatever the test is called.
func socketPath(t testing.TB) string {
	dir, err := os.MkdirTemp("", "l4")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// start runs a balancer over path p before servers. With the test it ends, and then nothing may be left of any session.
func start(t testing.TB, p path, servers []*peers.Server, options ...option) *balancer {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return run(t, configure(t, p, addrs, options...))
}

func run(t testing.TB, cfg Config) *balancer {
	t.Helper()
	b := &balancer{t: t, changed: make(chan struct{}, 1)}
	cfg.OnEnd = b.ended
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.Server, b.addr = s, s.Addrs("s")[0]
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	b.stop = sync.OnceValue(func() error { s.Close(); return <-done })
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Errorf("run: %v", err)
		}
		b.checkEmpty(cfg)
	})
	return b
}

func (b *balancer) ended(e *Ended) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, *e)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// wait returns the first n ends of sessions.
func (b *balancer) wait(n int) []Ended {
	b.t.Helper()
	late := time.After(limit)
	for {
		b.mu.Lock()
		list := slices.Clone(b.list)
		b.mu.Unlock()
		if len(list) >= n {
			return list[:n]
		}
		select {
		case <-b.changed:
		case <-late:
			b.t.Fatalf("%d of %d sessions have ended: %v", len(list), n, reasonsOf(list))
		}
	}
}

// expect waits for n ends, which all have to be for the same reason.
func (b *balancer) expect(n int, why Reason) []Ended {
	b.t.Helper()
	list := b.wait(n)
	for _, e := range list {
		if e.Reason != why {
			b.t.Fatalf("session ended with %v (errno %v), want %v; all: %v", e.Reason, e.Errno, why, reasonsOf(list))
		}
	}
	return list
}

func reasonsOf(list []Ended) string {
	counts := map[Reason]int{}
	for _, e := range list {
		counts[e.Reason]++
	}
	var text []string
	for why, n := range counts {
		text = append(text, fmt.Sprintf("%d %v", n, why))
	}
	slices.Sort(text)
	return strings.Join(text, ", ")
}

// checkEmpty: after Run the shards' goroutines have ended, so their own state may be read.
func (b *balancer) checkEmpty(cfg Config) {
	if n := b.sessions.Load(); n != 0 {
		b.t.Errorf("%d sessions are counted after the end", n)
	}
	if n := b.pipes.out.Load(); n != 0 {
		b.t.Errorf("%d pipes are counted after the end", n)
	}
	for _, sh := range b.shards {
		if sh.held != 0 || sh.slab.live != 0 {
			b.t.Errorf("shard %d: %d buffers held, %d sessions live after the end", sh.id, sh.held, sh.slab.live)
		}
		b.checkWay(sh)
	}
	for name, svc := range b.services {
		if n := svc.load.Load(); n != 0 {
			b.t.Errorf("listener %s counts %d sessions after the end", name, n)
		}
	}
	for _, svc := range cfg.Services {
		for _, s := range svc.Pool.Servers() {
			if n := s.Active(); n != 0 {
				b.t.Errorf("server %s counts %d sessions after the end", s.Name, n)
			}
		}
	}
}

// checkWay: bytes took no way that the mode forbids, so that every mode tests what it says.
func (b *balancer) checkWay(sh *shard) {
	if sh.mode == SpliceOff && sh.spliced != 0 {
		b.t.Errorf("%d bytes were spliced with splicing off", sh.spliced)
	}
}

// until polls a condition that no event tells of.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	late := time.Now().Add(limit)
	for !is() {
		if time.Now().After(late) {
			t.Fatalf("waited in vain for: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// A hand drives one shard itself: real sockets, but the test says when a turn is, and what time it is.
type hand struct {
	*shard
	t     testing.TB
	addr  string
	clock int64
	ends  []Ended
}

func drive(t testing.TB, p path, servers []*peers.Server, options ...option) *hand {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	h := &hand{t: t, clock: 1}
	cfg := configure(t, p, addrs, options...)
	cfg.Shards = 1
	cfg.OnEnd = func(e *Ended) { h.ends = append(h.ends, *e) }
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.shard, h.addr = s.shards[0], s.Addrs("s")[0]
	t.Cleanup(func() {
		h.slab.each(func(x *session) {
			if x.phase < closed {
				h.close(x, Shutdown)
			}
		})
		s.Close()
	})
	return h
}

// until turns until something is so.
func (h *hand) until(what string, is func() bool) {
	h.t.Helper()
	late := time.Now().Add(limit)
	for !is() {
		if time.Now().After(late) {
			h.t.Fatalf("turned in vain for: %s", what)
		}
		h.turn(h.clock)
	}
}

// settled turns until there was nothing to do for a while.
func (h *hand) settled() {
	h.t.Helper()
	quiet := 0
	h.until("nothing to do", func() bool {
		if h.turn(h.clock) {
			quiet = 0
		} else {
			quiet++
			<-time.After(time.Millisecond)
		}
		return quiet == 50
	})
}

// expectQuiet: a loop that has something to do when nothing happens would spin. The kernel's own timers (a probe of a
// closed window) may bring an event now and then.
func (h *hand) expectQuiet() {
	h.t.Helper()
	const turns, mayBe = 500, 10
	busy := 0
	for range turns {
		if h.turn(h.clock) {
			busy++
		}
	}
	if busy > mayBe {
		h.t.Fatalf("%d of %d turns found something to do though nothing had happened", busy, turns)
	}
}

// pass lets time go by in steps of a tick.
func (h *hand) pass(d time.Duration) {
	for end := h.clock + int64(d); h.clock < end; {
		h.clock = min(h.clock+tick, end)
		h.turn(h.clock)
	}
}

// only is the one session that there is.
func (h *hand) only() *session {
	h.t.Helper()
	var found *session
	h.slab.each(func(s *session) { found = s })
	if found == nil {
		h.t.Fatal("no session")
	}
	return found
}

func (h *hand) relaying() bool {
	n := 0
	h.slab.each(func(s *session) {
		if s.phase == relaying {
			n++
		}
	})
	return n > 0
}
