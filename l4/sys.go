package l4

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of the data plane. Every descriptor here is non-blocking, so none of these can sleep, and the raw
// form spares the scheduler's book-keeping, which costs a quarter to a half of the CPU of a small call. An errno
// stays an errno: no error value is made on the way of a connection. EINTR is returned like any other errno; the
// callers try again.

func recv(fd int32, p []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

func send(fd int32, p []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
		uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

// splice moves up to n bytes between a socket and a pipe. SPLICE_F_MORE is never set: it would hold the last partial
// segment of a message back.
func splice(from, to int32, n int) (int, syscall.Errno) {
	m, _, e := syscall.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0,
		uintptr(n), unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
	return int(m), e
}

// accept takes one connection from a listener; sa and its length are filled with the client's address.
func accept(fd int32, sa *unix.RawSockaddrAny) (int32, syscall.Errno) {
	size := uint32(unix.SizeofSockaddrAny)
	n, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(sa)),
		uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if e == 0 && size <= 2 {
		sa.Addr.Family = unix.AF_UNIX // an unnamed unix client has no address beyond its family
	}
	return int32(n), e
}

func openSocket(family uint16) (int32, syscall.Errno) {
	proto := uintptr(0) // for TCP this is plain TCP, never MPTCP
	n, _, e := syscall.RawSyscall6(unix.SYS_SOCKET, uintptr(family),
		unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, proto, 0, 0, 0)
	return int32(n), e
}

func connect(fd int32, a *sockaddr) syscall.Errno {
	_, _, e := syscall.RawSyscall6(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&a.raw)), uintptr(a.size), 0, 0, 0)
	return e
}

func bind(fd int32, a *sockaddr) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&a.raw)), uintptr(a.size))
	return e
}

func setInt(fd int32, level, name, value int) syscall.Errno {
	v := int32(value)
	_, _, e := syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&v)), 4, 0)
	return e
}

// socketError reads and clears the error that waits on a socket.
func socketError(fd int32) syscall.Errno {
	var v int32
	size := uint32(4)
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR,
		uintptr(unsafe.Pointer(&v)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return e
	}
	return syscall.Errno(v)
}

func shutdownWrite(fd int32) {
	syscall.RawSyscall6(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0, 0, 0, 0)
}

// lingerZero makes the next close of fd a reset.
func lingerZero(fd int32) {
	l := unix.Linger{Onoff: 1}
	syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_LINGER,
		uintptr(unsafe.Pointer(&l)), unsafe.Sizeof(l), 0)
}

func closeFD(fd int32) {
	syscall.RawSyscall6(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
}

// unacked is the number of bytes sent that the peer's kernel has not acknowledged yet (SIOCOUTQ).
func unacked(fd int32) int {
	var v int32
	syscall.RawSyscall6(unix.SYS_IOCTL, uintptr(fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(&v)), 0, 0, 0)
	return int(v)
}

func epollAdd(ep, fd int32, events uint32, tag, gen int32) syscall.Errno {
	ev := unix.EpollEvent{Events: events, Fd: tag, Pad: gen}
	_, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), unix.EPOLL_CTL_ADD, uintptr(fd),
		uintptr(unsafe.Pointer(&ev)), 0, 0)
	return e
}

func epollDel(ep, fd int32) {
	var ev unix.EpollEvent
	syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), unix.EPOLL_CTL_DEL, uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
}

// epollPoll asks for what is ready now; it never waits. (epoll_pwait, since arm64 has no epoll_wait.)
func epollPoll(ep int32, events []unix.EpollEvent) int {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// drainCounter empties an eventfd or a timerfd.
func drainCounter(fd int32) {
	var v uint64
	syscall.RawSyscall6(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&v)), 8, 0, 0, 0)
}
