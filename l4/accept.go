package l4

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A listener is one listening descriptor as its shard sees it. It is level-triggered: what one turn leaves in the
// queue is reported again by the next.
type listener struct {
	fd     int32
	id     int32
	unix   bool // the descriptor is shared with the other shards
	route  *route
	socket *socket
	paused bool // taken out of epoll because we ran short of something
}

const (
	acceptBatch = 64    // connections a turn takes from one listener, so that sessions get their turn
	acceptPause = 100e6 // ns until a listener is tried again after a shortage
)

// acceptFrom takes what waits at a listener; true means that more may wait.
func (sh *shard) acceptFrom(l *listener) bool {
	for range acceptBatch {
		fd, e := accept(l.fd, &sh.sa)
		switch e {
		case 0:
			sh.accepted(l, fd)
		case syscall.EAGAIN:
			return false
		case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM:
			sh.server.acceptErrors.Add(1)
			sh.server.shortage.Store(uint32(e))
			sh.pause(l)
			return false
		case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK:
			panic("l4: a listener's descriptor is not ours any more: " + e.Error())
		default: // the client left while it waited, or a signal came
			sh.server.acceptErrors.Add(1)
		}
	}
	return true
}

// accepted opens a session for a connection, or refuses it.
func (sh *shard) accepted(l *listener, fd int32) {
	from := newPeer(&sh.sa)
	if n := sh.server.sessions.Add(1); n > sh.server.maxSessions.Load() {
		sh.refuse(l, fd, from, LimitProcess)
		return
	}
	if !l.route.enter() {
		sh.refuse(l, fd, from, LimitListener)
		return
	}
	sh.open(l.route, fd, from, l.unix)
}

// refuse turns a client away with a reset, which leaves nothing behind in the kernel.
func (sh *shard) refuse(l *listener, fd int32, from peer, why Reason) {
	sh.server.sessions.Add(-1)
	l.route.stats.Accepted.Add(1)
	l.route.stats.Ended[why].Add(1)
	if f := sh.server.onEnd; f != nil {
		f(&Ended{Service: l.route.Name, Pool: l.route.Pool.Name, Client: from.AddrPort(), Reason: why})
	}
	lingerZero(fd)
	closeFD(fd)
}

// pause keeps a shortage from spinning: the listener would be reported ready for ever.
func (sh *shard) pause(l *listener) {
	if l.paused {
		return
	}
	l.paused = true
	epollDel(sh.epfd, l.fd)
	sh.resumeAt = sh.now + acceptPause
}

func (sh *shard) resume() {
	sh.resumeAt = 0
	for _, l := range sh.listeners {
		if !l.paused {
			continue
		}
		if sh.watch(l) == 0 {
			l.paused = false
		} else {
			sh.resumeAt = sh.now + acceptPause
		}
	}
}

func (sh *shard) watch(l *listener) syscall.Errno {
	events := uint32(unix.EPOLLIN)
	if l.unix {
		events |= unix.EPOLLEXCLUSIVE
	}
	return epollAdd(sh.epfd, l.fd, events, listenerTag-l.id, 0)
}
