package load

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// headerLen bytes open the stream of a client: role, id (3), message size (4).
// They are the only bytes outside the pattern.
const headerLen = 8

// Roles a client asks of the server.
const (
	roleEcho   = 'E' // a message of the pattern back for each message received
	roleSource = 'S' // the pattern until told to stop
	roleSink   = 'K' // takes everything, answers with the number of bytes
)

type header [headerLen]byte

func makeHeader(role byte, id uint32, size int) (h header) {
	binary.LittleEndian.PutUint32(h[:4], id<<8|uint32(role))
	binary.LittleEndian.PutUint32(h[4:], uint32(size))
	return h
}

func (h header) role() byte { return h[0] }
func (h header) id() uint32 { return binary.LittleEndian.Uint32(h[:4]) >> 8 }
func (h header) size() int  { return int(binary.LittleEndian.Uint32(h[4:])) }

// actor is what an end does when its socket is ready.
type actor interface {
	ready(r *rig, e *end, ev uint32)
}

// end is one socket and its place in both of its streams. Positions count
// pattern bytes, so the header is in neither.
type end struct {
	actor
	fd   int32
	slot int32
	gen  uint32 // an event of an earlier user of the slot finds another gen
	set  *epollSet
	id   uint32
	up   bool // this end sends upwards: a client
	rx   uint64
	tx   uint64
	rest int // bytes of the pattern still to be sent
}

// flush sends what rest asks for, as far as the socket takes it.
func (e *end) flush() syscall.Errno {
	from := origin(e.id, e.up)
	for e.rest > 0 {
		want := min(e.rest, maxChunk)
		n, errno := sysSend(e.fd, at(from+e.tx, want))
		if errno == unix.EAGAIN {
			return 0
		}
		if errno != 0 {
			return errno
		}
		e.tx += uint64(n)
		e.rest -= n
		// A short send found the buffer full: another would say EAGAIN.
		if n < want {
			return 0
		}
	}
	return 0
}

// sendHeader sends the header and as much of the first message as goes with
// it. A new connection's buffer is empty: a short send here is a broken one.
func (e *end) sendHeader(h header, message int) syscall.Errno {
	var buf [2048]byte
	n := copy(buf[:], h[:])
	n += copy(buf[n:min(len(buf), message)], at(origin(e.id, e.up), min(message, maxChunk)))
	sent, errno := sysSend(e.fd, buf[:n])
	if errno != 0 {
		return errno
	}
	if sent != n {
		return unix.EPIPE
	}
	e.tx = uint64(n - headerLen)
	e.rest = message - n
	return e.flush()
}

// took checks received bytes against the stream and moves on.
func (r *rig) took(e *end, b []byte) bool {
	ok := r.blind || fits(b, origin(e.id, !e.up)+e.rx, r.full)
	e.rx += uint64(len(b))
	return ok
}
