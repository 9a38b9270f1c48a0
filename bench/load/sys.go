package load

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Raw system calls: nothing here can block, so the scheduler need not know.
// Telling it costs a quarter of the generator's time.

func sysRead(fd int32, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), e
}

// sysSkip takes bytes off the socket without copying them; the buffer only
// says how many.
func sysSkip(fd int32, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_TRUNC, 0, 0)
	return int(n), e
}

// sysSend says EPIPE instead of raising SIGPIPE.
func sysSend(fd int32, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

func sysClose(fd int32) {
	syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0)
}

func sysShutdown(fd int32) {
	syscall.RawSyscall(syscall.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0)
}

func sysSocket() (int32, syscall.Errno) {
	fd, _, e := syscall.RawSyscall(syscall.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	return int32(fd), e
}

func sysAccept(fd int32) (int32, syscall.Errno) {
	c, _, e := syscall.RawSyscall6(syscall.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	return int32(c), e
}

func sysConnect(fd int32, to *unix.RawSockaddrInet4) syscall.Errno {
	_, _, e := syscall.RawSyscall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
	return e
}

func sysNodelay(fd int32) {
	one := int32(1)
	syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY,
		uintptr(unsafe.Pointer(&one)), 4, 0)
}

// sysSoError is the outcome of a connect that went on in the background.
func sysSoError(fd int32) syscall.Errno {
	v, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return syscall.EBADF
	}
	return syscall.Errno(v)
}

func sysEpollAdd(ep, fd int32, events uint32, slot int32, gen uint32) syscall.Errno {
	ev := unix.EpollEvent{Events: events, Fd: slot, Pad: int32(gen)}
	_, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(ep), unix.EPOLL_CTL_ADD, uintptr(fd),
		uintptr(unsafe.Pointer(&ev)), 0, 0)
	return e
}

func sysEpollDel(ep, fd int32) {
	var ev unix.EpollEvent
	syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(ep), unix.EPOLL_CTL_DEL, uintptr(fd),
		uintptr(unsafe.Pointer(&ev)), 0, 0)
}

// sysEpollPoll never waits. epoll_pwait, since arm64 has no epoll_wait.
func sysEpollPoll(ep int32, ev []unix.EpollEvent) int {
	n, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&ev[0])), uintptr(len(ev)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}
