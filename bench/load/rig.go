package load

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The rig holds two epoll sets. Small exchanges are asked for between any two
// moves of bulk data, so that the generator adds little to their latency.
// quick is edge-triggered, bulk level-triggered: there one call moves a chunk
// and epoll_wait is noise.
type rig struct {
	spec   Spec
	quick  *epollSet
	bulk   *epollSet
	ends   []*end
	free   []int32
	open   int // ends that are neither listeners nor closed
	target unix.RawSockaddrInet4
	base   time.Time
	buf    []byte

	full     bool // compare every byte
	measure  bool // count
	stopping bool // no new message, no new connection
	blind    bool // the bytes of the last read are only counted
	looks    int

	hist   Hist
	units  float64
	failed int
	errors []string

	// sent of a source, by id, for the client to compare with; got of a sink likewise.
	totals map[uint32]uint64
}

type epollSet struct {
	fd     int32
	events []unix.EpollEvent
	n, i   int // bulk: events[i:n] are still to be served
}

const quickEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// What hangs this long after the end of a phase is a failure.
var patience = 3 * time.Second

func newSet(events int) (*epollSet, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	return &epollSet{fd: int32(fd), events: make([]unix.EpollEvent, events)}, err
}

func newRig(spec Spec) (*rig, error) {
	r := &rig{spec: spec, base: time.Now(), buf: make([]byte, maxChunk), totals: map[uint32]uint64{}}
	var err error
	if r.quick, err = newSet(256); err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	if r.bulk, err = newSet(64); err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	if r.target, err = sockaddr(spec.Target); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	for _, s := range spec.Servers {
		if err := r.listen(s); err != nil {
			return nil, fmt.Errorf("serve on %s: %w", s, err)
		}
	}
	return r, nil
}

// dispose closes everything; for a process that lives on, as a test does.
func (r *rig) dispose() {
	for _, e := range r.ends {
		if e.fd >= 0 {
			sysClose(e.fd)
		}
	}
	sysClose(r.quick.fd)
	sysClose(r.bulk.fd)
}

func sockaddr(s string) (sa unix.RawSockaddrInet4, err error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return sa, err
	}
	if !a.Addr().Is4() {
		return sa, fmt.Errorf("%s: only IPv4", s)
	}
	sa.Family, sa.Addr = unix.AF_INET, a.Addr().As4()
	sa.Port = a.Port()<<8 | a.Port()>>8 // network order; every machine this runs on is little-endian
	return sa, nil
}

func (r *rig) listen(addr string) error {
	fd, errno := sysSocket()
	if errno != 0 {
		return errno
	}
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return err
	}
	sa := &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}
	unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	sysNodelay(fd) // inherited by what is accepted
	if err := unix.Bind(int(fd), sa); err != nil {
		return err
	}
	if err := unix.Listen(int(fd), 4096); err != nil {
		return err
	}
	r.add(fd, listener{}, r.quick, unix.EPOLLIN|unix.EPOLLET)
	r.open--
	return nil
}

// now is nanoseconds since the start.
func (r *rig) now() int64 { return int64(time.Since(r.base)) }

// add gives a descriptor a slot and puts it into a set.
func (r *rig) add(fd int32, a actor, set *epollSet, events uint32) *end {
	var e *end
	if n := len(r.free); n > 0 {
		e = r.ends[r.free[n-1]]
		r.free = r.free[:n-1]
		*e = end{slot: e.slot, gen: e.gen + 1}
	} else {
		e = &end{slot: int32(len(r.ends))}
		r.ends = append(r.ends, e)
	}
	e.actor, e.fd, e.set = a, fd, set
	r.open++
	if errno := sysEpollAdd(set.fd, fd, events, e.slot, e.gen); errno != 0 {
		panic("load: epoll_ctl: " + errno.Error())
	}
	return e
}

// move takes an end from one set to the other. The new set reports what is
// ready already.
func (r *rig) move(e *end, set *epollSet, events uint32) {
	sysEpollDel(e.set.fd, e.fd)
	e.set = set
	if errno := sysEpollAdd(set.fd, e.fd, events, e.slot, e.gen); errno != 0 {
		panic("load: epoll_ctl: " + errno.Error())
	}
}

func (r *rig) close(e *end) {
	sysClose(e.fd)
	e.fd = -1
	e.gen++
	e.actor = nil
	r.free = append(r.free, e.slot)
	r.open--
}

// fail counts a failure and keeps the first few in words.
func (r *rig) fail(format string, args ...any) {
	r.failed++
	if len(r.errors) < 5 {
		r.errors = append(r.errors, fmt.Sprintf(format, args...))
	}
}

func (r *rig) serve(ev *unix.EpollEvent) {
	e := r.ends[ev.Fd]
	if e.gen == uint32(ev.Pad) && e.actor != nil {
		e.ready(r, e, ev.Events)
	}
}

// turn asks both sets once: all small work, then one chunk of bulk.
func (r *rig) turn() {
	q := r.quick
	for i := range sysEpollPoll(q.fd, q.events) {
		r.serve(&q.events[i])
	}
	b := r.bulk
	if b.i == b.n {
		b.n, b.i = sysEpollPoll(b.fd, b.events), 0
	}
	if b.i < b.n {
		b.i++
		r.serve(&b.events[b.i-1])
	}
}

// until turns until the clock says so.
func (r *rig) until(end int64, pace func(now int64)) {
	for {
		now := r.now()
		if now >= end {
			return
		}
		if pace != nil {
			pace(now)
		}
		r.turn()
	}
}

// await turns until done or out of patience; what then is open is a failure.
func (r *rig) await(what string, done func() bool) bool {
	for end := r.now() + int64(patience); !done(); r.turn() {
		if r.now() > end {
			r.fail("%s: not done after %v, %d sockets open", what, patience, r.open)
			return false
		}
	}
	return true
}

// read takes what is there. more says whether to ask again: a read that did
// not fill the buffer drained the socket.
func (r *rig) read(e *end) (b []byte, more, eof bool, err error) {
	var n int
	var errno syscall.Errno
	buf := r.buf
	if r.blind = false; e.set == r.bulk {
		buf = buf[:min(len(buf), r.spec.Size)]
		n, errno = r.receive(e.fd, buf)
	} else {
		n, errno = sysRead(e.fd, buf)
	}
	switch {
	case errno == unix.EAGAIN:
		return nil, false, false, nil
	case errno != 0:
		return nil, false, false, errno
	case n == 0:
		return nil, false, true, nil
	}
	return buf[:n], n == len(buf), false, nil
}
