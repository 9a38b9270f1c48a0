package l4

import "syscall"

// When a session has to end by the clock, and what is done for one that lasts. The wheel (wheel.go) comes by lazily, so
// moving bytes only notes the time.

// look is the wheel's visit: end the session if it is due, else lie down again.
func (sh *shard) look(s *session) {
	due := s.due(sh.now)
	switch {
	case s.phase == lingering && unacked(s.ends[s.survivor()].fd) == 0:
		sh.endLinger(s)
	case due > sh.now:
		if s.phase == relaying && !s.armed {
			s.arm()
		}
		sh.schedule(s)
	case s.phase == dialing:
		sh.connect(s, sh.dialFailed(s, syscall.ETIMEDOUT))
	case s.phase == lingering:
		sh.endLinger(s)
	case s.expires != 0 && s.expires <= sh.now:
		sh.close(s, MaxDuration)
	case s.halfClosed():
		sh.close(s, HalfClosedTimeout)
	default:
		sh.close(s, IdleTimeout)
	}
}

func (s *session) survivor() side {
	if s.ends[client].errno != 0 {
		return server
	}
	return client
}

const never = int64(1) << 62

// due is when the session has to end if nothing happens before.
func (s *session) due(now int64) int64 {
	switch s.phase {
	case dialing, lingering:
		if s.mark == 0 {
			return never
		}
		return s.mark
	}
	due := never
	if s.expires != 0 {
		due = s.expires
	}
	quiet := int64(s.IdleTimeout)
	if s.halfClosed() {
		quiet = s.halfClosedTimeout()
	}
	if quiet > 0 {
		due = min(due, s.active+quiet)
	}
	return due
}

// visit is when the wheel should come by: when due, or earlier for what a session only needs if it lives for a while.
func (s *session) visit(now int64) int64 {
	at := s.due(now)
	if s.phase == lingering {
		return min(at, now+tick)
	}
	if !s.armed {
		at = min(at, now+s.armIn)
	}
	return at
}

func (sh *shard) schedule(s *session) { sh.wheel.put(&sh.slab, s.slot, s.visit(sh.now)) }

func (s *session) halfClosed() bool {
	return s.halves[client].stage == shut || s.halves[server].stage == shut
}

func (s *session) halfClosedTimeout() int64 {
	if s.HalfClosedTimeout == 0 {
		return int64(s.IdleTimeout)
	}
	return int64(s.HalfClosedTimeout)
}

// arm sets the options of the server's socket that matter only to a session that lasts. The client's socket has them
// from the listener.
func (s *session) arm() {
	s.armed = true
	if e := &s.ends[server]; !e.unix {
		setKeepalive(e.fd, s.Keepalive, s.UserTimeout)
	}
}
