package kernel

import (
	"context"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// group is n listening sockets on one port.
func group(t *testing.T, n int) (fds []int, port int) {
	t.Helper()
	for range n {
		fd := tcp(t)
		set(t, fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		check(t, unix.Bind(fd, at(port)))
		check(t, unix.Listen(fd, 128))
		port = portOf(t, fd)
		fds = append(fds, fd)
	}
	return fds, port
}

func sysctl(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(text))
}

// Closing one listener of a SO_REUSEPORT group resets the connections that wait in its queue.
func TestCloseResetsTheQueue(t *testing.T) {
	begin(t)
	if sysctl("net/ipv4/tcp_migrate_req") == "1" {
		t.Skip("net.ipv4.tcp_migrate_req = 1 moves the queue to the others")
	}
	resets, all := closeOneOfTwo(t)
	t.Logf("%d of %d connections were reset", resets, all)
	if resets == 0 || resets == all {
		t.Fatal("want some, those of the closed listener")
	}
}

// With net.ipv4.tcp_migrate_req (Linux 5.14) they move to the others. It is set in a network namespace of the test's
// own, which goes with its thread.
func TestCloseMovesTheQueueWithMigrateReq(t *testing.T) {
	begin(t)
	ownNetwork(t)
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_migrate_req", []byte("1"), 0); err != nil {
		t.Skip(err)
	}
	if resets, all := closeOneOfTwo(t); resets != 0 {
		t.Fatalf("%d of %d connections were reset, want none", resets, all)
	}
}

// ownNetwork gives the test a network namespace with a loopback of its own. The thread is not unlocked, so it ends with
// the test.
func ownNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("unshare: ", err)
	}
	up, err := unix.NewIfreq("lo")
	check(t, err)
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	check(t, unix.IoctlIfreq(tcp(t), unix.SIOCSIFFLAGS, up))
}

// closeOneOfTwo connects to a group of two, closes one, and takes what is left from the other.
func closeOneOfTwo(t *testing.T) (resets, all int) {
	t.Helper()
	fds, port := group(t, 2)
	var clients []int
	for range 64 {
		clients = append(clients, dial(t, port))
	}
	shut(fds[0])
	taken := 0
	for ; ready(fds[1], unix.POLLIN, moment); taken++ {
		shut(accept(t, fds[1]))
	}
	for _, c := range clients {
		if get(t, c, unix.SOL_SOCKET, unix.SO_ERROR) == int(unix.ECONNRESET) {
			resets++
		}
	}
	if taken+resets != len(clients) {
		t.Fatalf("%d were reset and %d accepted of %d", resets, taken, len(clients))
	}
	return resets, len(clients)
}

// A socket that was bound without SO_REUSEPORT keeps everybody out, and may join a group afterwards.
func TestJoinAGroupAfterBind(t *testing.T) {
	begin(t)
	first, second := tcp(t), tcp(t)
	set(t, second, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	check(t, unix.Bind(first, at(0)))
	port := portOf(t, first)
	want(t, "bind before it joins", unix.Bind(second, at(port)), unix.EADDRINUSE)
	set(t, first, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	check(t, unix.Bind(second, at(port)))
	check(t, unix.Listen(first, 128))
	check(t, unix.Listen(second, 128))
	for range 64 {
		dial(t, port)
	}
	shut(accept(t, first))
	shut(accept(t, second))
}

// A first descriptor without SO_REUSEPORT is refused where anybody listens, also on an address that only overlaps.
// A socket with SO_REUSEPORT would be let in.
func TestOverlapIsRefused(t *testing.T) {
	begin(t)
	fds, port := group(t, 1)
	for _, ip := range [][4]byte{loopback, {}} {
		plain, sharing := tcp(t), tcp(t)
		set(t, plain, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		want(t, "bind", unix.Bind(plain, &unix.SockaddrInet4{Addr: ip, Port: port}), unix.EADDRINUSE)
		set(t, sharing, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		check(t, unix.Bind(sharing, &unix.SockaddrInet4{Addr: ip, Port: port}))
	}
	shut(fds[0])
}

// What is set on a listener holds for the connections that it accepts.
func TestAcceptedInherit(t *testing.T) {
	begin(t)
	ln := listener(t)
	options := []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 61},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 11},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 91000},
	}
	for _, o := range options {
		set(t, ln, o.level, o.name, o.value)
	}
	dial(t, portOf(t, ln))
	fd := accept(t, ln)
	for _, o := range options {
		if got := get(t, fd, o.level, o.name); got != o.value {
			t.Errorf("option %d of level %d: got %d, want %d", o.name, o.level, got, o.value)
		}
	}
}

// Go's net.Listen makes MPTCP sockets where the kernel has them, unless told not to.
func TestGoListensWithMPTCP(t *testing.T) {
	begin(t)
	if sysctl("net/mptcp/enabled") != "1" {
		t.Skip("this kernel has no MPTCP, or it is off")
	}
	for _, on := range []bool{true, false} {
		var lc net.ListenConfig
		if !on {
			lc.SetMultipathTCP(false)
		}
		if got := protocolOf(t, &lc); (got == unix.IPPROTO_MPTCP) != on {
			t.Errorf("protocol %d with MPTCP %v", got, on)
		}
	}
}

func protocolOf(t *testing.T, lc *net.ListenConfig) (protocol int) {
	t.Helper()
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer ln.Close()
	raw, err := ln.(*net.TCPListener).SyscallConn()
	check(t, err)
	check(t, raw.Control(func(fd uintptr) { protocol = get(t, int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL) }))
	return protocol
}

// Without a free descriptor accept fails and the connection stays in the queue: epoll reports it at once again, for
// ever.
func TestAcceptSpinsWithoutDescriptors(t *testing.T) {
	begin(t)
	ln := listener(t)
	ep := epoll(t)
	watch(t, ep, ln, unix.EPOLLIN)
	dial(t, portOf(t, ln))
	var before unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	spins := 0
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max})) // what is open stays open
	for begun := time.Now(); time.Since(begun) < moment; spins++ {
		_, _, err := unix.Accept4(ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != unix.EMFILE || event(ep, 0) == 0 {
			break
		}
	}
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	t.Logf("%d turns in %v", spins, moment)
	if spins < 10 {
		t.Fatal("want a loop that does not end")
	}
	accept(t, ln)
}
