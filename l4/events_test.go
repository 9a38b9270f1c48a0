package l4

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	peers "sluice/internal/peer"
)

// A side that has ended and does not read, before a server that sends: nothing to do is nothing to do.
func TestStalledSessionDoesNotSpin(t *testing.T) {
	const n = 8 << 20
	for _, end := range []bool{false, true} {
		forEachMode(t, func(t *testing.T, p path) {
			server := peers.Listen(t, p.server)
			h := drive(t, p, []*peers.Server{server})
			c := peers.Dial(t, h.addr)
			h.until("the session", h.relaying)
			if end {
				c.Do(peers.FIN())
			}
			s := server.Accept()
			s.Go(peers.Send(n), peers.FIN())
			h.until("a full client", func() bool { return h.only().halves[1].held() })
			h.settled()
			h.expectQuiet()
			if h.pipes.budget.out.Load()+h.held > 2 {
				t.Errorf("%d pipes, %d buffers for one session", h.pipes.budget.out.Load(), h.held)
			}
			script := peers.Script(peers.Expect(n), peers.ExpectEOF(0))
			if !end {
				script = append(script, peers.FIN())
			}
			c.Go(script...)
			h.until("the end", func() bool { return len(h.ends) == 1 })
			if e := h.ends[0]; e.Reason != Normal || e.Out != n {
				t.Errorf("got %+v", e)
			}
			c.Wait()
		})
	}
}

func TestIdleSessionsNoticeResets(t *testing.T) {
	const sessions = 60
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Send(1), peers.ExpectRST(0))
		b := start(t, p, []*peers.Server{server})
		var idle []*peers.Conn
		for range sessions {
			c := peers.Dial(t, b.addr)
			c.Do(peers.Expect(1))
			idle = append(idle, c)
		}
		for _, c := range idle {
			c.Do(peers.RST())
		}
		server.Wait(sessions)
		b.expect(sessions, ClientReset)
	})
}

// Bytes and the end in one event, from either side.
func TestSendAndCloseAtOnce(t *testing.T) {
	const visits = 60
	forEachPath(t, func(t *testing.T, p path) {
		for range 3 {
			n := 1 + rand.Int64N(300<<10)
			down := peers.Listen(t, p.server, peers.Send(n), peers.Close())
			up := peers.Listen(t, p.server, peers.Expect(n), peers.ExpectEOF(0))
			b, c := start(t, p, []*peers.Server{down}), start(t, p, []*peers.Server{up})
			together(4, visits/12, func(int) {
				peers.Visit(t, b.addr, peers.Expect(n), peers.ExpectEOF(0))
				peers.Visit(t, c.addr, peers.Send(n), peers.Close())
			})
			up.Wait(visits / 12 * 4)
			b.expect(visits/12*4, Normal)
			c.expect(visits/12*4, Normal)
		}
	})
}

// Signals interrupt system calls: the runtime's own preemption does so all the time.
func TestSignals(t *testing.T) {
	const n = 16 << 20
	forEachMode(t, func(t *testing.T, p path) {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Microsecond):
					syscall.Kill(os.Getpid(), syscall.SIGURG)
				}
			}
		}()
		defer func() { close(stop); <-stopped }()
		server := peers.Listen(t, p.server, peers.Echo())
		b := start(t, p, []*peers.Server{server})
		together(2, 1, func(int) {
			peers.Visit(t, b.addr, peers.Both(peers.Script(peers.Send(n/2), peers.FIN()), peers.Script(peers.ExpectEcho(n/2), peers.ExpectEOF(0))))
		})
		b.expect(2, Normal)
	})
}

// Port scans: connections that end at once are no failures.
func TestEmptySessions(t *testing.T) {
	const visits = 80
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Echo())
		b := start(t, p, []*peers.Server{server})
		together(4, visits/8, func(int) {
			peers.Visit(t, b.addr, peers.FIN(), peers.ExpectEOF(0))
			peers.Visit(t, b.addr, peers.RST())
		})
		for _, e := range b.wait(visits) {
			if e.Reason != Normal && e.Reason != ClientReset && e.Reason != ClientGone {
				t.Errorf("ended with %v", e.Reason)
			}
		}
	})
}

// An urgent byte is passed over (only one: a second one makes the kernel put the first into the stream); what stands before and behind it arrives, also where splice stops at the mark.
func TestUrgentData(t *testing.T) {
	const n = 200 << 10
	oob := func(c *peers.Conn) error { return outOfBand(c) }
	forEachMode(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(2*n), peers.ExpectEOF(0), peers.Send(n), oob, peers.Send(n))
		b := start(t, p, []*peers.Server{server})
		for range 5 {
			peers.Visit(t, b.addr, peers.Send(n), oob, peers.Send(n), peers.FIN(), peers.Expect(2*n), peers.ExpectEOF(0))
		}
		b.expect(5, Normal)
	})
}

func outOfBand(c *peers.Conn) error {
	raw, err := c.Raw().(syscall.Conn).SyscallConn()
	if err == nil {
		raw.Write(func(fd uintptr) bool {
			err = unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB|unix.MSG_NOSIGNAL, nil)
			return err != unix.EAGAIN
		})
	}
	return err
}

// Descriptors that a unix client sends along go nowhere; its bytes do.
func TestPassedDescriptors(t *testing.T) {
	const n = 1000
	pass := func(c *peers.Conn) error {
		raw, err := c.Raw().(syscall.Conn).SyscallConn()
		if err == nil {
			raw.Write(func(fd uintptr) bool {
				err = unix.Sendmsg(int(fd), []byte("fd"), unix.UnixRights(0), nil, 0)
				return err != unix.EAGAIN
			})
		}
		return err
	}
	runPaths(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, peers.Expect(n), peers.Hear("fd"), peers.Expect(n), peers.ExpectEOF(0), peers.Send(1))
		b := start(t, p, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Send(n), pass, peers.Send(n), peers.FIN(), peers.Expect(1))
		b.expect(1, Normal)
	}, []path{{listen: peers.Unix, server: peers.V4}, {listen: peers.Unix, server: peers.Unix}})
}
