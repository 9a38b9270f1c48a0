package load

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// listener accepts all that is there.
type listener struct{}

func (listener) ready(r *rig, e *end, _ uint32) {
	for {
		fd, errno := sysAccept(e.fd)
		if errno == unix.EAGAIN {
			return
		}
		if errno != 0 {
			r.fail("accept: %v", errno)
			return
		}
		r.add(fd, &server{}, r.quick, quickEvents)
	}
}

// server is the far end of a session: it reads the header and plays the role.
type server struct {
	head header
	have int // bytes of the header
	need int // bytes of the current message not received yet
}

func (s *server) ready(r *rig, e *end, ev uint32) {
	if e.rest > 0 && ev&unix.EPOLLOUT != 0 {
		s.pump(r, e)
	}
	if ev&^uint32(unix.EPOLLOUT) == 0 || e.fd < 0 {
		return
	}
	for more := true; more && e.fd >= 0; {
		b, m, eof, err := r.read(e)
		// With the FIN known to be there, a short read is not the last one.
		more = m || (b != nil && ev&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
		if e.set == r.bulk {
			more = false
		}
		switch {
		case err != nil:
			r.fail("server read: %v", err)
			r.close(e)
		case eof:
			s.ended(r, e)
		case len(b) > 0:
			s.got(r, e, b)
		}
	}
}

func (s *server) got(r *rig, e *end, b []byte) {
	if s.have < headerLen {
		n := copy(s.head[s.have:], b)
		s.have += n
		b = b[n:]
		if s.have < headerLen {
			return
		}
		s.begin(r, e)
	}
	if len(b) == 0 || e.fd < 0 {
		return
	}
	if !r.took(e, b) {
		r.fail("server: wrong bytes from client %d before position %d", e.id, e.rx)
	}
	switch s.head.role() {
	case roleEcho:
		s.answer(r, e, len(b))
	case roleSink:
		r.moved(len(b))
	}
}

// begin takes up the role the client asked for.
func (s *server) begin(r *rig, e *end) {
	e.id = s.head.id()
	switch s.head.role() {
	case roleEcho:
		s.need = s.head.size() - headerLen
	case roleSink:
		r.move(e, r.bulk, unix.EPOLLIN)
	case roleSource:
		r.move(e, r.bulk, unix.EPOLLOUT|unix.EPOLLRDHUP)
		e.rest = s.head.size()
	default:
		r.fail("server: a header of garbage: %q", s.head)
		r.close(e)
	}
}

// answer owes a message for each that is complete.
func (s *server) answer(r *rig, e *end, n int) {
	s.need -= n
	for s.need <= 0 && e.fd >= 0 {
		s.need += s.head.size()
		e.rest += s.head.size()
	}
	s.pump(r, e)
}

// pump sends on. A source owes the next chunk once one is gone.
func (s *server) pump(r *rig, e *end) {
	if errno := e.flush(); errno != 0 {
		r.fail("server send: %v", errno)
		r.close(e)
		return
	}
	if s.head.role() != roleSource || e.rest > 0 {
		return
	}
	if !r.stopping {
		e.rest = s.head.size()
		return
	}
	r.totals[e.id] = e.tx
	sysShutdown(e.fd)
	r.move(e, r.quick, quickEvents)
}

// ended: the client has said all. A sink now tells how much that was.
func (s *server) ended(r *rig, e *end) {
	switch {
	case s.have < headerLen:
		r.fail("server: end of stream after %d bytes of the header", s.have)
	case s.head.role() == roleSource && e.rest > 0:
		r.fail("server: client %d left in the middle of the stream", e.id)
	case s.head.role() == roleEcho && s.need != s.head.size():
		r.fail("server: client %d ended in the middle of a message, %d bytes missing", e.id, s.need)
	case s.head.role() == roleSink:
		var total [8]byte
		binary.LittleEndian.PutUint64(total[:], e.rx)
		sysSend(e.fd, total[:])
	}
	r.close(e)
}
