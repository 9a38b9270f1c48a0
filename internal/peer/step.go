package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Step is one thing a peer does, or sees happen, on its connection. A test
// that needs another one writes the function.
type Step func(*Conn) error

const chunk = 64 << 10

// Send sends the next n bytes of this side's pattern.
func Send(n int64) Step {
	return func(c *Conn) error { return c.send(n, chunk, 0) }
}

// SendAt sends like Send at a rate in bytes a second.
func SendAt(n, rate int64) Step {
	piece, pause := pace(rate)
	return func(c *Conn) error { return c.send(n, piece, pause) }
}

// Expect reads exactly n bytes and checks that they are the next ones of the
// other side's pattern. It leaves what comes after them alone.
func Expect(n int64) Step {
	return func(c *Conn) error { return c.expect(&c.in, n, chunk, 0) }
}

// ExpectAt reads like Expect, slowly: at a rate in bytes a second.
func ExpectAt(n, rate int64) Step {
	piece, pause := pace(rate)
	return func(c *Conn) error { return c.expect(&c.in, n, piece, pause) }
}

// ExpectEcho expects the next n bytes of this side's own pattern to come back.
func ExpectEcho(n int64) Step {
	return func(c *Conn) error { return c.expect(&c.back, n, chunk, 0) }
}

// pace cuts a rate into pieces, twenty a second or one byte at a time.
func pace(rate int64) (piece int64, pause time.Duration) {
	piece = min(max(1, rate/20), chunk)
	return piece, time.Duration(piece) * time.Second / time.Duration(rate)
}

func (c *Conn) send(n, piece int64, pause time.Duration) error {
	buf := make([]byte, min(n, piece))
	for left := n; left > 0; {
		b := buf[:min(left, piece)]
		c.out.fill(b)
		if _, err := c.write(b); err != nil {
			return fmt.Errorf("send %d bytes: after %d: %w", n, n-left, err)
		}
		left -= int64(len(b))
		if err := c.rest(pause); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) expect(p *pattern, n, piece int64, pause time.Duration) error {
	buf := make([]byte, min(n, piece))
	for left := n; left > 0; {
		got, err := c.read(buf[:min(left, piece)])
		if bad := p.check(buf[:got]); bad != nil {
			return fmt.Errorf("expect %d bytes: %w", n, bad)
		}
		left -= int64(got)
		if err != nil && left > 0 {
			return fmt.Errorf("expect %d bytes: after %d: %w", n, n-left, err)
		}
		if err := c.rest(pause); err != nil {
			return err
		}
	}
	return nil
}

// Say sends a text, Hear expects one. Neither is part of the pattern.
func Say(text string) Step {
	return func(c *Conn) error {
		if _, err := c.write([]byte(text)); err != nil {
			return fmt.Errorf("say %q: %w", text, err)
		}
		return nil
	}
}

func Hear(text string) Step {
	return func(c *Conn) error {
		got := make([]byte, len(text))
		if n, err := io.ReadFull(reader{c}, got); err != nil {
			return fmt.Errorf("hear %q: after %q: %w", text, got[:n], err)
		}
		if string(got) != text {
			return fmt.Errorf("hear %q: got %q", text, got)
		}
		return nil
	}
}

type reader struct{ c *Conn }

func (r reader) Read(b []byte) (int, error) { return r.c.read(b) }

// ExpectEOF expects the other side's FIN, and no byte before it, within d
// (0: Patience).
func ExpectEOF(d time.Duration) Step {
	return func(c *Conn) error {
		if err := c.end(d); err != io.EOF {
			return fmt.Errorf("expect EOF: got %w", err)
		}
		return nil
	}
}

// ExpectRST expects a reset, and no byte before it, within d (0: Patience).
func ExpectRST(d time.Duration) Step {
	return func(c *Conn) error {
		if err := c.end(d); !errors.Is(err, syscall.ECONNRESET) {
			return fmt.Errorf("expect RST: got %w", err)
		}
		return nil
	}
}

// ExpectEnd expects FIN or reset, whichever it is, and no byte before it.
func ExpectEnd(d time.Duration) Step {
	return func(c *Conn) error {
		if err := c.end(d); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			return fmt.Errorf("expect an end: got %w", err)
		}
		return nil
	}
}

