package l4

import (
	"syscall"
	"time"

	"github.com/valyala/bytebufferpool"
	"golang.org/x/sys/unix"
)

// A half is one direction of a session: up is client to server, down is server to client.
//
//	flowing --EOF or error read--> finished --all passed on, FIN or reset passed on--> shut
//	   \______________________________receiver is gone_______________________________/
type half struct {
	buf   *bytebufferpool.ByteBuffer // bytes that the receiver did not take yet: buf.B[off:]. nil when there are none
	pipe  *pipe                      // on loan; holds `piped` bytes
	off   int32
	piped int32
	bytes int64 // read from the sender so far

	told     int64 // of bytes, what the counters know already
	stage    stage
	splicing bool  // a stream: bytes go through a pipe
	small    uint8 // splices in a row that moved little
}

type stage uint8

const (
	flowing stage = iota
	finished
	shut
)

const (
	bufferSize  = 32 << 10 // a read that fills it makes a direction a stream
	smallSplice = 16 << 10 // below this a splice gains nothing over a copy
	smallInRow  = 4        // so many of them make the direction copy again
)

// buffers are the copy buffers that no shard and no session holds at the moment.
var buffers bytebufferpool.Pool

func takeBuffer() *bytebufferpool.ByteBuffer {
	b := buffers.Get()
	if cap(b.B) < bufferSize {
		b.B = make([]byte, bufferSize)
	}
	b.B = b.B[:bufferSize]
	return b
}

func giveBuffer(b *bytebufferpool.ByteBuffer) {
	b.B = b.B[:bufferSize] // the pool keeps the size it sees most
	buffers.Put(b)
}

// held says whether bytes were read that the receiver has not taken.
func (h *half) held() bool { return h.buf != nil || h.piped > 0 }

// action is what a session has to do once its bytes have moved as far as they can.
type action uint8

const (
	wait      action = iota
	passUp           // everything from the client was passed on: pass its end on too
	passDown         // the same from the server
	endOfBoth        // nothing is left to move
)

// next says what the two directions ask for. It reads only.
func next(up, down *half) action {
	switch {
	case up.stage == finished && !up.held():
		return passUp
	case down.stage == finished && !down.held():
		return passDown
	case up.stage == shut && down.stage == shut:
		return endOfBoth
	}
	return wait
}

// move passes on what it can of one direction, until the sender is dry, the receiver full, or the quantum used up;
// true means that there is more to do. Nothing is read while anything is held, so a full receiver stops the reading.
func (sh *shard) move(s *session, d side) bool {
	h, src, dst := &s.halves[d], &s.ends[d], &s.ends[1-d]
	quantum := sh.quantum()
	for h.stage != shut && (!h.held() || sh.flush(s, h, dst)) {
		if h.stage == finished || !src.readable || !dst.writable || quantum <= 0 {
			break
		}
		quantum -= sh.step(s, h, src, dst)
	}
	if h.pipe != nil && h.piped == 0 {
		sh.pipes.put(h.pipe)
		h.pipe = nil
	}
	return quantum <= 0 && h.stage == flowing
}

// step reads once and passes on what came; it returns the bytes that were read.
func (sh *shard) step(s *session, h *half, src, dst *end) int {
	if h.splicing && !src.urgent {
		if h.pipe == nil {
			h.pipe = sh.pipes.get(sh.now)
		}
		if h.pipe != nil {
			return sh.spliceOnce(s, h, src, dst)
		}
	}
	return sh.copyOnce(s, h, src, dst)
}

// copyOnce reads into the shard's buffer and sends from it. What the receiver does not take stays in that buffer,
// which goes to the session; the shard takes another.
func (sh *shard) copyOnce(s *session, h *half, src, dst *end) int {
	buf := sh.buf
	n, e := recv(src.fd, buf.B)
	if e != 0 || n == 0 {
		sh.readEnded(s, h, src, e)
		return 0
	}
	sh.read(s, h, n)
	sh.copied += int64(n)
	if n < len(buf.B) {
		src.readable = src.more
	} else if sh.mode == SpliceAuto {
		h.splicing, h.small = true, 0
	}
	dst.sends()
	m, e := send(dst.fd, buf.B[:n])
	switch {
	case e == syscall.EAGAIN || e == syscall.EINTR:
		m = 0
	case e != 0:
		sh.writeFailed(s, h, dst, e)
		return n
	}
	if m < n {
		dst.writable = e == syscall.EINTR
		buf.B = buf.B[:n]
		h.buf, h.off = buf, int32(m)
		sh.buf = takeBuffer()
		sh.held++
	}
	return n
}

