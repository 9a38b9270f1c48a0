package l4

import (
	"sync"

	"github.com/valyala/bytebufferpool"
	"golang.org/x/sys/unix"

	"sluice/pick"
)

// A shard is one event loop: it accepts, dials, moves bytes, times out and closes, all on one goroutine, which is that
// of its netpoll poller. turn does one round of it and is an ordinary function.
type shard struct {
	// constant
	id     int
	server *Server
	mode   Splice
	epfd   int32
	evfd   int32 // wakes the loop for the inbox
	tmfd   int32 // wakes it for the wheel

	// owned by the loop
	now        int64 // ns since the server's birth; read once a batch
	events     []unix.EpollEvent
	sa         unix.RawSockaddrAny
	slab       slab
	wheel      wheel
	streams    []uint32 // slots of sessions that wait for their next quantum, in turn
	ended      []uint32 // slots whose descriptors close at the end of the batch
	spare      []*tries
	buf        *bytebufferpool.ByteBuffer
	pipes      pipePool
	listeners  map[int32]*listener
	states     map[*pick.Pool]*pick.State
	lastID     int32
	resumeAt   int64 // when paused listeners are tried again; 0: none is
	trimAt     int64 // when idle pipes are closed; 0: not set
	alarm      int64 // what the timerfd is set to; 0: not set
	exchangeAt int64 // when something other than a stream moved bytes last
	copied     int64
	spliced    int64
	held       int64 // buffers that wait for a receiver
	idle       idler
	stopping   bool // run no more
	streamed   bool // the last batch gave a stream a quantum

	// shared
	quit   chan struct{} // closed when the loop has stopped
	mu     sync.Mutex
	inbox  []func()
	closed bool
}

// Tags of descriptors that are no session's. Those of sessions are not negative.
const (
	wakeTag     = -1
	timerTag    = -2
	listenerTag = -16 // less the listener's id
)

const (
	quantumAlone = 1 << 20   // what a stream moves before the others are asked again
	quantumMixed = 128 << 10 // the same while small exchanges go on beside it
	mixedFor     = 5e6       // ns
	oneWayFrom   = 1 << 20   // a session that moved so much without a byte the other way is no exchange
)

func newShard(srv *Server, id int) (*shard, error) {
	sh := &shard{id: id, server: srv, mode: srv.mode, events: make([]unix.EpollEvent, 256), buf: takeBuffer(),
		pipes: pipePool{budget: &srv.pipes}, listeners: map[int32]*listener{}, states: map[*pick.Pool]*pick.State{}, quit: make(chan struct{})}
	sh.now = srv.clock()
	sh.wheel.init(sh.now)
	return sh, sh.openDescriptors()
}

func (sh *shard) openDescriptors() error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	ev, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		return err
	}
	tm, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		unix.Close(ev)
		return err
	}
	sh.epfd, sh.evfd, sh.tmfd = int32(ep), int32(ev), int32(tm)
	if e := epollAdd(sh.epfd, sh.evfd, unix.EPOLLIN, wakeTag, 0); e != 0 {
		return e
	}
	if e := epollAdd(sh.epfd, sh.tmfd, unix.EPOLLIN, timerTag, 0); e != 0 {
		return e
	}
	return nil
}

// turn takes what is ready, moves one quantum of one stream, ends what is over, and looks at the wheel. It never
// waits. It returns whether there was anything to do.
func (sh *shard) turn(now int64) bool {
	n := epollPoll(sh.epfd, sh.events)
	if n > 0 {
		sh.now = now
	}
	for i := range sh.events[:n] {
		sh.dispatch(&sh.events[i])
	}
	busy := n > 0
	if len(sh.streams) > 0 {
		busy = true
		sh.now = now
		sh.stream()
	}
	if sh.wheel.turned < now>>tickShift {
		sh.now = now
		sh.wheel.turn(&sh.slab, now, sh.lookAt)
	}
	if sh.resumeAt != 0 && sh.resumeAt <= now {
		sh.resume()
	}
	if sh.trimAt != 0 && sh.trimAt <= now {
		sh.trimAt = 0
		sh.pipes.trim()
	}
	sh.reap()
	return busy
}

func (sh *shard) lookAt(slot uint32) { sh.look(sh.slab.at(slot)) }

func (sh *shard) dispatch(ev *unix.EpollEvent) {
	if ev.Fd >= 0 {
		s := sh.slab.at(uint32(ev.Fd) >> 1)
		if s.gen == ev.Pad {
			sh.event(s, side(ev.Fd&1), ev.Events)
		}
		return
	}
	switch ev.Fd {
	case wakeTag:
		sh.readInbox()
	case timerTag:
		drainCounter(sh.tmfd)
		sh.alarm = 0
	default:
		if l := sh.listeners[listenerTag-ev.Fd]; l != nil {
			sh.acceptFrom(l)
		}
	}
}

// queue lets a stream wait for its next quantum.
func (sh *shard) queue(s *session) {
	if !s.queued {
		s.queued = true
		sh.streams = append(sh.streams, s.slot)
	}
}

// stream gives the stream that has waited longest its quantum.
func (sh *shard) stream() {
	s := sh.slab.at(sh.streams[0])
	copy(sh.streams, sh.streams[1:])
	sh.streams = sh.streams[:len(sh.streams)-1]
	if s.queued && s.phase == relaying {
		s.queued = false
		sh.relay(s)
		sh.streamed = sh.streamed || s.oneWay()
	}
}

