package l4

import (
	"os"
	"slices"
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// A pipe whose slots are all taken says EAGAIN just as an empty socket does: small segments take a slot each.
func TestSmallSegmentsForAPausedReader(t *testing.T) {
	const n, sessions = 256 << 10, 3
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Repeat(n/512, peers.Send(512)), peers.FIN(), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server})
		together(sessions, 1, func(int) {
			peers.Visit(t, b.addr, peers.Buffer(64<<10), peers.Hold(50*time.Millisecond), peers.Expect(n), peers.ExpectEOF(0), peers.FIN())
		})
		b.expect(sessions, Normal)
	})
}

// The end must not overtake bytes in the pipe, at sizes around every boundary.
func TestEndBehindHeldBytes(t *testing.T) {
	sizes := []int64{1, 4095, 4096, 4097, 32767, 32768, 32769, 65535, 65536, 65537, 1<<20 - 1, 1 << 20, 1<<20 + 1}
	forEachMode(t, func(t *testing.T, p path) {
		for _, n := range sizes {
			server := peers.Listen(t, p.server, peers.Buffer(64<<10), peers.Hold(5*time.Millisecond),
				peers.Both(peers.Script(peers.Send(n), peers.FIN()), peers.Script(peers.Expect(n), peers.ExpectEOF(0))))
			b := start(t, p, []*peers.Server{server})
			peers.Visit(t, b.addr, peers.Buffer(64<<10),
				peers.Both(peers.Script(peers.Send(n), peers.FIN()), peers.Script(peers.Hold(5*time.Millisecond), peers.Expect(n), peers.ExpectEOF(0))))
			if e := b.expect(1, Normal)[0]; e.In != n || e.Out != n {
				t.Errorf("%d bytes: counted %d in, %d out", n, e.In, e.Out)
			}
		}
	})
}

// A hint that more is coming would hold the last partial segment back, by 40 or 200 ms each time.
func TestSmallMessagesAreNotHeldBack(t *testing.T) {
	const rounds = 50
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Echo())
		b := start(t, p, []*peers.Server{server})
		for _, size := range []int64{1, 100, 1000, 1461} {
			c := peers.Dial(t, b.addr)
			var took []time.Duration
			for range rounds {
				begun := time.Now()
				c.Do(peers.Send(size), peers.ExpectEcho(size))
				took = append(took, time.Since(begun))
			}
			c.Close()
			if slices.Sort(took); took[rounds/2] > 30*time.Millisecond { // held back, all of them would be
				t.Errorf("%d bytes: half of the rounds took more than %v", size, took[rounds/2])
			}
		}
	})
}

// Sizes at which 32-bit amounts and magic values end. The big ones take minutes: SLUICE_LONG=1.
func TestBigStreams(t *testing.T) {
	sizes := []int64{16 << 20}
	if os.Getenv("SLUICE_LONG") != "" {
		sizes = []int64{1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1, 1 << 32, 1<<32 + 1, 20 << 30}
	}
	forEachMode(t, func(t *testing.T, p path) {
		for _, n := range sizes {
			server := peers.Listen(t, p.server, peers.Expect(n), peers.Send(n), peers.FIN(), peers.ExpectEOF(0))
			b := start(t, p, []*peers.Server{server})
			peers.Visit(t, b.addr, peers.Send(n), peers.Expect(n), peers.ExpectEOF(0), peers.FIN())
			if e := b.expect(1, Normal)[0]; e.In != n || e.Out != n {
				t.Errorf("counted %d in, %d out, want %d", e.In, e.Out, n)
			}
			b.checkStreamsWay(2 * n)
		}
	})
}

// checkStreamsWay: a silent fall-back to copying would pass every other test.
func (b *balancer) checkStreamsWay(n int64) {
	b.t.Helper()
	st := b.Stats()
	if st.Spliced+st.Copied != n {
		b.t.Errorf("%d spliced and %d copied, want %d together", st.Spliced, st.Copied, n)
	}
	switch b.mode {
	case SpliceOff:
		if st.Spliced != 0 {
			b.t.Errorf("off: %d bytes were spliced", st.Spliced)
		}
	case SpliceAlways:
		if st.Copied != 0 {
			b.t.Errorf("always: %d bytes were copied", st.Copied)
		}
	case SpliceAuto:
		if st.Spliced < n/4 {
			b.t.Errorf("auto: of %d bytes only %d were spliced", n, st.Spliced)
		}
	}
}

// Small exchanges take no pipe, unless each byte has to.
func TestSmallExchangesAreCopied(t *testing.T) {
	const visits, n = 300, 2 << 10
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(n), peers.Send(n), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server})
		together(4, visits/4, func(int) { peers.Visit(t, b.addr, peers.Send(n), peers.Expect(n), peers.Close()) })
		b.expect(visits, Normal)
		st := b.Stats()
		if p.mode != SpliceAlways && (st.Spliced != 0 || st.Pipes != 0) {
			t.Errorf("%d bytes spliced, %d pipes", st.Spliced, st.Pipes)
		}
		if st.Pipes > 64 {
			t.Errorf("%d pipes after small sessions", st.Pipes)
		}
	})
}

// A stream that becomes small exchanges is copied again, and the other way round.
func TestWayFollowsTheTraffic(t *testing.T) {
	p := path{SpliceAuto, peers.V4, peers.V4}
	server := peers.Listen(t, p.server, peers.Echo())
	b := start(t, p, []*peers.Server{server})
	c := peers.Dial(t, b.addr)
	for range 2 {
		c.Do(peers.Both(peers.Script(peers.Send(8<<20)), peers.Script(peers.ExpectEcho(8<<20))))
		before := b.Stats()
		if before.Spliced == 0 {
			t.Error("a stream was not spliced")
		}
		c.Do(peers.Repeat(100, peers.Send(100), peers.ExpectEcho(100)))
		if now := b.Stats(); now.Spliced-before.Spliced > 4*2*smallInRow*100 {
			t.Errorf("%d bytes of small exchanges were spliced", now.Spliced-before.Spliced)
		}
	}
}

// With fewer pipes than streams that wait, the others are copied, and all of them arrive.
func TestFewPipes(t *testing.T) {
	const n, sessions = 4 << 20, 6
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Send(n), peers.FIN(), peers.ExpectEOF(0))
		b := start(t, p, []*peers.Server{server}, func(c *Config, _ *Service) { c.MaxPipes = 1 })
		go1 := make(chan struct{})
		var clients []*peers.Conn
		for range sessions {
			c := peers.Dial(t, b.addr)
			clients = append(clients, c)
			c.Go(peers.Buffer(256<<10), peers.Until(go1), peers.Expect(n), peers.ExpectEOF(0), peers.FIN())
		}
		b.stalls()
		if st := b.Stats(); st.Pipes > int64(1+len(b.shards)) || st.Pipes+st.Buffers > 2*sessions {
			t.Errorf("%d pipes, %d buffers", st.Pipes, st.Buffers)
		}
		close(go1)
		for _, c := range clients {
			c.Wait()
		}
		b.expect(sessions, Normal)
	})
}
