package l4

import (
	"math/rand/v2"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice/pick"
)

// A session is one client's connection and the connection to the server that was picked for it.
//
//	   accept
//	     |
//	  dialing --- no server, or none answers ---> closed
//	     | connected
//	 relaying --- both ends, a timeout ---------> closed
//	     | one side was reset
//	lingering --- the other side has all -------> closed
//
// An idle one holds this struct and two descriptors, nothing else.
type session struct {
	slot   uint32
	gen    int32
	phase  phase
	armed  bool // keepalive and user timeout of the server's socket were set
	queued bool // a stream that waits for its next quantum
	ends   [2]end
	halves
	links // the wheel's

	*route
	server  *pick.Server
	tries   *tries // while dialing
	run     int64  // bytes from the client since the last from the server; below zero the other way round
	opened  int64  // ns, as all times here, on the shard's clock
	active  int64  // when a byte last moved
	mark    int64  // of the dial and of the lingering: the deadline, 0 for none; relaying: when it was connected
	expires int64  // max_session_duration; 0: never
	from    peer
}

type halves = [2]half

type phase uint8

const (
	free phase = iota // the zero value of a slot
	dialing
	relaying
	lingering
	closed // until the end of the batch
)

// A side names an end, and the half that this end sends.
type side = uint8

const (
	client side = iota
	server
)

// An end is one of a session's sockets, as the last events and calls left it.
type end struct {
	fd       int32
	errno    syscall.Errno // the connection is gone, and this is what the kernel said
	readable bool
	writable bool
	more     bool // a short read does not mean that nothing is left
	urgent   bool // urgent data was seen: splice stops at its mark for good, and a copy steps over it
	unix     bool
	reset    bool  // close it with a reset
	nagle    uint8 // sends until TCP_NODELAY must be set; 0: it is, or there is no such thing
}

// tries is what a session needs only until it is connected.
type tries struct {
	set   *pick.Set // held, so that every attempt sees one world and tried keeps its meaning
	tried []int     // indices into set
	begun int64     // of this attempt
}

func (s *session) sideOf(e *end) side {
	if e == &s.ends[client] {
		return client
	}
	return server
}

// open makes a session of an accepted connection and dials.
func (sh *shard) open(r *route, fd int32, from peer, isUnix bool) {
	s := sh.slab.take()
	s.route, s.from, s.opened, s.active = r, from, sh.now, sh.now
	s.ends[client] = end{fd: fd, writable: true, unix: isUnix, more: isUnix}
	s.ends[server].fd = nowhere
	s.expires = r.expiry(sh.now, rand.Float64)
	s.halves[client].splicing = sh.mode == SpliceAlways
	s.halves[server].splicing = sh.mode == SpliceAlways
	s.phase = dialing
	s.tries = sh.takeTries()
	s.tries.set = r.Pool.Set()
	if e := epollAdd(sh.epfd, fd, sessionEvents, s.tag(client), s.gen); e != 0 {
		sh.close(s, LocalResource)
		return
	}
	sh.connect(s, NoServer)
}

// Each socket is registered once, for everything, edge-triggered; no call to epoll follows while it lives.
const sessionEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET&0xffffffff

func (s *session) tag(d side) int32 { return int32(s.slot<<1) | int32(d) }

// connect starts a connection to a server that was not tried yet; with none left the session ends for the reason
// that the last attempt gave.
func (sh *shard) connect(s *session, last Reason) {
	d := s.tries
	for {
		if len(d.tried) > s.Pool.ConnectRetries {
			break
		}
		s.state.Now = sh.now
		i := d.set.Acquire(s.state, s.key(), d.tried)
		if i < 0 {
			break
		}
		d.tried = append(d.tried, i)
		s.server = d.set.At(i)
		d.begun = sh.now
		e := sh.dialServer(s)
		if e == 0 {
			sh.schedule(s)
			return
		}
		last = sh.dialFailed(s, e)
	}
	s.ends[client].reset = s.Pool.ResetNoServer
	sh.close(s, last)
}

