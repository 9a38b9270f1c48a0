package kernel

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What was sent before a reset is still read after it. The error comes behind it.
func TestBytesBeforeAResetAreReadable(t *testing.T) {
	begin(t)
	a, b := pair(t)
	write(t, a, "0123456789")
	await(t, b, unix.POLLIN)
	resetNow(t, a)
	await(t, b, unix.POLLHUP)
	n, err := drain(t, b)
	want(t, "the end", err, unix.ECONNRESET)
	if n != 10 {
		t.Fatalf("read %d bytes, want 10", n)
	}
}

// SO_ERROR clears the error that waits: who has asked for it reads an ordinary end.
func TestSO_ERRORClearsTheError(t *testing.T) {
	begin(t)
	a, b := pair(t)
	resetNow(t, a)
	await(t, b, unix.POLLHUP)
	if e := get(t, b, unix.SOL_SOCKET, unix.SO_ERROR); unix.Errno(e) != unix.ECONNRESET {
		t.Fatalf("SO_ERROR %d, want ECONNRESET", e)
	}
	if n, err := drain(t, b); n != 0 || err != nil {
		t.Fatalf("read %d, %v, want an end without an error", n, err)
	}
}

// A close with SO_LINGER 0 discards what the peer has not taken yet. SIOCOUTQ says beforehand whether there is any.
func TestAResetDiscardsTheSendQueue(t *testing.T) {
	begin(t)
	a, b := pair(t)
	sent := fill(a)
	if n := unacked(t, a); n == 0 {
		t.Fatal("SIOCOUTQ is 0 though the peer is full")
	}
	resetNow(t, a)
	got, err := drain(t, b)
	want(t, "the end", err, unix.ECONNRESET)
	t.Logf("%d of %d bytes arrived", got, sent)
	if got >= sent {
		t.Fatal("nothing was discarded")
	}
}

// With SIOCOUTQ at 0 the peer's kernel has everything, and a reset takes nothing away.
func TestNothingIsLostOnceSIOCOUTQIsZero(t *testing.T) {
	begin(t)
	a, b := pair(t)
	write(t, a, "0123456789")
	for until := time.Now().Add(patience); unacked(t, a) > 0 && time.Now().Before(until); {
		ready(a, 0, time.Millisecond)
	}
	resetNow(t, a)
	if n, err := drain(t, b); n != 10 || err != unix.ECONNRESET {
		t.Fatalf("read %d, %v, want 10 bytes and the reset", n, err)
	}
}

func unacked(t *testing.T, fd int) int {
	t.Helper()
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	check(t, err)
	return n
}

// Closing a socket with bytes that were not read is a reset, though nobody asked for one.
func TestCloseWithUnreadBytesIsAReset(t *testing.T) {
	begin(t)
	a, b := pair(t)
	write(t, a, "x")
	await(t, b, unix.POLLIN)
	shut(b)
	_, err := drain(t, a)
	want(t, "the end", err, unix.ECONNRESET)
}

// A connect to a free port of the ephemeral range may be given that port as its source, and is then connected to
// itself. IP_LOCAL_PORT_RANGE makes certain here what is otherwise a matter of chance.
func TestAConnectCanReachItself(t *testing.T) {
	begin(t)
	port := freePort(t)
	fd := tcp(t)
	onlyPort(t, fd, port)
	connect(t, fd, port)
	local, err := unix.Getsockname(fd)
	check(t, err)
	peer, err := unix.Getpeername(fd)
	check(t, err)
	if *local.(*unix.SockaddrInet4) != *peer.(*unix.SockaddrInet4) {
		t.Fatalf("local %v, peer %v, want the same", local, peer)
	}
	write(t, fd, "x")
	await(t, fd, unix.POLLIN)
}

// freePort is a port on which nobody listens.
func freePort(t *testing.T) int {
	t.Helper()
	ln := listener(t)
	defer shut(ln)
	return portOf(t, ln)
}

const ipLocalPortRange = 51 // IP_LOCAL_PORT_RANGE, Linux 6.3

func onlyPort(t *testing.T, fd, port int) {
	t.Helper()
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipLocalPortRange, port<<16|port); err != nil {
		t.Skip("IP_LOCAL_PORT_RANGE: ", err)
	}
}

// bind(address, 0) takes a port for itself alone, whatever the destination. With IP_BIND_ADDRESS_NO_PORT connect
// chooses the port, and one port serves many destinations.
func TestBindToAnAddressSpendsThePort(t *testing.T) {
	begin(t)
	port := freePort(t)
	one, two := tcp(t), tcp(t)
	onlyPort(t, one, port)
	onlyPort(t, two, port)
	check(t, unix.Bind(one, at(0)))
	want(t, "the second bind", unix.Bind(two, at(0)), unix.EADDRINUSE)
	shut(one)
	shut(two)
	for range 2 {
		ln, fd := listener(t), tcp(t)
		onlyPort(t, fd, port)
		set(t, fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		check(t, unix.Bind(fd, at(0)))
		connect(t, fd, portOf(t, ln))
		if got := portOf(t, fd); got != port {
			t.Fatalf("from port %d, want %d", got, port)
		}
	}
}

// TCP_USER_TIMEOUT takes the place of the keepalive count: with it one unanswered probe is not the end, and a hundred
// that may be unanswered do not help. It takes two seconds, since the kernel counts keepalive in seconds.
func TestUserTimeoutOverridesTheKeepaliveCount(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two seconds")
	}
	begin(t)
	counted := silent(t, 1, 0)
	patient := silent(t, 1, 60_000)
	hasty := silent(t, 100, 1100)
	for _, fd := range []int{counted, hasty} {
		await(t, fd, unix.POLLHUP)
		if e := get(t, fd, unix.SOL_SOCKET, unix.SO_ERROR); unix.Errno(e) != unix.ETIMEDOUT {
			t.Errorf("ended with %v, want ETIMEDOUT", unix.Errno(e))
		}
	}
	if ready(patient, unix.POLLHUP, moment) {
		t.Error("ended by the count, in spite of the user timeout")
	}
}

// silent is a connection whose peer answers no more: a filter drops what it is sent.
func silent(t *testing.T, count, userTimeout int) int {
	t.Helper()
	a, b := pair(t)
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	err := unix.SetsockoptSockFprog(b, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	if err != nil {
		t.Skip("a filter on a socket: ", err)
	}
	set(t, a, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1)
	set(t, a, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1)
	set(t, a, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, count)
	set(t, a, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout)
	set(t, a, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	return a
}