func (sh *shard) quantum() int {
	if sh.now-sh.exchangeAt < mixedFor {
		return quantumMixed
	}
	return quantumAlone
}

// reap closes the descriptors of the sessions that ended in this batch. There is no EPOLL_CTL_DEL: closing takes a
// descriptor out of epoll, and should a copy of it live on for a moment in a child process between fork and exec, the
// generation in its events is nobody's.
func (sh *shard) reap() {
	for _, slot := range sh.ended {
		s := sh.slab.at(slot)
		for i := range s.ends {
			if e := &s.ends[i]; e.fd != nowhere {
				if e.reset {
					lingerZero(e.fd)
				}
				closeFD(e.fd)
			}
		}
		sh.slab.give(s)
	}
	sh.ended = sh.ended[:0]
}

// idler decides whether to wait awake. Sleeping and being woken costs more than a short wait, so where the last waits
// were short the loop asks again for a while instead; where they were long that would burn CPU for nothing.
type idler struct {
	since int64 // when the loop ran dry; 0: it did not
	short int   // how far recent waits were short: up by one for a short one, down by two for a long one
}

// awake says whether to wait awake, when the loop has run dry.
func (i *idler) awake(now int64) bool {
	if i.since == 0 {
		i.since = now
	}
	return i.short >= shortSpin && now-i.since < spinFor
}

const (
	spinFor   = 20e3 // ns
	shortMost = 16
	shortSpin = 8
)

// ended notes the end of a wait; worth says whether waiting awake for it would have been. It would not for streams:
// the sooner they are looked at, the less has come, and the more each byte costs.
func (i *idler) ended(now int64, worth bool) {
	if i.since == 0 {
		return
	}
	if worth && now-i.since < spinFor {
		i.short = min(i.short+1, shortMost)
	} else {
		i.short = max(i.short-2, 0)
	}
	i.since = 0
}

const (
	turnsAtOnce = 1000  // bounds how long the loop stays in one call of the poller
	moderation  = 100e3 // ns that streams may gather, where nothing but streams moves
	keepPipes   = 1e9   // ns that pipes are kept for the next stream
)

// run turns until there is nothing to do; then the poller waits for the next event.
func (sh *shard) run() {
	if sh.stopping {
		return // netpoll had this event in hand when it was told to forget us
	}
	for range turnsAtOnce {
		now := sh.server.clock()
		busy := sh.turn(now)
		switch {
		case sh.stopping:
			close(sh.quit)
			return
		case busy:
			sh.idle.ended(now, sh.exchangeAt == sh.now)
			sh.gather(now)
		case !sh.idle.awake(now):
			sh.setAlarm(now)
			return
		}
	}
	sh.wake() // to be called again: epoll knows nothing of the streams that wait
}

// gather lets more of the streams come, after a round in which nothing but streams moved, as network cards do with
// their interrupts: the sooner a stream is looked at again, the less is there, and the more each byte costs.
func (sh *shard) gather(now int64) {
	if !sh.streamed || len(sh.streams) > 0 || now-sh.exchangeAt < mixedFor {
		return
	}
	sh.streamed = false
	unix.Nanosleep(&unix.Timespec{Nsec: moderation}, nil)
}

func (sh *shard) wake() {
	one := [8]byte{1}
	unix.Write(int(sh.evfd), one[:])
}

// setAlarm makes the loop wake for what it has to do by the clock, if nothing else wakes it before.
func (sh *shard) setAlarm(now int64) {
	at, some := sh.wheel.next()
	if !some {
		at = never
	}
	if sh.resumeAt != 0 {
		at = min(at, sh.resumeAt)
	}
	if len(sh.pipes.idle) > 0 {
		if sh.trimAt == 0 {
			sh.trimAt = now + keepPipes
		}
		at = min(at, sh.trimAt)
	}
	if at == never || sh.alarm != 0 && sh.alarm <= at {
		return
	}
	sh.alarm = at
	wait := max(at-sh.server.clock(), 1)
	unix.TimerfdSettime(int(sh.tmfd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(wait)}, nil)
}

// do runs f on the shard, soon; false when the shard has ended. f must not block.
func (sh *shard) do(f func()) bool {
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return false
	}
	sh.inbox = append(sh.inbox, f)
	sh.mu.Unlock()
	sh.wake()
	return true
}

func (sh *shard) readInbox() {
	drainCounter(sh.evfd)
	sh.mu.Lock()
	work := sh.inbox
	sh.inbox = nil
	sh.mu.Unlock()
	for _, f := range work {
		f()
	}
}

// call runs f on the shard and waits for it; false when the shard has ended.
func (sh *shard) call(f func()) bool {
	done := make(chan struct{})
	if !sh.do(func() { f(); close(done) }) {
		return false
	}
	<-done
	return true
}

// stop ends the loop once it has run dry.
func (sh *shard) stop() {
	if sh.do(func() { sh.stopping = true }) {
		<-sh.quit
	}
}

func (sh *shard) takeTries() *tries {
	if n := len(sh.spare); n > 0 {
		d := sh.spare[n-1]
		sh.spare = sh.spare[:n-1]
		return d
	}
	return &tries{tried: make([]int, 0, 4)}
}

func (sh *shard) giveTries(s *session) {
	d := s.tries
	d.set, d.tried = nil, d.tried[:0]
	sh.spare = append(sh.spare, d)
	s.tries = nil
}