// dialServer opens the server's socket and begins to connect.
func (sh *shard) dialServer(s *session) syscall.Errno {
	to := &upstreamOf(s.server).addr
	fd, e := openSocket(to.family())
	if e != 0 {
		return e
	}
	s.ends[server] = end{fd: fd, unix: to.isUnix(), more: to.isUnix(), nagle: 2}
	if to.isUnix() {
		s.ends[server].nagle = 0
	}
	if e = connect(fd, to); e != 0 && e != syscall.EINPROGRESS {
		return e
	}
	if e = epollAdd(sh.epfd, fd, sessionEvents, s.tag(server), s.gen); e != 0 {
		return e
	}
	s.mark = 0
	if t := s.Pool.ConnectTimeout; t > 0 {
		s.mark = sh.now + int64(t)
	}
	return 0
}

// dialFailed gives the server back and says what its failure amounts to.
func (sh *shard) dialFailed(s *session, e syscall.Errno) Reason {
	why := dialReason(e)
	upstreamOf(s.server).failed(why, e)
	if why == LocalResource {
		sh.server.dialShortages.Add(1)
		sh.server.shortage.Store(uint32(e))
	} else if s.Pool.Timed {
		s.server.Observe(sh.now, max(s.Pool.ConnectTimeout, time.Duration(sh.now-s.tries.begun)), 0)
	}
	s.server.Release()
	s.server = nil
	if fd := s.ends[server].fd; fd != nowhere {
		// The session goes on with another descriptor under the same tag, so this one must fall silent now.
		epollDel(sh.epfd, fd)
		closeFD(fd)
		s.ends[server].fd = nowhere
	}
	return why
}

func dialReason(e syscall.Errno) Reason {
	switch e {
	case syscall.ECONNREFUSED, syscall.ENOENT: // ENOENT: no such unix socket
		return ConnectRefused
	case syscall.ETIMEDOUT:
		return ConnectTimeout
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.ENOSPC:
		return LocalResource
	}
	return ConnectError
}

// dialed takes an event of the server's socket while the session waits for it.
func (sh *shard) dialed(s *session, events uint32) {
	e := syscall.Errno(0)
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if e = socketError(s.ends[server].fd); e == 0 && events&unix.EPOLLOUT == 0 {
			e = syscall.ECONNREFUSED
		}
	} else if events&unix.EPOLLOUT == 0 {
		return
	}
	if e == 0 && sh.selfConnected(s) {
		e = syscall.ECONNREFUSED
	}
	switch e {
	case 0:
		sh.connected(s, events, 0)
	case syscall.ECONNRESET, syscall.EPIPE:
		// A connect that fails is refused or times out; these say that it was connected, and reset since (EPIPE: after
		// a FIN). What the server said in between is still to be read.
		sh.connected(s, events, e)
	default:
		sh.connect(s, sh.dialFailed(s, e))
	}
}

// selfConnected: a connect to a free port of this host's ephemeral range may be given that very port as its source,
// and then TCP's simultaneous open connects the socket to itself.
func (sh *shard) selfConnected(s *session) bool {
	to := &upstreamOf(s.server).addr
	if to.isUnix() || upstreamOf(s.server).port < sh.server.ephemeralLow {
		return false
	}
	local, e := localAddr(s.ends[server].fd)
	return e == 0 && newPeer(&local.raw) == newPeer(&to.raw)
}

func (sh *shard) connected(s *session, events uint32, lost syscall.Errno) {
	upstreamOf(s.server).connected()
	if s.Pool.Timed {
		s.server.Observe(sh.now, time.Duration(sh.now-s.tries.begun), 0)
	}
	s.mark = sh.now
	sh.giveTries(s)
	s.phase = relaying
	s.active = sh.now
	s.ends[server].writable = true
	sh.noteEvents(&s.ends[server], events)
	sh.schedule(s) // it lies in the wheel for the end of the dial
	if lost != 0 {
		sh.lost(s, &s.ends[server], lost)
	}
	sh.relay(s)
}