// ExpectSilence expects that nothing comes for d, neither byte nor end.
func ExpectSilence(d time.Duration) Step {
	return func(c *Conn) error {
		if err := c.end(d); !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("expect silence: got %w", err)
		}
		return nil
	}
}

// end reads once and returns how the stream ended; a byte is an error too.
func (c *Conn) end(d time.Duration) error {
	if d == 0 {
		d = Patience
	}
	if err := c.net.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	b := make([]byte, 64)
	n, err := c.net.Read(b)
	if n > 0 {
		return fmt.Errorf("%d bytes, % x", n, b[:n])
	}
	return err
}

// FIN shuts the sending side down; reading goes on.
func FIN() Step {
	return func(c *Conn) error {
		if err := c.net.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			return fmt.Errorf("FIN: %w", err)
		}
		return nil
	}
}

// RST closes with SO_LINGER 0: the other side is reset. On a unix socket,
// which knows no resets, it is a close.
func RST() Step {
	return func(c *Conn) error {
		if tcp, ok := c.net.(*net.TCPConn); ok {
			if err := tcp.SetLinger(0); err != nil {
				return fmt.Errorf("RST: %w", err)
			}
		}
		c.hangUp()
		return nil
	}
}

// Close closes in the ordinary way; bytes left unread make the kernel reset.
func Close() Step {
	return func(c *Conn) error {
		c.hangUp()
		return nil
	}
}

// Buffer makes the receive buffer small and keeps it so: a reader that pauses
// is felt by the sender soon. The kernel doubles bytes. 64 KiB (a segment on
// loopback) is small enough; below 32 KiB the stream crawls, some 40 KiB a
// second, and does not always recover when the buffer is made larger again.
func Buffer(bytes int) Step {
	return func(c *Conn) error {
		return c.control(func(fd int) error {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
		})
	}
}

// Hold does nothing for d: no reading, no writing.
func Hold(d time.Duration) Step {
	return func(c *Conn) error { return c.rest(d) }
}

func (c *Conn) rest(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

// Until goes on when ch is closed or delivers, or fails after Patience.
func Until(ch <-chan struct{}) Step {
	return func(c *Conn) error {
		select {
		case <-ch:
			return nil
		case <-c.closed:
			return net.ErrClosed
		case <-time.After(Patience):
			return fmt.Errorf("until: %w", os.ErrDeadlineExceeded)
		}
	}
}

// Call runs f.
func Call(f func()) Step {
	return func(*Conn) error { f(); return nil }
}

// Repeat plays a script n times.
func Repeat(n int, script ...Step) Step {
	return func(c *Conn) error {
		for range n {
			if err := c.play(script); err != nil {
				return err
			}
		}
		return nil
	}
}

// Both plays two scripts at the same time: one that only sends, one that only
// receives. It ends when both have.
func Both(sends, receives []Step) Step {
	return func(c *Conn) error {
		sent := make(chan error, 1)
		go func() { sent <- c.play(sends) }()
		err := c.play(receives)
		return errors.Join(<-sent, err)
	}
}

// Script groups steps, for Both.
func Script(steps ...Step) []Step { return steps }

// Tag sends id (below 1<<23) and makes both directions of this conversation
// id's own: no other tagged conversation has the same bytes.
func Tag(id uint64) Step {
	return func(c *Conn) error {
		c.setStreams(2*id, 2*id+1)
		return Say(tag(id))(c)
	}
}

// ReadTag is the server's side of Tag.
func ReadTag() Step {
	return func(c *Conn) error {
		id, err := c.readTag()
		if err != nil {
			return fmt.Errorf("tag: %w", err)
		}
		c.setStreams(2*id+1, 2*id)
		return nil
	}
}
