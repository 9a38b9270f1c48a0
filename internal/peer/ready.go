package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ready-made scripts. All of them treat the other side's end, clean or not, as
// the end of the conversation; a test that cares how it ends writes it out.

// Echo sends everything back as it comes, then FIN after FIN.
func Echo() Step {
	return func(c *Conn) error {
		buf := make([]byte, chunk)
		for {
			n, err := c.read(buf)
			if _, err := c.write(buf[:n]); err != nil {
				return unlessGone(err)
			}
			if err != nil {
				return unlessGone(err)
			}
		}
	}
}

// Greet speaks first: n bytes of the pattern, then Echo.
func Greet(n int64) Step {
	return func(c *Conn) error { return c.play(Script(Send(n), Echo())) }
}

// Sink reads the other side's pattern to its end and checks it.
func Sink() Step {
	return func(c *Conn) error {
		return unlessGone(c.expect(&c.in, math.MaxInt64, chunk, 0))
	}
}

// Source sends the pattern without end.
func Source() Step {
	return func(c *Conn) error {
		return unlessGone(c.send(math.MaxInt64, chunk, 0))
	}
}

// unlessGone drops the errors that only say that the other side has left.
func unlessGone(err error) error {
	for _, gone := range []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// Token makes 8 bytes, repeated, the pattern of both directions: whoever reads
// a byte of another session sees it. Follow it with Send and Expect in
// multiples of 8.
func Token(token uint64) Step {
	return func(c *Conn) error {
		c.out = pattern{stream: token, token: true}
		c.in, c.back = c.out, c.out
		return nil
	}
}

// EchoToken takes the first 8 bytes as the session's token, sends them back,
// and goes on to echo as long as it hears nothing but that token.
func EchoToken() Step {
	return func(c *Conn) error {
		token, err := c.readTag()
		if err != nil {
			return unlessGone(err)
		}
		if err := c.play(Script(Token(token), Send(8))); err != nil {
			return unlessGone(err)
		}
		for err == nil {
			err = c.echoChecked()
		}
		return unlessGone(err)
	}
}

func (c *Conn) echoChecked() error {
	buf := make([]byte, 4<<10)
	n, err := c.read(buf)
	if bad := c.in.check(buf[:n]); bad != nil {
		return bad
	}
	if n > 0 {
		if _, err := c.write(buf[:n]); err != nil {
			return err
		}
	}
	return err
}

func tag(id uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, id))
}

func (c *Conn) readTag() (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(reader{c}, b[:])
	return binary.BigEndian.Uint64(b[:]), err
}

// Refusing is an address that refuses connections: bound, so that nobody else
// gets the port, but not listening. where is V4, V6 or Unix.
func Refusing(t testing.TB, where string) *Server {
	t.Helper()
	s := newServer(t)
	fd, err := s.bind(where)
	if err != nil {
		t.Fatalf("refusing server: %v", err)
	}
	s.closers = append(s.closers, func() { _ = unix.Close(fd) })
	return s
}

func (s *Server) bind(where string) (int, error) {
	var family int
	var at unix.Sockaddr
	switch where {
	case V4:
		family, at = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	case V6:
		family, at = unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte(net.IPv6loopback)}
	case Unix:
		path, err := s.socketPath()
		if err != nil {
			return -1, err
		}
		family, at = unix.AF_UNIX, &unix.SockaddrUnix{Name: path}
	default:
		return -1, fmt.Errorf("cannot bind %q", where)
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, at); err != nil {
		_ = unix.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}
	s.address, err = boundTo(fd)
	return fd, err
}

func boundTo(fd int) (string, error) {
	at, err := unix.Getsockname(fd)
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return (&net.TCPAddr{IP: at.Addr[:], Port: at.Port}).String(), err
	case *unix.SockaddrInet6:
		return (&net.TCPAddr{IP: at.Addr[:], Port: at.Port}).String(), err
	case *unix.SockaddrUnix:
		return "unix:" + at.Name, err
	}
	return "", os.NewSyscallError("getsockname", err)
}

// Full is a server whose backlog is full: a connect to it gets no answer (a
// unix connect is told to try again). where is as in Listen.
func Full(t testing.TB, where string) *Server {
	t.Helper()
	s := Listen(t, where)
	raw, err := s.listener.(syscall.Conn).SyscallConn()
	if err == nil {
		// A second listen(2) sets a new backlog; 0 leaves room for one.
		err = controlFD(raw, func(fd int) error { return unix.Listen(fd, 0) })
	}
	if err != nil {
		t.Fatalf("full server: %v", err)
	}
	for range 8 {
		if !s.takesOneMore() {
			return s
		}
	}
	t.Fatalf("full server: its backlog does not fill up")
	return nil
}

func (s *Server) takesOneMore() bool {
	c, err := dial(s.address, 200*time.Millisecond)
	if err != nil {
		return false
	}
	s.closers = append(s.closers, func() { _ = c.Close() })
	return true
}