// event takes what epoll says of one of the session's sockets.
func (sh *shard) event(s *session, d side, events uint32) {
	e := &s.ends[d]
	switch s.phase {
	case relaying:
		sh.noteEvents(e, events)
		if events&unix.EPOLLERR != 0 {
			sh.sideFailed(s, e)
		}
		if s.halves[client].splicing || s.halves[server].splicing || s.oneWay() {
			sh.queue(s)
		} else {
			sh.relay(s)
		}
	case dialing:
		if d == server {
			sh.dialed(s, events)
			return
		}
		sh.noteEvents(e, events)
		if events&unix.EPOLLERR != 0 {
			sh.close(s, ClientGone)
		}
	case lingering:
		if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 && s.ends[d].errno == 0 {
			sh.endLinger(s)
		}
	}
}

func (sh *shard) noteEvents(e *end, events uint32) {
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR|unix.EPOLLPRI) != 0 {
		e.readable = true
	}
	if events&unix.EPOLLOUT != 0 {
		e.writable = true
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR|unix.EPOLLPRI) != 0 {
		e.more = true
		e.urgent = e.urgent || events&unix.EPOLLPRI != 0
	}
}

// sideFailed takes the error that the kernel holds for a side. Its own bytes are still to be read, but nothing can be
// sent to it; asking here is needed when nothing is read from it at the moment, because the other side is full.
func (sh *shard) sideFailed(s *session, e *end) {
	if errno := socketError(e.fd); errno != 0 {
		sh.lost(s, e, errno)
	}
}

// relay moves what can be moved and passes ends on.
func (sh *shard) relay(s *session) {
	for {
		lost := s.ends[client].errno != 0 || s.ends[server].errno != 0
		up, down := sh.move(s, client), sh.move(s, server)
		if up || down {
			sh.queue(s)
		}
		if !lost && (s.ends[client].errno != 0 || s.ends[server].errno != 0) {
			continue // what the lost side had sent is still to be read
		}
		switch next(&s.halves[client], &s.halves[server]) {
		case wait:
			return
		case passUp:
			sh.passEnd(s, client)
		case passDown:
			sh.passEnd(s, server)
		case endOfBoth:
			sh.finish(s)
		}
		if s.phase != relaying {
			return
		}
	}
}

// passEnd tells the other side that d will send no more: with a FIN, or a reset where d was reset.
func (sh *shard) passEnd(s *session, d side) {
	s.halves[d].stage = shut
	if s.ends[d].errno != 0 {
		sh.passReset(s, 1-d)
		return
	}
	if s.halves[1-d].stage == shut {
		return // nothing is left to come from there either, so closing it says the same
	}
	shutdownWrite(s.ends[1-d].fd)
	if s.NoHalfClose && s.halves[1-d].stage == flowing {
		s.halves[1-d].stage = finished
	}
	sh.schedule(s)
}

// finish ends a session whose directions have both ended.
func (sh *shard) finish(s *session) {
	for d, e := range s.ends {
		if e.errno != 0 {
			sh.passReset(s, 1-side(d))
			return
		}
	}
	sh.close(s, Normal)
}

// passReset resets one side because the other was reset, but not before it has all that was sent to it: a reset
// discards what waits in its socket.
func (sh *shard) passReset(s *session, to side) {
	e := &s.ends[to]
	e.reset = e.errno == 0 && !e.unix
	if !e.reset || unacked(e.fd) == 0 {
		sh.endLinger(s)
		return
	}
	s.phase = lingering
	s.mark = 0
	if t := s.halfClosedTimeout(); t > 0 {
		s.mark = sh.now + t
	}
	sh.schedule(s)
}

// endLinger ends a session of which one side was reset.
func (sh *shard) endLinger(s *session) {
	if s.ends[client].errno != 0 {
		sh.close(s, ClientReset)
	} else {
		sh.close(s, ServerReset)
	}
}

// close ends a session, whatever its phase. The descriptors are closed at the end of the batch, the counts go back
// before, so that who sees the end finds the slot free.
func (sh *shard) close(s *session, why Reason) {
	sh.settle(s)
	sh.report(s, why)
	if s.server != nil {
		s.server.Release()
	}
	s.leave(why)
	sh.server.sessions.Add(-1)
	sh.wheel.remove(&sh.slab, s.slot)
	sh.discard(&s.halves[client])
	sh.discard(&s.halves[server])
	if s.tries != nil {
		sh.giveTries(s)
	}
	s.phase = closed
	sh.ended = append(sh.ended, s.slot)
}
