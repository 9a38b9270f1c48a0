package kernel

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
)

// The tools: raw descriptors, so that the Go runtime's own poller has no part in what is shown.

var loopback = [4]byte{127, 0, 0, 1}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func at(port int) *unix.SockaddrInet4 { return &unix.SockaddrInet4{Addr: loopback, Port: port} }

// tcp is a TCP socket that is closed with the test.
func tcp(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	closing(t, fd)
	return fd
}

// open are the descriptors that a test has yet to close, by number.
var open = map[int]bool{}

func closing(t *testing.T, fd int) {
	open[fd] = true
	t.Cleanup(func() { shut(fd) })
}

// shut closes a descriptor now and not again later.
func shut(fd int) {
	if open[fd] {
		delete(open, fd)
		unix.Close(fd)
	}
}

func set(t *testing.T, fd, level, name, value int) {
	t.Helper()
	check(t, unix.SetsockoptInt(fd, level, name, value))
}

func get(t *testing.T, fd, level, name int) int {
	t.Helper()
	v, err := unix.GetsockoptInt(fd, level, name)
	check(t, err)
	return v
}

func portOf(t *testing.T, fd int) int {
	t.Helper()
	sa, err := unix.Getsockname(fd)
	check(t, err)
	return sa.(*unix.SockaddrInet4).Port
}

// listener listens on a free port of loopback.
func listener(t *testing.T) int {
	t.Helper()
	fd := tcp(t)
	check(t, unix.Bind(fd, at(0)))
	check(t, unix.Listen(fd, 128))
	return fd
}

// dial connects to a port of loopback and waits until that is done.
func dial(t *testing.T, port int) int {
	t.Helper()
	fd := tcp(t)
	connect(t, fd, port)
	return fd
}

func connect(t *testing.T, fd, port int) {
	t.Helper()
	if err := unix.Connect(fd, at(port)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		t.Fatal("connect: ", err)
	}
	await(t, fd, unix.POLLOUT)
	if e := get(t, fd, unix.SOL_SOCKET, unix.SO_ERROR); e != 0 {
		t.Fatal("connect: ", unix.Errno(e))
	}
}

// accept takes one connection, which is there or on its way.
func accept(t *testing.T, ln int) int {
	t.Helper()
	await(t, ln, unix.POLLIN)
	fd, _, err := unix.Accept4(ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	check(t, err)
	closing(t, fd)
	return fd
}

// pair is a connection: two descriptors, each the other's peer.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	ln := listener(t)
	a = dial(t, portOf(t, ln))
	b = accept(t, ln)
	shut(ln)
	set(t, a, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	set(t, b, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return a, b
}

const patience = 5 * time.Second

// await waits for events of a descriptor.
func await(t *testing.T, fd int, events int16) {
	t.Helper()
	if !ready(fd, events, patience) {
		t.Fatalf("descriptor %d: nothing of %#x within %v", fd, events, patience)
	}
}

func ready(fd int, events int16, within time.Duration) bool {
	until := time.Now().Add(within)
	for {
		left := max(0, time.Until(until))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(left.Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}

func write(t *testing.T, fd int, text string) {
	t.Helper()
	n, err := unix.Write(fd, []byte(text))
	check(t, err)
	if n != len(text) {
		t.Fatalf("wrote %d of %d bytes", n, len(text))
	}
}

// fill writes until the peer takes no more, and returns how much that was.
func fill(fd int) (sum int) {
	block := make([]byte, 64<<10)
	for {
		n, err := unix.Write(fd, block)
		if err != nil {
			return sum
		}
		sum += n
	}
}

// drain reads until there is nothing more, and returns how much that was and how it ended: nil is the FIN.
func drain(t *testing.T, fd int) (sum int, end error) {
	t.Helper()
	block := make([]byte, 64<<10)
	for {
		await(t, fd, unix.POLLIN)
		n, err := unix.Read(fd, block)
		if n <= 0 {
			return sum, err
		}
		sum += n
	}
}

// resetNow closes with a reset.
func resetNow(t *testing.T, fd int) {
	t.Helper()
	check(t, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	shut(fd)
}

func epoll(t *testing.T) int {
	t.Helper()
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	check(t, err)
	closing(t, ep)
	return ep
}

func watch(t *testing.T, ep, fd int, events uint32) {
	t.Helper()
	check(t, unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// moment is how long a test looks for an event that must not come. Loopback delivers at once, or as soon as a busy
// machine gets to it.
const moment = 30 * time.Millisecond

// event is the next event of an epoll set, 0 when there is none within the time.
func event(ep int, within time.Duration) uint32 {
	var events [1]unix.EpollEvent
	until := time.Now().Add(within)
	for {
		n, err := unix.EpollWait(ep, events[:], int(max(0, time.Until(until)).Milliseconds()))
		switch {
		case err == unix.EINTR:
		case n < 1:
			return 0
		default:
			return events[0].Events
		}
	}
}

func pipe(t *testing.T, size int) (r, w int) {
	t.Helper()
	var fds [2]int
	check(t, unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC))
	closing(t, fds[0])
	closing(t, fds[1])
	_, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, size)
	check(t, err)
	return fds[0], fds[1]
}

func splice(from, to int) (int, error) {
	n, err := unix.Splice(from, nil, to, nil, 1<<20, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
	return int(n), err
}

func want(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// begin comes first in each proof: nothing may be left behind.
func begin(t *testing.T) { t.Helper(); leak.Check(t) }

// TestMain is also the beginning of the children, see process_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv("SLUICE_KERNEL_CHILD"); role != "" {
		os.Exit(child(role))
	}
	os.Exit(m.Run())
}
