package l4

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Pipes carry the bytes of a stream from socket to socket without copying them. A direction borrows one only while
// bytes are in it: an idle session holds none, a direction whose peer is full holds one. A pipe that is not empty is
// closed, never pooled, so that no byte can reach another session.
//
// A pipe of the default 16 slots costs 1.3 to 2.7 times the CPU per GB of one of 1 MiB. An unprivileged user may hold
// 16,384 pages in pipes; beyond that new pipes silently shrink to 2 pages, and growing one fails. So the size is read
// back, and a pipe that is too small to help is not used: the direction copies instead.
type pipe struct {
	r, w int32
	size int
}

const (
	wantPipe = 1 << 20
	leastOf  = 64 << 10
)

// pipeBudget is how many pipes a process may hold; shared by its shards, which may overshoot it by one each.
type pipeBudget struct {
	out   atomic.Int64
	limit int64
}

// pipePool is a shard's share of idle pipes.
type pipePool struct {
	idle   []*pipe
	budget *pipeBudget
	again  int64 // none was to be had: do not ask the kernel before this time
}

const pipeRetry = int64(100e6) // ns

// get lends an empty pipe; nil when none is to be had, and then the caller copies.
func (p *pipePool) get(now int64) *pipe {
	if n := len(p.idle); n > 0 {
		q := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return q
	}
	if now < p.again || p.budget.out.Load() >= p.budget.limit {
		return nil
	}
	q := openPipe()
	if q == nil {
		p.again = now + pipeRetry
		return nil
	}
	p.budget.out.Add(1)
	return q
}

func openPipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC) != nil {
		return nil
	}
	size, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, wantPipe)
	if err != nil {
		size, err = unix.FcntlInt(uintptr(fds[0]), unix.F_GETPIPE_SZ, 0)
	}
	q := &pipe{r: int32(fds[0]), w: int32(fds[1]), size: size}
	if err != nil || size < leastOf {
		q.close()
		return nil
	}
	return q
}

// put takes an empty pipe back.
func (p *pipePool) put(q *pipe) { p.idle = append(p.idle, q) }

// drop closes a pipe that still holds bytes.
func (p *pipePool) drop(q *pipe) {
	q.close()
	p.budget.out.Add(-1)
}

// trim closes the idle pipes.
func (p *pipePool) trim() {
	for _, q := range p.idle {
		p.drop(q)
	}
	p.idle = p.idle[:0]
}

func (q *pipe) close() {
	closeFD(q.r)
	closeFD(q.w)
}
