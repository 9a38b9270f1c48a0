package load

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// stream is a client of T3 and T5: it sends (up) or receives (down) until the
// time is over, and at the end both sides must agree on the number of bytes.
type stream struct {
	up        bool
	connected bool
	total     [8]byte // up: what the sink says it got
	have      int
}

// streams opens n of them; ids start beyond those of the pinger.
func (r *rig) streams(n int, up bool) {
	for i := range n {
		fd, errno := sysSocket()
		if errno != 0 {
			r.fail("stream socket: %v", errno)
			return
		}
		if errno = sysConnect(fd, &r.target); errno != 0 && errno != unix.EINPROGRESS {
			r.fail("stream connect: %v", errno)
			sysClose(fd)
			return
		}
		e := r.add(fd, &stream{up: up}, r.quick, quickEvents)
		e.up, e.id = true, uint32(1<<23+i)
	}
}

// Of the reads of a stream while measuring, one in lookEvery copies and
// compares, the others only count: the generator's core would otherwise be the
// limit, and the rate would tell more about it than about the balancer. A loss
// or a shift still shows in the next look and in the totals.
const lookEvery = 8

// receive takes a chunk of a stream. What was only counted is not in buf:
// blind keeps it from being compared.
func (r *rig) receive(fd int32, buf []byte) (int, syscall.Errno) {
	r.looks++
	if r.blind = r.measure && r.looks%lookEvery != 0; r.blind {
		return sysSkip(fd, buf)
	}
	return sysRead(fd, buf)
}

// moved counts bytes that arrived.
func (r *rig) moved(n int) {
	if r.measure {
		r.units += float64(n)
	}
}

func (s *stream) ready(r *rig, e *end, ev uint32) {
	if !s.connected {
		s.opened(r, e, ev)
		return
	}
	if s.up && e.set == r.bulk {
		s.push(r, e, ev)
		return
	}
	for more := true; more && e.fd >= 0; {
		b, m, eof, err := r.read(e)
		// Level-triggered: one read a turn.
		more = e.set == r.quick && (m || b != nil)
		switch {
		case err != nil:
			s.broken(r, e, err)
		case eof:
			s.finish(r, e)
		case b != nil && s.up:
			s.have += copy(s.total[s.have:], b)
		case b != nil:
			s.got(r, e, b)
		}
	}
}

func (s *stream) opened(r *rig, e *end, ev uint32) {
	if ev&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		s.broken(r, e, sysSoError(e.fd))
		return
	}
	if ev&unix.EPOLLOUT == 0 {
		return
	}
	s.connected = true
	role, events := byte(roleSource), uint32(unix.EPOLLIN)
	if s.up {
		role, events = roleSink, unix.EPOLLOUT
	}
	if errno := e.sendHeader(makeHeader(role, e.id, r.spec.Size), headerLen); errno != 0 {
		s.broken(r, e, errno)
		return
	}
	r.move(e, r.bulk, events)
}

func (s *stream) got(r *rig, e *end, b []byte) {
	if !r.took(e, b) {
		r.fail("stream %d: wrong bytes before position %d", e.id, e.rx)
	}
	r.moved(len(b))
}

// push sends one chunk; the last one is followed by the FIN.
func (s *stream) push(r *rig, e *end, ev uint32) {
	if ev&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		s.broken(r, e, sysSoError(e.fd))
		return
	}
	if e.rest == 0 && !r.stopping {
		e.rest = r.spec.Size
	}
	if errno := e.flush(); errno != 0 {
		s.broken(r, e, errno)
		return
	}
	if e.rest == 0 && r.stopping {
		sysShutdown(e.fd)
		r.move(e, r.quick, quickEvents)
	}
}

func (s *stream) broken(r *rig, e *end, err error) {
	r.fail("stream %d: %v", e.id, err)
	r.close(e)
}

// finish compares what was sent with what arrived.
func (s *stream) finish(r *rig, e *end) {
	sent, got := r.totals[e.id], e.rx
	if s.up {
		sent, got = e.tx, binary.LittleEndian.Uint64(s.total[:])
	}
	if sent != got || sent == 0 || !r.stopping {
		r.fail("stream %d: sent %d bytes, %d arrived", e.id, sent, got)
	}
	r.close(e)
}
