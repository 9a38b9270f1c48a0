package l4

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
	peers "sluice/internal/peer"
)

// withFewDescriptors lets this process open no more than n further descriptors while f runs.
func withFewDescriptors(t *testing.T, n int, f func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	probe, err := unix.Dup(0) // the lowest free number: the limit is on numbers
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(probe)
	few := unix.Rlimit{Cur: uint64(probe + n), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	f()
}

// A listener stays ready while accept fails: without a pause the loop would spin, with a long one clients would wait.
func TestOutOfDescriptorsAtAccept(t *testing.T) {
	leak.Check(t)
	p := path{listen: peers.V4, server: peers.V4}
	server := peers.Listen(t, p.server)
	h := drive(t, p, []*peers.Server{server})
	old := peers.Dial(t, h.addr)
	h.until("the session", h.relaying)
	s := server.Accept()
	var waiting []*peers.Conn
	for range 5 {
		waiting = append(waiting, peers.Dial(t, h.addr))
	}
	withFewDescriptors(t, 0, func() {
		for range 100 { // 10 s
			h.pass(100 * time.Millisecond)
			h.turn(h.clock) // tried again, in vain
			h.expectQuiet()
		}
		if n := h.server.acceptErrors.Load(); n < 50 || n > 101 {
			t.Errorf("accept was tried %d times in 10 s", n)
		}
		old.Do(peers.Send(5))
		h.until("the old session works", func() bool { return h.copied+h.spliced == 5 })
		s.Do(peers.Expect(5))
	})
	h.pass(200 * time.Millisecond)
	h.until("the waiting are served", func() bool { return h.slab.live == 1+len(waiting) })
}

// A dial without descriptors ends the session for our own reason.
func TestOutOfDescriptorsAtDial(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server)
		h := drive(t, p, []*peers.Server{server})
		c := peers.Dial(t, h.addr)
		withFewDescriptors(t, 1, func() {
			h.until("the end", func() bool { return len(h.ends) == 1 })
		})
		if h.ends[0].Reason != LocalResource {
			t.Errorf("ended with %v", h.ends[0].Reason)
		}
		c.Do(peers.ExpectEnd(0))
	})
}

// Beyond the limit new clients are refused and the others go on; who leaves makes room at any listener.
func TestProcessLimit(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Echo())
		b := start(t, p, []*peers.Server{server}, func(c *Config, s *Service) {
			c.MaxConnections = 4
			other := *s
			other.Name, other.Bind = "o", []string{peers.V6}
			c.Services = append(c.Services, &other)
		})
		var held []*peers.Conn
		for range 4 {
			c := peers.Dial(t, b.addr)
			c.Do(peers.Send(1), peers.ExpectEcho(1))
			held = append(held, c)
		}
		for _, addr := range []string{b.addr, b.Addrs("o")[0]} {
			if c, err := peers.TryDial(t, addr); err == nil {
				c.Do(peers.ExpectEnd(0))
			}
		}
		b.expect(2, LimitProcess)
		held[0].Do(peers.Send(1), peers.ExpectEcho(1), peers.Close())
		b.wait(3)
		peers.Visit(t, b.Addrs("o")[0], peers.Send(1), peers.ExpectEcho(1))
	})
}

func TestListenerLimit(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Greet(1))
		b := start(t, p, []*peers.Server{server}, func(_ *Config, s *Service) { s.MaxConnections = 1 })
		first := peers.Dial(t, b.addr)
		first.Do(peers.Expect(1))
		if c, err := peers.TryDial(t, b.addr); err == nil {
			c.Do(peers.ExpectEnd(0))
		}
		b.expect(1, LimitListener)
		first.Close()
		b.wait(2)
		peers.Visit(t, b.addr, peers.Expect(1))
	})
}

// The kernel's own queue is as long as it may be: bursts wait there, not in SYN retries.
func TestBacklog(t *testing.T) {
	leak.Check(t)
	p := path{listen: peers.V4, server: peers.V4}
	for _, want := range []int{0, 7} {
		h := drive(t, p, nil, func(_ *Config, s *Service) { s.Backlog = want })
		for _, l := range h.listeners {
			info, err := unix.GetsockoptTCPInfo(int(l.fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			if got := int(info.Sacked); want > 0 && got != want || want == 0 && got < 128 {
				t.Errorf("backlog %d: the kernel's is %d", want, got)
			}
		}
	}
}
