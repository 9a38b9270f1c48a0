package load

import (
	"golang.org/x/sys/unix"
)

// ping is a client of T1, T2, T5 and T6: it sends a message and waits for as
// many bytes. lives limits the messages of a connection: 1 makes it T2, where
// the client closes first, as clients do, and another takes its place.
type ping struct {
	role      *pinger
	connected bool
	busy      bool
	start     int64   // when the message was sent or, paced, when it was due
	need      int     // bytes of the answer still missing
	due       []int64 // paced: messages whose time came while one was on its way
}

// pinger is what the clients of one test share.
type pinger struct {
	size    int
	lives   int  // messages before the client closes; 0: until the end
	paced   bool // messages start by the clock, not by the answer
	measure bool // into the units of the rig
	hold    bool // connecting: nobody goes on after the first answer
	nextID  uint32
	open    int
	done    int // connections that had their first answer
	clients []*end
	answers float64

	// Of a paced test: message k is due at first + k x gap, on client k mod n.
	first, gap, sent int64
}

// dial begins a connection.
func (p *pinger) dial(r *rig) {
	fd, errno := sysSocket()
	if errno != 0 {
		r.fail("client socket: %v", errno)
		return
	}
	sysNodelay(fd)
	if errno = sysConnect(fd, &r.target); errno != 0 && errno != unix.EINPROGRESS {
		r.fail("client connect: %v", errno)
		sysClose(fd)
		return
	}
	c := &ping{role: p, start: r.now()}
	e := r.add(fd, c, r.quick, quickEvents)
	e.up, e.id = true, p.nextID&0xffffff
	p.nextID++
	p.open++
	if p.lives != 1 {
		p.clients = append(p.clients, e)
	}
}

func (c *ping) ready(r *rig, e *end, ev uint32) {
	if !c.connected {
		c.opened(r, e, ev)
	} else if e.rest > 0 && ev&unix.EPOLLOUT != 0 {
		if errno := e.flush(); errno != 0 {
			c.broken(r, e, "send", errno)
		}
	}
	if ev&^uint32(unix.EPOLLOUT) == 0 {
		return
	}
	for more := true; more && e.fd >= 0; {
		b, m, eof, err := r.read(e)
		more = m || (b != nil && ev&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
		switch {
		case err != nil:
			c.broken(r, e, "read", err)
		case eof:
			c.broken(r, e, "read", errEarly)
		case b != nil:
			c.got(r, e, b)
		}
	}
}

type textError string

func (t textError) Error() string { return string(t) }

const errEarly = textError("end of stream before the client closed")

// opened: the connect is over, well or not. The first message goes with the header.
func (c *ping) opened(r *rig, e *end, ev uint32) {
	if ev&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		c.broken(r, e, "connect", sysSoError(e.fd))
		return
	}
	if ev&unix.EPOLLOUT == 0 {
		return
	}
	c.connected, c.busy = true, true
	c.need = c.role.size
	if errno := e.sendHeader(makeHeader(roleEcho, e.id, c.role.size), c.role.size); errno != 0 {
		c.broken(r, e, "send", errno)
	}
}

func (c *ping) broken(r *rig, e *end, what string, err error) {
	if e.fd < 0 {
		return
	}
	r.fail("client %d %s: %v", e.id, what, err)
	c.closed(r, e)
}

// closed ends the connection; with lives limited another takes its place.
func (c *ping) closed(r *rig, e *end) {
	r.close(e)
	c.role.open--
	if c.role.lives > 0 && !r.stopping {
		c.role.dial(r)
	}
}

func (c *ping) got(r *rig, e *end, b []byte) {
	if !r.took(e, b) {
		r.fail("client %d: wrong bytes before position %d", e.id, e.rx)
	}
	c.need -= len(b)
	if c.need < 0 {
		c.broken(r, e, "read", textError("more bytes than were sent"))
		return
	}
	if c.need == 0 && c.busy {
		c.answered(r, e)
	}
}

func (c *ping) answered(r *rig, e *end) {
	now := r.now()
	p := c.role
	c.busy = false
	if e.rx == uint64(p.size) {
		p.done++
	}
	if r.measure {
		r.hist.Add(now - c.start)
		p.answers++
		if p.measure {
			r.units++
		}
	}
	switch {
	case p.lives == 1 || r.stopping:
		c.closed(r, e)
	case len(c.due) > 0:
		next := c.due[0]
		c.due = c.due[1:]
		c.send(r, e, next)
	case !p.paced && !p.hold:
		c.send(r, e, now)
	}
}

func (c *ping) send(r *rig, e *end, start int64) {
	c.busy, c.start, c.need = true, start, c.role.size
	e.rest += c.role.size
	if errno := e.flush(); errno != 0 {
		c.broken(r, e, "send", errno)
	}
}

// pace sends what is due. A client that waits for an answer gets it queued and
// its latency counts from the due time: a slow balancer is not asked less.
func (p *pinger) pace(r *rig, now int64) {
	for due := p.first + p.sent*p.gap; due <= now; due += p.gap {
		e := p.clients[p.sent%int64(len(p.clients))]
		p.sent++
		c, ok := e.actor.(*ping)
		if !ok || c.role != p {
			continue // broken, and counted as such
		}
		if c.busy || !c.connected {
			c.due = append(c.due, due)
			continue
		}
		c.send(r, e, due)
	}
}

// connect opens n clients, at most 128 connects at once so that no accept
// queue overflows, and waits until each had its first answer. All begin
// together then: a balancer that is kept busy by the first would take seconds
// to accept the last (nginx accepts one a turn).
func (p *pinger) connect(r *rig, n int) bool {
	p.hold = true
	for p.done < n {
		goal := min(p.done+128, n)
		for p.open < goal {
			before := p.open
			if p.dial(r); p.open == before {
				return false
			}
		}
		failed := r.failed
		ok := r.await("connecting", func() bool { return p.done >= goal || r.failed > failed })
		if !ok || r.failed > failed {
			return false
		}
	}
	p.hold = false
	for _, e := range p.clients {
		if c, ok := e.actor.(*ping); ok && !p.paced {
			c.send(r, e, r.now())
		}
	}
	return true
}

// closeIdle closes the clients that wait for nothing; the others close when
// their answer is there.
func (p *pinger) closeIdle(r *rig) {
	for _, e := range p.clients {
		if c, ok := e.actor.(*ping); ok && c.role == p && !c.busy {
			c.closed(r, e)
		}
	}
}
