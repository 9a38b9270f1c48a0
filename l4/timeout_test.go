package l4

import (
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// lasts drives one relaying session by a clock of its own and expects it to end after d, within two ticks.
func lasts(t *testing.T, p path, d time.Duration, why Reason, options ...option) {
	t.Helper()
	server := peers.Listen(t, p.server)
	h := drive(t, p, []*peers.Server{server}, options...)
	peers.Dial(t, h.addr)
	h.until("the session", h.relaying)
	server.Accept()
	h.pass(d - tick)
	if len(h.ends) != 0 {
		t.Fatalf("ended after %v: %v", time.Duration(h.clock), h.ends[0].Reason)
	}
	h.pass(3 * tick)
	if len(h.ends) != 1 || h.ends[0].Reason != why {
		t.Fatalf("at %v: got %+v, want %v", time.Duration(h.clock), h.ends, why)
	}
}

func TestIdleTimeoutIsExact(t *testing.T) {
	for _, idle := range []time.Duration{200 * time.Millisecond, 2 * time.Second, time.Minute} { // less than, and more than, a dial and a lap
		forEachMode(t, func(t *testing.T, p path) {
			lasts(t, p, idle, IdleTimeout, func(_ *Config, s *Service) { s.IdleTimeout = idle })
		})
	}
}

func TestMaxSessionDurationIsExact(t *testing.T) {
	for _, most := range []time.Duration{time.Second, 2 * time.Minute} {
		forEachMode(t, func(t *testing.T, p path) {
			lasts(t, p, most, MaxDuration, func(_ *Config, s *Service) { s.IdleTimeout, s.MaxSessionDuration = 0, most })
		})
	}
}

// The limit of a connect is not the limit of a session.
func TestConnectTimeoutEndsWithTheConnect(t *testing.T) {
	forEachMode(t, func(t *testing.T, p path) {
		lasts(t, p, 10*time.Second, IdleTimeout, func(_ *Config, s *Service) {
			s.Pool.ConnectTimeout, s.IdleTimeout = time.Second, 10*time.Second
		})
	})
}

// Bytes in one direction alone keep a session.
func TestOneWayTrafficIsNotIdle(t *testing.T) {
	const idle = 2 * time.Second
	for _, sender := range []side{client, server} {
		forEachMode(t, func(t *testing.T, p path) {
			ln := peers.Listen(t, p.server)
			h := drive(t, p, []*peers.Server{ln}, func(_ *Config, s *Service) { s.IdleTimeout = idle })
			from := peers.Dial(t, h.addr)
			h.until("the session", h.relaying)
			to := ln.Accept()
			if sender == server {
				from, to = to, from
			}
			for i := range int64(20) {
				from.Do(peers.Send(1))
				h.until("the byte", func() bool { return h.only().halves[sender].bytes == i+1 })
				h.pass(idle - 2*tick)
			}
			to.Do(peers.Expect(20))
			h.pass(4 * tick)
			if len(h.ends) != 1 || h.ends[0].Reason != IdleTimeout {
				t.Errorf("got %+v", h.ends)
			}
		})
	}
}

// A connect that is never answered ends on time, whatever else the wheel holds.
func TestConnectTimeoutIsExact(t *testing.T) {
	p := path{listen: peers.V4, server: peers.V4}
	h := drive(t, p, []*peers.Server{peers.Full(t, peers.V4)}, func(_ *Config, s *Service) { s.Pool.ConnectTimeout = 3 * time.Second })
	peers.Dial(t, h.addr)
	h.until("the dial", func() bool { return h.slab.live == 1 })
	h.pass(3*time.Second - tick)
	if len(h.ends) != 0 {
		t.Fatalf("got %+v", h.ends)
	}
	h.pass(3 * tick)
	if len(h.ends) != 1 || h.ends[0].Reason != ConnectTimeout {
		t.Errorf("got %+v", h.ends)
	}
}

func TestJitterShortensOnly(t *testing.T) {
	r := &route{Service: &Service{MaxSessionDuration: 1000, MaxSessionJitter: 0.1}}
	for _, row := range []struct {
		random float64
		want   int64
	}{{0, 1005}, {0.5, 955}, {1, 905}} {
		if got := r.expiry(5, func() float64 { return row.random }); got != row.want {
			t.Errorf("random %v: %d, want %d", row.random, got, row.want)
		}
	}
	if got := (&route{Service: &Service{}}).expiry(5, nil); got != 0 {
		t.Errorf("without a limit: %d", got)
	}
}
