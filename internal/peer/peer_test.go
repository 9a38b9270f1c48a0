package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/leak"
)

var everywhere = []string{V4, V6, Unix}

func forEachNetwork(t *testing.T, test func(t *testing.T, where string)) {
	for _, where := range everywhere {
		t.Run(where, func(t *testing.T) {
			leak.Check(t)
			test(t, where)
		})
	}
}

func TestHalfClose(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, where string) {
		server := Listen(t, where, Expect(1<<10), ExpectEOF(0), Send(256<<10), FIN())
		client := Dial(t, server.Addr())
		client.Do(Send(1<<10), FIN(), Expect(256<<10), ExpectEOF(0))
		server.Wait(1)
		if client.Sent() != 1<<10 || client.Received() != 256<<10 {
			t.Errorf("sent %d, received %d", client.Sent(), client.Received())
		}
	})
}

func TestResetIsSeen(t *testing.T) {
	leak.Check(t)
	server := Listen(t, V4, Send(100), Hear("go"), RST())
	Visit(t, server.Addr(), Expect(100), Say("go"), ExpectRST(time.Second))
	server.Wait(1)
}

func TestReadyMadeServers(t *testing.T) {
	const n = 1 << 20
	full := Script(Both(Script(Send(n), FIN()), Script(ExpectEcho(n), ExpectEOF(0))))
	rows := []struct {
		name           string
		server, client []Step
	}{
		{"echo", Script(Echo()), full},
		{"greeting", Script(Greet(20)), append(Script(Expect(20)), full...)},
		{"sink", Script(Sink()), Script(Send(n), FIN(), ExpectEOF(0))},
		{"source", Script(Source()), Script(Expect(n), Close())},
		{"token", Script(EchoToken()), Script(Token(0xfeed), Repeat(9, Send(800), Expect(800)), FIN(), ExpectEOF(0))},
		{"tagged", Script(ReadTag(), Expect(n), Send(n)), Script(Tag(7), Send(n), Expect(n), ExpectEOF(0))},
		{"slow", Script(SendAt(200, 4000), ExpectAt(200, 4000)), Script(Expect(200), Send(200), ExpectEOF(0))},
	}
	for _, row := range rows {
		forEachNetwork(t, func(t *testing.T, where string) {
			t.Log(row.name)
			server := Listen(t, where, row.server...)
			Visit(t, server.Addr(), row.client...)
			server.Wait(1)
		})
	}
}

// complaints is a testing.TB that keeps what it is told.
type complaints struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (c *complaints) Errorf(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, fmt.Sprintf(format, a...))
}

func (c *complaints) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.said, "\n")
}

// What went wrong between two peers has to be seen by one of them.
func TestFaultsAreSeen(t *testing.T) {
	corrupt := func(n int, from, to int64) Step { // sends n bytes of place `from` as if they stood at `to`
		return func(c *Conn) error {
			c.out.pos = from
			err := c.send(int64(n), chunk, 0)
			c.out.pos = to
			return err
		}
	}
	rows := []struct {
		name           string
		server, client []Step
		want           string
	}{
		{"a byte lost", Script(Send(1000), corrupt(1000, 1001, 2001)), Script(Expect(2000)), "at byte 1000 of stream 1"},
		{"words lost", Script(Send(4096), corrupt(4096, 8192, 0)), Script(Expect(8192)), "that is byte 8192 of stream 1"},
		{"words doubled", Script(Send(4096), corrupt(4096, 0, 0)), Script(Expect(8192)), "that is byte 0 of stream 1"},
		{"cross-talk", Script(Tag(5), Send(64)), Script(ReadTag(), Tag(6), Expect(64)), "of stream 10)"},
		{"foreign token", Script(Token(1), Send(64)), Script(Token(2), Expect(64)), "at byte 0 of stream 2"},
		{"cut short", Script(Send(10), FIN()), Script(Expect(11)), "after 10: EOF"},
		{"byte instead of EOF", Script(Send(11)), Script(Expect(10), ExpectEOF(0)), "expect EOF: got 1 bytes"},
		{"EOF instead of RST", Script(FIN()), Script(ExpectRST(0)), "expect RST: got EOF"},
		{"RST instead of EOF", Script(Hear("."), RST()), Script(Say("."), ExpectEOF(0)), "connection reset by peer"},
		{"no EOF", Script(Hear(".")), Script(ExpectEOF(20 * time.Millisecond)), "i/o timeout"},
		{"no silence", Script(Say(".")), Script(ExpectSilence(time.Second)), "expect silence"},
		{"another word", Script(Say("yes")), Script(Hear("no!")), `hear "no!": got "yes"`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			leak.Check(t)
			told := &complaints{TB: t}
			server := Listen(&complaints{TB: t}, V4, row.server...)
			if Visit(told, server.Addr(), row.client...) {
				t.Error("the fault was not seen")
			}
			if !strings.Contains(told.all(), row.want) {
				t.Errorf("got %q, want %q in it", told.all(), row.want)
			}
		})
	}
}

