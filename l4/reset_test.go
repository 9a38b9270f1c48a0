package l4

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// end expects what becomes of a reset on its way to a client: a reset, or an end where a unix socket is on the way.
func (p path) endOfReset() peers.Step {
	if p.unixClient() || p.unixServer() {
		return peers.ExpectEOF(0)
	}
	return peers.ExpectRST(0)
}

// A reset must not look like a clean end, or a truncated download passes for a whole one.
func TestServerResetReachesTheClient(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Send(100), peers.Hear("go"), peers.RST())
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Expect(100), peers.Say("go"), p.endOfReset())
		why := ServerReset
		if p.unixServer() {
			why = Normal
		}
		if e := b.expect(1, why)[0]; why == ServerReset && e.Errno != syscall.ECONNRESET {
			t.Errorf("errno %v", e.Errno)
		}
	})
}

func TestClientResetReachesTheServer(t *testing.T) {
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(100), peers.Say("go"), p.endOfReset())
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Send(100), peers.Hear("go"), peers.RST())
		server.Wait(1)
		b.expect(1, p.clientReset())
	})
}

// A server that leaves a byte unread and closes makes its kernel reset after the FIN: the answer before it is whole.
func TestAnswerBeforeAResetIsWhole(t *testing.T) {
	const visits, answer = 40, 64 << 10
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(9), peers.Send(answer), peers.FIN(), peers.Close())
		b := start(t, p, []*peers.Server{server})
		together(8, visits/8, func(int) {
			peers.Visit(t, b.addr, peers.Send(10), peers.Hold(time.Millisecond), peers.ExpectAt(answer, 64<<20), peers.ExpectEnd(0))
		})
		b.wait(visits)
	})
}

// together runs f n times on each of so many goroutines.
func together(goroutines, n int, f func(i int)) {
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range n {
				f(g*n + i)
			}
		})
	}
	all.Wait()
}

// Everything that the balancer had from a server before the server reset reaches a client that was slow to read.
func TestBytesHeldAtAResetAreDelivered(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		stalled, sent := make(chan struct{}), make(chan struct{})
		server := peers.Listen(t, p.server, sendUntil(stalled), peers.Call(func() { close(sent) }), peers.RST())
		b := start(t, p, []*peers.Server{server})
		c := peers.Dial(t, b.addr)
		c.Do(peers.Buffer(256<<10), peers.Expect(1000))
		b.stalls()
		close(stalled)
		<-sent
		err := c.Try(peers.Expect(1 << 40))
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
		if e := b.expect(1, ServerReset)[0]; c.Received() != e.Out {
			t.Errorf("the client got %d bytes of %d", c.Received(), e.Out)
		}
	})
}

// sendUntil sends as much as goes, ignoring that at the end it does not go any more.
func sendUntil(stop <-chan struct{}) peers.Step {
	return func(c *peers.Conn) error {
		done := make(chan struct{})
		go func() { c.Try(peers.Source()); close(done) }()
		<-stop
		c.Raw().SetWriteDeadline(time.Unix(1, 0))
		<-done
		return nil
	}
}

// stalls waits until no byte moves any more.
func (b *balancer) stalls() {
	b.t.Helper()
	last, same := int64(-1), 0
	until(b.t, "a stall", func() bool {
		st := b.Stats()
		if n := st.Spliced + st.Copied; n == last {
			same++
		} else {
			last, same = n, 0
		}
		return same == 8
	})
}

// Ordinary ends use no resets: they would eat the last bytes, or leave servers hanging.
func TestNormalEndsWithoutReset(t *testing.T) {
	const visits, n = 64, 10 << 10
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(n), peers.Send(n), peers.FIN(), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server})
		together(4, visits/4, func(int) {
			peers.Visit(t, b.addr, peers.Send(n), peers.Expect(n), peers.ExpectEOF(0), peers.FIN())
		})
		server.Wait(visits)
		b.expect(visits, Normal)
	})
}

// A server that streams learns soon that its client is gone, and little more is taken from it.
func TestStreamingServerLearnsOfAReset(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		gone := make(chan error, 1)
		server := peers.Listen(t, p.server, func(c *peers.Conn) error {
			_, err := io.Copy(c.Raw(), zeros{})
			gone <- err
			return nil
		})
		b := start(t, p, []*peers.Server{server})
		c := peers.Dial(t, b.addr)
		if _, err := io.CopyN(io.Discard, c.Raw(), 1<<20); err != nil {
			t.Fatal(err)
		}
		c.Do(peers.RST())
		select {
		case err := <-gone:
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the server got %v", err)
			}
		case <-time.After(limit):
			t.Error("the server still streams")
		}
		b.expect(1, ClientReset)
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestStreamingClientLearnsOfAReset(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(1<<20), peers.RST())
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Source())
		b.expect(1, ServerReset)
	})
}

// A side that was reset while the other is full ends the session all the same.
func TestResetWhileTheOtherSideIsFull(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Hold(time.Hour))
		b := start(t, p, []*peers.Server{server}, func(_ *Config, s *Service) { s.HalfClosedTimeout = 300 * time.Millisecond })
		stop := make(chan struct{})
		c := peers.Dial(t, b.addr)
		c.Go(sendUntil(stop))
		b.stalls()
		close(stop)
		c.Wait()
		c.Do(peers.RST())
		if why := b.wait(1)[0].Reason; why != ClientReset && why != HalfClosedTimeout {
			t.Errorf("ended with %v", why)
		}
	})
}
