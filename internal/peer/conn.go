package peer

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a step may go without progress before it fails.
const Patience = 10 * time.Second

// Conn is one side of a conversation. One script plays on it at a time.
type Conn struct {
	t    testing.TB
	name string // client or server, for messages
	net  net.Conn

	out, in, back pattern // sent, expected, and expected back from an echo

	running   sync.WaitGroup
	closeOnce sync.Once
	closed    chan struct{}
}

// The streams of a conversation that no Tag has renamed.
const (
	upStream   = 0 // client to server
	downStream = 1
)

// Dial connects to address ("127.0.0.1:80", "[::1]:80", "unix:/path") or ends
// the test. The connection is closed with the test at the latest.
func Dial(t testing.TB, address string) *Conn {
	t.Helper()
	c, err := TryDial(t, address)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	return c
}

// TryDial is Dial for a connection that may fail, from any goroutine.
func TryDial(t testing.TB, address string) (*Conn, error) {
	c, err := connect(t, address)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// Visit dials, plays a script and closes: for clients by the thousand, from
// any goroutine that the test waits for. It reports whether all went as written.
func Visit(t testing.TB, address string, script ...Step) bool {
	t.Helper()
	c, err := connect(t, address)
	if err != nil {
		t.Errorf("client: %v", err)
		return false
	}
	defer c.Close()
	return c.Do(script...)
}

func connect(t testing.TB, address string) (*Conn, error) {
	raw, err := dial(address, Patience)
	if err != nil {
		return nil, err
	}
	c := newConn(t, "client", raw)
	c.setStreams(upStream, downStream)
	return c, nil
}

func dial(address string, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout}
	dialer.SetMultipathTCP(false)
	network, addr := split(address)
	return dialer.Dial(network, addr)
}

func newConn(t testing.TB, name string, raw net.Conn) *Conn {
	return &Conn{t: t, name: name, net: raw, closed: make(chan struct{})}
}

func (c *Conn) setStreams(out, in uint64) {
	c.out.stream, c.back.stream, c.in.stream = out, out, in
}

// Do plays a script now and reports whether all of it came out as written.
func (c *Conn) Do(script ...Step) bool {
	c.t.Helper()
	err := c.play(script)
	if err != nil && !c.isClosed() {
		c.t.Errorf("%s: %v", c.name, err)
	}
	return err == nil
}

// Go plays a script in the background; Wait waits for it.
func (c *Conn) Go(script ...Step) {
	c.running.Go(func() { c.Do(script...) })
}

// Wait returns when the scripts started with Go have ended.
func (c *Conn) Wait() { c.running.Wait() }

// Try plays a script and returns its error instead of failing the test.
func (c *Conn) Try(script ...Step) error { return c.play(script) }

func (c *Conn) play(script []Step) error {
	for i, step := range script {
		if err := step(c); err != nil {
			return fmt.Errorf("step %d of %d: %w", i+1, len(script), err)
		}
	}
	return nil
}

// Close ends the connection, and with it every script on it, and returns when
// they have ended. It may be called again, from any goroutine but a script's.
func (c *Conn) Close() {
	c.hangUp()
	c.running.Wait()
}

func (c *Conn) hangUp() {
	c.closeOnce.Do(func() {
		close(c.closed)
		_ = c.net.Close()
	})
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Raw is the socket, for steps of a test's own.
func (c *Conn) Raw() net.Conn { return c.net }

// Sent and Received count the patterned bytes so far. Like the steps, they
// belong to the goroutine that plays.
func (c *Conn) Sent() int64     { return c.out.pos }
func (c *Conn) Received() int64 { return c.in.pos }

func (c *Conn) read(b []byte) (int, error) {
	if err := c.net.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return 0, err
	}
	return c.net.Read(b)
}

func (c *Conn) write(b []byte) (int, error) {
	if err := c.net.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return 0, err
	}
	return c.net.Write(b)
}

// control runs f on the descriptor.
func (c *Conn) control(f func(fd int) error) error {
	raw, err := c.net.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	return controlFD(raw, f)
}

func controlFD(raw syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError("socket option", inner)
}

// split turns an address as configurations write it into Go's two words.
func split(address string) (network, addr string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}
