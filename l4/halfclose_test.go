package l4

import (
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// One side finishes; the other still has everything to say.
func TestAnswerAfterTheClientsEnd(t *testing.T) {
	const ask, answer, rounds = 1 << 10, 256 << 10, 20
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(ask), peers.ExpectEOF(0), peers.Hold(time.Millisecond), peers.Send(answer), peers.FIN())
		b := start(t, p, []*peers.Server{server})
		for range rounds {
			peers.Visit(t, b.addr, peers.Send(ask), peers.FIN(), peers.Expect(answer), peers.ExpectEOF(0))
		}
		for _, e := range b.expect(rounds, Normal) {
			if e.In != ask || e.Out != answer {
				t.Errorf("counted %d in, %d out; want %d, %d", e.In, e.Out, ask, answer)
			}
		}
	})
}

// The end itself has to travel while both sides stay open.
func TestEndTravelsAlone(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(5), peers.ExpectEOF(0), peers.Send(7), peers.Hold(time.Millisecond), peers.FIN())
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Send(5), peers.FIN(), peers.Expect(7), peers.ExpectEOF(0))
		b.expect(1, Normal)
	})
}

func TestUploadAfterTheServersEnd(t *testing.T) {
	const upload = 1 << 20
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Send(10), peers.FIN(), peers.Expect(upload), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Expect(10), peers.ExpectEOF(0), peers.SendAt(upload, 20<<20), peers.FIN())
		server.Wait(1)
		if e := b.expect(1, Normal)[0]; e.In != upload || e.Out != 10 {
			t.Errorf("counted %d in, %d out", e.In, e.Out)
		}
	})
}

// A half-closed session has a timer of its own, which every byte sets back ...
func TestHalfClosedSessionMayTrickle(t *testing.T) {
	const quiet = 800 * time.Millisecond
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.ExpectEOF(0), peers.Repeat(8, peers.Hold(quiet/4), peers.Send(1)), peers.FIN())
		b := start(t, p, []*peers.Server{server}, func(_ *Config, s *Service) { s.HalfClosedTimeout = quiet })
		peers.Visit(t, b.addr, peers.FIN(), peers.Expect(8), peers.ExpectEOF(0))
		b.expect(1, Normal)
	})
}

// ... and which ends it when nothing comes any more, whatever the idle timeout.
func TestHalfClosedSessionEnds(t *testing.T) {
	const quiet = 300 * time.Millisecond
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.ExpectEOF(0), peers.Hold(time.Hour))
		b := start(t, p, []*peers.Server{server}, func(_ *Config, s *Service) { s.HalfClosedTimeout, s.IdleTimeout = quiet, time.Hour })
		peers.Visit(t, b.addr, peers.FIN(), peers.ExpectEnd(0))
		if e := b.expect(1, HalfClosedTimeout)[0]; e.Total < quiet {
			t.Errorf("ended after %v, want at least %v", e.Total, quiet)
		}
	})
}

func TestHalfClosedTimeoutIsExact(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server)
		h := drive(t, p, []*peers.Server{server}, func(_ *Config, s *Service) { s.HalfClosedTimeout, s.IdleTimeout = 30*time.Second, time.Hour })
		client := peers.Dial(t, h.addr)
		h.until("the session", h.relaying)
		client.Do(peers.FIN())
		h.until("the end is passed on", func() bool { return h.only().halfClosed() })
		h.pass(30*time.Second - tick)
		if len(h.ends) != 0 {
			t.Fatalf("ended too early: %+v", h.ends)
		}
		h.pass(3 * tick)
		if len(h.ends) != 1 || h.ends[0].Reason != HalfClosedTimeout {
			t.Errorf("got %+v", h.ends)
		}
	})
}

// A client that closes for good is a FIN to the server, at once: the server is not left to its own timeout.
func TestServerIsToldThatTheClientLeft(t *testing.T) {
	const rounds = 50
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(10), peers.Send(10), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server})
		for range rounds {
			peers.Visit(t, b.addr, peers.Send(10), peers.Expect(10), peers.Close())
		}
		server.Wait(rounds)
		b.expect(rounds, Normal)
	})
}

// half_close = false: the first end ends both directions, but not before its bytes were passed on.
func TestNoHalfClose(t *testing.T) {
	off := func(_ *Config, s *Service) { s.NoHalfClose = true }
	forEachPath(t, func(t *testing.T, p path) {
		t.Run("client", func(t *testing.T) {
			server := peers.Listen(t, p.server, peers.Expect(100<<10), peers.ExpectEOF(0), peers.ExpectEnd(0))
			b := start(t, p, []*peers.Server{server}, off)
			peers.Visit(t, b.addr, peers.Send(100<<10), peers.FIN(), peers.ExpectEOF(0))
			b.expect(1, Normal)
			server.Close()
		})
		t.Run("server", func(t *testing.T) {
			server := peers.Listen(t, p.server, peers.Send(100<<10), peers.FIN(), peers.ExpectEOF(0))
			b := start(t, p, []*peers.Server{server}, off)
			peers.Visit(t, b.addr, peers.Expect(100<<10), peers.ExpectEOF(0), peers.Hold(time.Millisecond))
			b.expect(1, Normal)
		})
	})
}

// Both ends at the same moment.
func TestBothEndAtOnce(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Send(300<<10), peers.FIN(), peers.Expect(1), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server})
		for range 20 {
			peers.Visit(t, b.addr, peers.Send(1), peers.FIN(), peers.Expect(300<<10), peers.ExpectEOF(0))
		}
		b.expect(20, Normal)
	})
}
