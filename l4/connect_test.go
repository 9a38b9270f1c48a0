package l4

import (
	"io"
	"net"
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// Bytes and even the end may come before there is a server.
func TestEndBeforeTheServerIsConnected(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server)
		h := drive(t, p, []*peers.Server{server})
		c := peers.Dial(t, h.addr)
		h.until("the dial", func() bool { return h.slab.live == 1 })
		c.Do(peers.Send(10), peers.FIN())
		s := server.Accept()
		h.until("the end is passed on", func() bool { return h.only().halves[client].stage == shut })
		s.Do(peers.Expect(10), peers.ExpectEOF(0), peers.Send(5), peers.Close())
		h.until("the end", func() bool { return len(h.ends) == 1 })
		c.Do(peers.Expect(5), peers.ExpectEOF(0))
		if h.ends[0].Reason != Normal {
			t.Errorf("ended with %v", h.ends[0].Reason)
		}
	})
}

// A client that sends and is gone for good before there is a server has still said what it said.
func TestSendAndCloseBeforeTheServerIsConnected(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server)
		h := drive(t, p, []*peers.Server{server})
		c := peers.Dial(t, h.addr)
		h.until("the dial", func() bool { return h.slab.live == 1 })
		c.Do(peers.Send(100<<10), peers.Close())
		s := server.Accept()
		s.Go(peers.Expect(100<<10), peers.ExpectEOF(0), peers.Close())
		h.until("the end", func() bool { return len(h.ends) == 1 })
		s.Wait()
		if h.ends[0].Reason != Normal {
			t.Errorf("ended with %v", h.ends[0].Reason)
		}
	})
}

func TestServerSpeaksFirst(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Greet(20))
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Expect(20), peers.FIN(), peers.ExpectEOF(0))
		b.expect(1, Normal)
	})
}

// What the client had said when the first server refused reaches the second, once.
func TestEarlyBytesSurviveARetry(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		bad, good := peers.Refusing(t, p.server), peers.Listen(t, p.server, peers.Expect(16), peers.Send(8), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{bad, good})
		for range 10 {
			peers.Visit(t, b.addr, peers.Send(16), peers.Expect(8), peers.Close())
		}
		b.expect(10, Normal)
		servers := b.Stats().Servers
		if servers[0].Failures[ConnectRefused] != 10 || servers[1].Connects != 10 {
			t.Errorf("counted %+v", servers)
		}
	})
}

func TestRefused(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		b := start(t, p, []*peers.Server{peers.Refusing(t, p.server)})
		peers.Visit(t, b.addr, peers.ExpectEOF(0))
		if e := b.expect(1, ConnectRefused)[0]; e.Server != "" || e.Tries != 1 {
			t.Errorf("server %q, %d tries", e.Server, e.Tries)
		}
	})
}

// The reason is that of the last attempt, and no server is tried twice.
func TestRetriesAreBounded(t *testing.T) {
	p := path{listen: peers.V4, server: peers.V4}
	forEachMode(t, func(t *testing.T, _ path) {
		var bad []*peers.Server
		for range 5 {
			bad = append(bad, peers.Refusing(t, peers.V4))
		}
		b := start(t, p, bad)
		peers.Visit(t, b.addr, peers.ExpectEOF(0))
		if e := b.expect(1, ConnectRefused)[0]; e.Tries != 3 {
			t.Errorf("%d tries, want 3", e.Tries)
		}
	})
}

func TestUnreachable(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		b := run(t, configure(t, p, []string{"255.255.255.255:9"}))
		peers.Visit(t, b.addr, peers.ExpectEOF(0))
		b.expect(1, ConnectError)
	})
}

func TestNoServer(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		b := run(t, configure(t, p, nil))
		peers.Visit(t, b.addr, peers.Send(1), peers.ExpectEnd(0))
		b.expect(1, NoServer)
	})
}

func TestNoServerMayReset(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		b := run(t, configure(t, p, nil, func(_ *Config, s *Service) { s.Pool.ResetNoServer = true }))
		c, err := net.Dial("tcp", b.addr)
		if err == nil { // the reset may come before connect returns
			c.SetDeadline(time.Now().Add(limit))
			if _, err = c.Read(make([]byte, 1)); err == nil || err == io.EOF {
				t.Errorf("got %v, want a reset", err)
			}
			c.Close()
		}
		b.expect(1, NoServer)
	})
}

func TestConnectTimeout(t *testing.T) {
	const timeout = 300 * time.Millisecond
	forEachMode(t, func(t *testing.T, p path) {
		b := start(t, p, []*peers.Server{peers.Full(t, peers.V4)}, func(_ *Config, s *Service) { s.Pool.ConnectTimeout = timeout })
		together(20, 1, func(int) { peers.Visit(t, b.addr, peers.ExpectEOF(0)) })
		for _, e := range b.expect(20, ConnectTimeout) {
			if e.Total < timeout {
				t.Errorf("gave up after %v", e.Total)
			}
		}
	})
}

// A server that does not answer costs its timeout, then the next one serves.
func TestConnectTimeoutThenRetry(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		good := peers.Listen(t, p.server, peers.Echo())
		b := start(t, p, []*peers.Server{peers.Full(t, peers.V4), good}, func(_ *Config, s *Service) { s.Pool.ConnectTimeout = 100 * time.Millisecond })
		together(20, 1, func(int) {
			peers.Visit(t, b.addr, peers.Send(100), peers.FIN(), peers.ExpectEcho(100), peers.ExpectEOF(0))
		})
		b.expect(20, Normal)
	})
}

func TestFullUnixServerIsPassedOver(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		good := peers.Listen(t, p.server, peers.Greet(1))
		b := start(t, p, []*peers.Server{peers.Full(t, peers.Unix), good})
		peers.Visit(t, b.addr, peers.Expect(1))
		b.expect(1, Normal)
	})
}

// A client that leaves while a server is dialed is nobody's failure.
func TestClientGoneWhileDialing(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		b := start(t, p, []*peers.Server{peers.Full(t, peers.V4)})
		together(20, 1, func(int) {
			c, err := peers.TryDial(t, b.addr)
			if err != nil {
				t.Error(err)
				return
			}
			c.Do(peers.RST())
		})
		b.expect(20, ClientGone)
		if s := b.Stats().Servers[0]; len(s.Failures) != 0 || s.Active() != 0 {
			t.Errorf("blamed the server: %+v", s)
		}
	})
}

// A server that accepts, speaks and resets before we looked was connected: what it said is passed on.
func TestResetRightAfterConnecting(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		for _, last := range [][]peers.Step{{peers.RST()}, {peers.FIN(), peers.RST()}} {
			server := peers.Listen(t, p.server)
			h := drive(t, p, []*peers.Server{server})
			c := peers.Dial(t, h.addr)
			h.until("the dial", func() bool { return h.slab.live == 1 })
			s := server.Accept()
			s.Do(peers.Send(100))
			s.Do(last...)
			h.until("the end", func() bool { return len(h.ends) == 1 && h.slab.live == 0 })
			c.Do(peers.Expect(100), peers.ExpectEnd(0))
			if h.ends[0].Reason != ServerReset {
				t.Errorf("ended with %v", h.ends[0].Reason)
			}
			h.ends = nil
		}
	})
}