// spliceOnce fills the pipe from the sender and empties it into the receiver. EAGAIN of the first splice means that
// the sender is dry, since the pipe was empty: a pipe whose slots are all taken says EAGAIN too.
func (sh *shard) spliceOnce(s *session, h *half, src, dst *end) int {
	n, e := splice(src.fd, h.pipe.w, h.pipe.size)
	if e == 0 && n == 0 {
		src.urgent = true // the end; or an urgent mark, with more before the end: only a read can tell
		return sh.copyOnce(s, h, src, dst)
	}
	if e != 0 {
		sh.readEnded(s, h, src, e)
		return 0
	}
	sh.read(s, h, n)
	sh.spliced += int64(n)
	h.piped = int32(n)
	if n >= smallSplice {
		h.small = 0
	} else if h.small++; h.small == smallInRow && sh.mode == SpliceAuto {
		h.splicing = false
	}
	sh.flush(s, h, dst)
	return n
}

// flush passes held bytes on; true means that none is left.
func (sh *shard) flush(s *session, h *half, dst *end) bool {
	for h.held() {
		if !dst.writable {
			return false
		}
		dst.sends()
		n, e := h.sendHeld(dst.fd)
		switch e {
		case 0:
			sh.took(h, n)
			s.active = sh.now
		case syscall.EAGAIN:
			dst.writable = false
		case syscall.EINTR:
		default:
			sh.writeFailed(s, h, dst, e)
			return false
		}
	}
	return true
}

// sends comes before each send. Nagle's algorithm holds a small segment back only while an earlier one is not
// acknowledged, so a server that is sent one message never needs the call that turns it off.
func (e *end) sends() {
	if e.nagle == 0 {
		return
	}
	if e.nagle--; e.nagle == 0 {
		setInt(e.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}

func (h *half) sendHeld(fd int32) (int, syscall.Errno) {
	if h.buf != nil {
		return send(fd, h.buf.B[h.off:])
	}
	return splice(h.pipe.r, fd, int(h.piped))
}

// took notes that the receiver took n of the held bytes.
func (sh *shard) took(h *half, n int) {
	if h.buf == nil {
		h.piped -= int32(n)
		return
	}
	if h.off += int32(n); int(h.off) == len(h.buf.B) {
		sh.dropBuffer(h)
	}
}

func (sh *shard) dropBuffer(h *half) {
	giveBuffer(h.buf)
	h.buf, h.off = nil, 0
	sh.held--
}

// discard gives up what is held: its receiver is gone.
func (sh *shard) discard(h *half) {
	if h.buf != nil {
		sh.dropBuffer(h)
	}
	if h.pipe == nil {
		return
	}
	if h.piped == 0 {
		sh.pipes.put(h.pipe)
	} else {
		sh.pipes.drop(h.pipe)
	}
	h.pipe, h.piped = nil, 0
}

func (sh *shard) read(s *session, h *half, n int) {
	if h == &s.halves[client] {
		s.run = max(s.run, 0) + int64(n)
	} else {
		s.run = min(s.run, 0) - int64(n)
		if h.bytes == 0 && s.Pool.Timed {
			s.server.Observe(sh.now, 0, time.Duration(sh.now-s.mark))
		}
	}
	h.bytes += int64(n)
	if !s.oneWay() {
		sh.exchangeAt = sh.now
	}
	s.active = sh.now
}

// oneWay says that the session is a stream at the moment, and no exchange.
func (s *session) oneWay() bool { return s.run >= oneWayFrom || s.run <= -oneWayFrom }

// readEnded takes the answer of a read that brought no bytes.
func (sh *shard) readEnded(s *session, h *half, src *end, e syscall.Errno) {
	switch e {
	case syscall.EAGAIN:
		src.readable = false
	case syscall.EINTR:
	case 0:
		h.stage = finished
		src.readable = false
		s.active = sh.now // the quiet time after an end begins here
	default:
		h.stage = finished
		src.readable = false
		sh.lost(s, src, e)
	}
}

// writeFailed: the receiver is gone. What it had sent before is still to be read and passed on.
func (sh *shard) writeFailed(s *session, h *half, dst *end, e syscall.Errno) {
	sh.lost(s, dst, e)
	dst.readable = true
}

// lost notes that one side's connection is gone. Nothing can be passed on to it any more.
func (sh *shard) lost(s *session, gone *end, e syscall.Errno) {
	if gone.errno == 0 {
		gone.errno = e
	}
	h := &s.halves[1-s.sideOf(gone)]
	sh.discard(h)
	h.stage = shut
	sh.schedule(s) // the other direction has only half_closed_timeout now
}
