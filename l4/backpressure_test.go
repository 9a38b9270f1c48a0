package l4

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// Nothing is read that cannot be kept: a reader that never reads holds one buffer or pipe, and stops its sender.
func TestStalledReadersHoldLittle(t *testing.T) {
	const sessions = 10
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, endless)
		b := start(t, p, []*peers.Server{server}, func(c *Config, _ *Service) { c.MaxPipes = 4 })
		for range sessions {
			peers.Dial(t, b.addr).Do(peers.Buffer(256 << 10))
		}
		b.stalls()
		st := b.Stats()
		if st.Buffers+st.Pipes > sessions+int64(len(b.shards))*64 || st.Buffers > sessions {
			t.Errorf("%d buffers and %d pipes for %d stalled sessions", st.Buffers, st.Pipes, sessions)
		}
		if p.mode != SpliceOff && st.Pipes > 4+int64(len(b.shards)) {
			t.Errorf("%d pipes, 4 are allowed", st.Pipes)
		}
	})
}

// endless sends for ever, swallow reads for ever: streams whose bytes do not matter.
func endless(c *peers.Conn) error { io.Copy(c.Raw(), zeros{}); return nil }
func swallow(c *peers.Conn) error { io.Copy(io.Discard, c.Raw()); return nil }

// Clients that stall, resume and reset within a moment.
func TestResetInTheMiddleOfResuming(t *testing.T) {
	const workers, visits = 6, 8
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Source())
		b := start(t, p, []*peers.Server{server})
		together(workers, visits, func(int) {
			peers.Visit(t, b.addr, peers.Expect(1), peers.Hold(time.Duration(rand.IntN(5))*time.Millisecond),
				peers.Expect(rand.Int64N(400<<10)), peers.RST())
		})
		b.expect(workers*visits, ClientReset)
	})
}

// A stream beside them must not keep small exchanges waiting for its end.
func TestSmallExchangesBesideStreams(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Echo())
		source := peers.Listen(t, p.server, endless)
		b := start(t, p, []*peers.Server{server}, func(c *Config, s *Service) {
			c.Shards = 1
			c.Services = append(c.Services, &Service{Name: "bulk", Bind: []string{peers.V6}, Pool: poolOf(t, source.Addr())})
		})
		for range 4 {
			c := peers.Dial(t, b.Addrs("bulk")[0])
			c.Go(swallow)
			defer c.Close()
		}
		peers.Visit(t, b.addr, peers.Repeat(50, peers.Send(100), peers.ExpectEcho(100)))
	})
}
