package l4

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A socket is a place where a service listens. TCP: one descriptor for each shard, in one SO_REUSEPORT group, so that
// the kernel spreads the connections. Unix: one descriptor that all shards watch, since there is no such group.
type socket struct {
	bind  string // as configured
	addr  sockaddr
	fds   []int32
	inode uint64 // of a unix path, so that only our own is removed
}

// bindSocket binds for n shards. It does not listen yet.
//
// SO_REUSEPORT would let a second process of the same user take half of the connections without a word. So the first
// descriptor binds without it, which fails if anybody listens there, and joins the group afterwards; unless the port is
// one that our own old socket is leaving.
func bindSocket(svc *Service, bind string, n int, leaving map[uint16]bool) (*socket, error) {
	k := &socket{bind: bind}
	var err error
	if k.addr, err = parseAddr(bind); err != nil {
		return nil, err
	}
	if k.addr.isUnix() {
		err = k.bindUnix(svc)
	} else {
		err = k.bindTCP(svc, n, leaving[k.addr.port()])
	}
	if err != nil {
		k.close()
		return nil, cannotListen(svc, bind, err)
	}
	return k, nil
}

// explain adds what an errno of bind does not say.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("%w (another process or listener has it)", err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("%w (this host has no such address)", err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w (ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE)", err)
	}
	return err
}

func (k *socket) bindTCP(svc *Service, n int, share bool) error {
	for i := range n {
		fd, e := openSocket(k.addr.family())
		if e != 0 {
			return os.NewSyscallError("socket", e)
		}
		k.fds = append(k.fds, fd)
		if err := k.prepare(svc, fd, share || i > 0); err != nil {
			return err
		}
		if err := k.bindTo(fd); err != nil {
			return err
		}
		if i == 0 { // port 0 was given a number, which the others must share
			var e2 error
			if k.addr, e2 = boundTo(fd); e2 != nil {
				return e2
			}
			setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
	}
	return nil
}

// listen begins to take connections in.
func (k *socket) listen(svc *Service) error {
	for _, fd := range k.fds {
		if err := unix.Listen(int(fd), backlog(svc)); err != nil {
			return cannotListen(svc, k.bind, os.NewSyscallError("listen", err))
		}
	}
	return nil
}

func cannotListen(svc *Service, bind string, err error) error {
	return fmt.Errorf("listener %s: cannot listen on %s: %w", svc.Name, bind, explain(err))
}

func boundTo(fd int32) (sockaddr, error) {
	a, e := localAddr(fd)
	if e != 0 {
		return a, os.NewSyscallError("getsockname", e)
	}
	return a, nil
}

func (k *socket) bindTo(fd int32) error {
	if e := bind(fd, &k.addr); e != 0 {
		return os.NewSyscallError("bind", e)
	}
	return nil
}

const backlogMax = 65535

// backlog: the kernel cuts it to net.core.somaxconn.
func backlog(svc *Service) int {
	if svc.Backlog > 0 {
		return svc.Backlog
	}
	return backlogMax
}

// prepare sets the options that must be there before bind.
func (k *socket) prepare(svc *Service, fd int32, share bool) error {
	setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if share {
		setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if k.addr.family() == unix.AF_INET6 {
		setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, flag(svc.V6Only)) // whatever net.ipv6.bindv6only says
	}
	if svc.Interface != "" {
		if err := unix.BindToDevice(int(fd), svc.Interface); err != nil {
			return fmt.Errorf("interface %s: %w", svc.Interface, err)
		}
	}
	return tune(svc, fd)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tune sets what may change while the socket listens. Accepted sockets inherit all of it, so that an accepted
// connection needs no call of its own.
func tune(svc *Service, fd int32) error {
	setInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	setKeepalive(fd, svc.Keepalive, svc.UserTimeout)
	setInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, int((svc.DeferAccept+time.Second-1)/time.Second))
	if e := setInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN, svc.FastOpen); e != 0 && svc.FastOpen > 0 {
		return os.NewSyscallError("TCP_FASTOPEN", e)
	}
	return nil
}

// setKeepalive also sets the user timeout, which takes the place of the keepalive count where both are set: the
// kernel gives a silent peer up when either is over.
func setKeepalive(fd int32, k Keepalive, user time.Duration) {
	setInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(user.Milliseconds()))
	setInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, flag(k.Idle > 0))
	if k.Idle > 0 {
		setInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds(k.Idle))
		setInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds(k.Interval))
		setInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, max(k.Count, 1))
	}
}

// seconds rounds up: the kernel takes whole seconds, at least one.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// bindUnix binds a path. One that nobody listens on is left over from a process that was killed, and is replaced.
func (k *socket) bindUnix(svc *Service) error {
	fd, e := openSocket(unix.AF_UNIX)
	if e != 0 {
		return os.NewSyscallError("socket", e)
	}
	k.fds = append(k.fds, fd)
	path := k.path()
	err := k.bindTo(fd)
	if errors.Is(err, unix.EADDRINUSE) && path != "" {
		if err = removeStale(path); err == nil {
			err = k.bindTo(fd)
		}
	}
	if err == nil && path != "" {
		var st unix.Stat_t
		if err = unix.Lstat(path, &st); err == nil {
			k.inode = st.Ino
		}
	}
	return err
}

// path is the file of a unix socket; empty for TCP and for the abstract namespace.
func (k *socket) path() string {
	path, ok := strings.CutPrefix(k.bind, unixPrefix)
	if !ok || strings.HasPrefix(path, "@") {
		return ""
	}
	return path
}

// removeStale removes a socket file on which nobody listens. Anything else stays, and is an error.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("the path exists and is not a socket (%s)", info.Mode().Type())
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return errors.New("another process listens there")
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// close ends the listening of what is bound. A unix path is removed if it is still ours.
func (k *socket) close() {
	for _, fd := range k.fds {
		closeFD(fd)
	}
	k.removePath()
}

func (k *socket) removePath() {
	var st unix.Stat_t
	if path := k.path(); path != "" && k.inode != 0 && unix.Lstat(path, &st) == nil && st.Ino == k.inode {
		os.Remove(path)
	}
}
