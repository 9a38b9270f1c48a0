package cli

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/peer"
)

// one is a configuration of one listener and one server.
func one(at, server1 string, lines ...string) string {
	return head + listener("web", at, "p", lines...) + pool("p", []string{server("s1", server1)})
}

// wantRefused wants that new clients are refused within a time that a person calls at once.
func wantRefused(t *testing.T, address string, since time.Time) {
	t.Helper()
	eventually(t, "new clients are refused", func() bool {
		c, err := dial(address)
		if err == nil {
			c.Close()
		}
		return errors.Is(err, unix.ECONNREFUSED)
	})
	// The contract says 100 ms; a busy machine is forgiven some.
	if took := time.Since(since); took > 500*time.Millisecond {
		t.Errorf("new clients were refused only %v after the signal", took)
	}
}

// SIGTERM and SIGINT close the listeners at once; the sessions go on, and when the last has ended the exit status is 0.
func TestDrain(t *testing.T) {
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			s1 := named(t, peer.V4, "s1")
			at := place(t)
			p := serve(t, inFile(t, one(at, s1.Addr())))
			sessions := openMany(t, at, 5)
			p.signal(s)
			wantRefused(t, at, time.Now())
			p.await("msg=stopping")
			wantAlive(t, sessions...)
			p.signal(unix.SIGHUP) // a reload while it stops changes nothing
			wantAlive(t, sessions...)
			for _, s := range sessions[1:] {
				s.Close()
			}
			wantAlive(t, sessions[0])
			if !p.running() {
				t.Error("the process did not wait for its last session")
			}
			sessions[0].Close()
			p.wantExit(exitFine)
			if p.err.has("sessions cut") {
				t.Error("a session was cut")
			}
		})
	}
}

// After process.shutdown_timeout what is left is cut, and told; the exit status stays 0 (RLD-05).
func TestShutdownTimeout(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	text := "[process]\nshards = 2\nshutdown_timeout = \"700ms\"\n" + listener("web", at, "p") + pool("p", []string{server("s1", s1.Addr())})
	p := serve(t, inFile(t, text))
	sessions := openMany(t, at, 6)
	p.signal(unix.SIGTERM)
	begun := time.Now()
	wantAlive(t, sessions...)
	for _, s := range sessions {
		s.wantEnd(t, patience)
	}
	if took := time.Since(begun); took < 650*time.Millisecond {
		t.Errorf("sessions were cut %v after the signal, want 700ms", took)
	}
	p.wantExit(exitFine)
	if !p.err.has("sessions=6") {
		t.Error("nothing says how many sessions were cut")
	}
}

// A second signal does not wait.
func TestSecondSignal(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, one(at, s1.Addr())))
	s := open(t, at)
	p.signal(unix.SIGTERM)
	p.await("msg=stopping")
	wantAlive(t, s)
	p.signal(unix.SIGINT)
	s.wantEnd(t, patience)
	p.wantExit(exitFine)
}

// A signal that comes before it serves is not lost.
func TestStopWhileStarting(t *testing.T) {
	for n := range 5 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := start(t, []string{"run", "-c", inFile(t, one(place(t), "127.0.0.1:1"))})
			p.await("msg=limits")
			p.signal(unix.SIGTERM)
			p.wantExit(exitFine)
		})
	}
}

// A stop in the middle of traffic: who was taken in is served, who was not is refused; nobody is reset.
func TestStopUnderLoad(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, one(at, s1.Addr())))
	load := startCrowd(at, 4)
	load.awaitServed(t, 100)
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
	for _, err := range load.stop() {
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("a client that was taken in: %v", err)
		}
	}
}

// A restart does not wait for the sessions of the process before, whether that was killed or still drains.
func TestRestartAtOnce(t *testing.T) {
	for _, s := range []unix.Signal{unix.SIGKILL, unix.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
			at := place(t)
			old := serve(t, inFile(t, one(at, s1.Addr())))
			sessions := openMany(t, at, 5)
			old.signal(s)
			if s == unix.SIGKILL {
				old.wait()
				sessions = nil
			} else {
				wantRefused(t, at, time.Now())
			}
			serve(t, inFile(t, one(at, s2.Addr())))
			if got := census(at, 20); got["s2"] != 20 {
				t.Errorf("answers %v, want 20 of s2", got)
			}
			wantAlive(t, sessions...)
		})
	}
}

// A process that stood still for a while goes on where it was; who connected meanwhile is served.
func TestStoodStill(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, one(at, s1.Addr())))
	session := open(t, at)
	p.signal(unix.SIGSTOP)
	var waiting []net.Conn
	for range 200 {
		c, err := dial(at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		waiting = append(waiting, c)
	}
	p.signal(unix.SIGCONT)
	for _, c := range waiting {
		if who, err := hear(c); who != "s1" {
			t.Fatalf("a client that waited: %q, %v", who, err)
		}
	}
	wantAlive(t, session)
}