func TestServerFaultsFailTheTest(t *testing.T) {
	leak.Check(t)
	told := &complaints{TB: t}
	server := Listen(told, V4, Expect(10))
	Visit(t, server.Addr(), Send(9))
	server.Wait(1)
	if want := "server: step 1 of 1: expect 10 bytes: after 9: EOF"; told.all() != want {
		t.Errorf("got %q, want %q", told.all(), want)
	}
}

// A test that ends in the middle of scripts hears nothing from them.
func TestCloseCutsScriptsShort(t *testing.T) {
	leak.Check(t)
	told := &complaints{TB: t}
	server := Listen(told, V4, Hold(time.Hour))
	client := Dial(told, server.Addr())
	client.Go(Expect(1))
	other := Dial(told, server.Addr())
	other.Go(Until(make(chan struct{})))
	client.Close()
	other.Close()
	server.Close()
	if told.all() != "" {
		t.Errorf("got %q", told.all())
	}
}

func TestPausedReaderBlocksTheSender(t *testing.T) {
	leak.Check(t)
	const n = 16 << 20
	sent := make(chan struct{})
	server := Listen(t, V4, Send(n), Call(func() { close(sent) }))
	client := Dial(t, server.Addr())
	client.Do(Buffer(64<<10), Expect(10), Hold(50*time.Millisecond))
	select {
	case <-sent:
		t.Errorf("%d bytes went out to a reader that had paused", n)
	default:
	}
	client.Do(Expect(n-10), ExpectEOF(0))
}

func TestRefusing(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, where string) {
		server := Refusing(t, where)
		if _, err := TryDial(t, server.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFull(t *testing.T) {
	for _, where := range []string{V4, V6} {
		t.Run(where, func(t *testing.T) {
			leak.Check(t)
			server := Full(t, where)
			var timeout net.Error
			if _, err := dial(server.Addr(), 100*time.Millisecond); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("got %v, want a timeout", err)
			}
		})
	}
	t.Run(Unix, func(t *testing.T) {
		leak.Check(t)
		server := Full(t, Unix)
		if _, err := dial(server.Addr(), time.Second); !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want EAGAIN", err)
		}
	})
}

func TestAcceptByHand(t *testing.T) {
	leak.Check(t)
	server := Listen(t, V4)
	client := Dial(t, server.Addr()) // waits in the backlog
	client.Go(Send(10), Expect(5))
	if n := server.Accepted(); n != 0 {
		t.Errorf("%d accepted without Accept", n)
	}
	c := server.Accept()
	c.Do(Expect(10), Send(5))
	client.Wait()
	if server.Accepted() != 1 || server.Open() != 1 {
		t.Errorf("%d accepted, %d open", server.Accepted(), server.Open())
	}
}

func BenchmarkPattern(b *testing.B) {
	buf := make([]byte, chunk)
	var out, in pattern
	b.SetBytes(chunk)
	for b.Loop() {
		out.fill(buf)
		if err := in.check(buf); err != nil {
			b.Fatal(err)
		}
	}
}
