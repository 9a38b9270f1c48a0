package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/leak"
	"sluice/internal/peer"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func forEachNetwork(t *testing.T, test func(t *testing.T, where string)) {
	for _, where := range []string{peer.V4, peer.V6, peer.Unix} {
		t.Run(where, func(t *testing.T) {
			leak.Check(t)
			test(t, where)
		})
	}
}

// A probe is no more than a FIN to the server, whoever speaks first.
func TestTCPEndsPolitely(t *testing.T) {
	rows := map[string][]peer.Step{
		"silent server":      peer.Script(peer.ExpectEOF(0)),
		"greeting server":    peer.Script(peer.Say("220 hello\r\n"), peer.ExpectEOF(0)),
		"late greeting":      peer.Script(peer.Hold(20*time.Millisecond), peer.Say("hello"), peer.ExpectEOF(0)),
		"long greeting":      peer.Script(peer.Send(40<<10), peer.ExpectEOF(0)),
		"says a last word":   peer.Script(peer.ExpectEOF(0), peer.Say("bye")),
		"closes at once":     peer.Script(peer.FIN(), peer.ExpectEOF(0)),
		"keeps its side":     peer.Script(peer.ExpectEOF(0), peer.Hold(2*farewell)),
		"slow to close, too": peer.Script(peer.ExpectEOF(0), peer.Hold(farewell/2)),
	}
	for name, script := range rows {
		t.Run(name, func(t *testing.T) {
			forEachNetwork(t, func(t *testing.T, where string) {
				server := peer.Listen(t, where, script...)
				if err := TCP(within(t, 5*time.Second), server.Addr()); err != nil {
					t.Error(err)
				}
				server.Wait(1)
			})
		})
	}
}

// A server that answers and resets before it has read anything is up. Whether
// the reset is there before the connect has returned is a matter of luck, so
// more than a few are needed.
func TestTCPAnswerThenReset(t *testing.T) {
	leak.Check(t)
	server := peer.Listen(t, peer.V4, peer.Say("+PONG\r\n"), peer.RST())
	for range 300 {
		if err := TCP(within(t, 5*time.Second), server.Addr()); err != nil {
			t.Fatal(err)
		}
	}
}

// The luck of the test above, forced: how a connect fails whose handshake was
// done before the reset came.
func TestResetIsNotRefusal(t *testing.T) {
	rows := []struct {
		errno syscall.Errno
		up    bool
	}{{syscall.ECONNRESET, true}, {syscall.EPIPE, true}, {syscall.ECONNREFUSED, false}, {syscall.ETIMEDOUT, false}}
	for _, row := range rows {
		err := fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: row.errno})
		if got := answeredAndReset(err); got != row.up {
			t.Errorf("%v: got %v", row.errno, got)
		}
	}
}

func TestTCPRefused(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, where string) {
		server := peer.Refusing(t, where)
		if err := TCP(within(t, 5*time.Second), server.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTCPNoAnswer(t *testing.T) {
	leak.Check(t)
	server := peer.Full(t, peer.V4)
	begin := time.Now()
	if err := TCP(within(t, 50*time.Millisecond), server.Addr()); err == nil {
		t.Error("a server that does not answer is up")
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("took %s, the context 50ms", took)
	}
}

// Port and source port are the same: with one ephemeral port left the kernel
// has no choice, and nobody listens.
func TestTCPConnectedToItself(t *testing.T) {
	leak.Check(t)
	at := peer.Refusing(t, peer.V4).Addr()
	_, port, _ := strings.Cut(at, ":")
	self := "127.0.0.9:" + port
	local, err := net.ResolveTCPAddr("tcp", self)
	if err != nil {
		t.Fatal(err)
	}
	fixed := *dialer
	fixed.LocalAddr = local
	conn, err := fixed.Dial("tcp", self)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !isSelf(conn) {
		t.Errorf("%s to %s was not noticed", conn.LocalAddr(), conn.RemoteAddr())
	}
	server := peer.Listen(t, peer.V4, peer.ExpectEOF(0))
	other, err := dial(within(t, time.Second), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if isSelf(other) {
		t.Errorf("%s to %s is a server", other.LocalAddr(), other.RemoteAddr())
	}
	_ = other.Close()
	server.Wait(1)
}

func TestOursAreNotTheServers(t *testing.T) {
	for _, ours := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL} {
		if !isOurs(&net.OpError{Err: ours}) {
			t.Errorf("%v is held against the server", ours)
		}
	}
	for _, theirs := range []error{syscall.ECONNREFUSED, syscall.EAGAIN, context.DeadlineExceeded, nil} {
		if isOurs(theirs) {
			t.Errorf("%v is no shortage of ours", theirs)
		}
	}
}
