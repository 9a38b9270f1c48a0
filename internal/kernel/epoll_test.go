package kernel

import (
	"testing"

	"golang.org/x/sys/unix"
)

const edges = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff

// An epoll set is pollable: another one that watches it has an event while something in it is ready.
func TestEpollNests(t *testing.T) {
	begin(t)
	a, b := pair(t)
	inner, outer := epoll(t), epoll(t)
	watch(t, inner, b, unix.EPOLLIN|unix.EPOLLET&0xffffffff)
	watch(t, outer, inner, unix.EPOLLIN)
	if event(outer, moment) != 0 {
		t.Fatal("an event while nothing is ready")
	}
	write(t, a, "x")
	for range 2 { // the outer one is level-triggered: it says so until the inner one was asked
		if event(outer, patience) == 0 {
			t.Fatal("no event of the inner set")
		}
	}
	event(inner, patience)
	if event(outer, moment) != 0 {
		t.Fatal("an event though the inner set was emptied")
	}
}

// A closed descriptor is reported as long as a copy of it lives, and cannot be taken out any more.
func TestEpollReportsAClosedDescriptor(t *testing.T) {
	begin(t)
	a, b := pair(t)
	ep := epoll(t)
	watch(t, ep, b, unix.EPOLLIN)
	twin, err := unix.Dup(b)
	check(t, err)
	closing(t, twin)
	shut(b)
	write(t, a, "x")
	if event(ep, patience) == 0 {
		t.Fatal("no event of the closed descriptor")
	}
	want(t, "EPOLL_CTL_DEL", unix.EpollCtl(ep, unix.EPOLL_CTL_DEL, b, nil), unix.EBADF)
	shut(twin)
	if event(ep, moment) != 0 {
		t.Fatal("an event after the last copy was closed")
	}
}

// Bytes that one read leaves behind give no new edge; bytes that arrive later do. So a short read may be taken for
// the end: what comes after it is reported.
func TestEdgesComeWithBytes(t *testing.T) {
	begin(t)
	a, b := pair(t)
	ep := epoll(t)
	watch(t, ep, b, edges)
	event(ep, moment) // writable
	write(t, a, "0123456789")
	if event(ep, patience)&unix.EPOLLIN == 0 {
		t.Fatal("no edge for the first bytes")
	}
	unix.Read(b, make([]byte, 4))
	if event(ep, moment) != 0 {
		t.Fatal("an edge for bytes that were left")
	}
	if n, _ := unix.Read(b, make([]byte, 100)); n != 6 {
		t.Fatalf("read %d, want a short read of 6", n)
	}
	write(t, a, "x")
	if event(ep, patience)&unix.EPOLLIN == 0 {
		t.Fatal("no edge for bytes after a short read")
	}
}

// Bytes and a FIN may come as one edge. A read that the bytes fill exactly does not see the FIN, and no edge follows.
func TestNoEdgeForAFinBehindAFullRead(t *testing.T) {
	begin(t)
	a, b := pair(t)
	ep := epoll(t)
	watch(t, ep, b, edges)
	event(ep, moment) // writable
	write(t, a, "0123456789")
	check(t, unix.Shutdown(a, unix.SHUT_WR))
	await(t, b, unix.POLLRDHUP)
	if e := event(ep, patience); e&unix.EPOLLIN == 0 || e&unix.EPOLLRDHUP == 0 {
		t.Fatalf("events %#x, want IN and RDHUP at once", e)
	}
	buf := make([]byte, 10)
	if n, _ := unix.Read(b, buf); n != len(buf) {
		t.Fatalf("read %d, want %d", n, len(buf))
	}
	if event(ep, moment) != 0 {
		t.Fatal("an edge for the FIN")
	}
	if n, err := unix.Read(b, buf); n != 0 || err != nil {
		t.Fatalf("read %d, %v, want the FIN", n, err)
	}
}
