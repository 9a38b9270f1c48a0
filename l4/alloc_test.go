package l4

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
	peers "sluice/internal/peer"
)

// rawDial connects without Go's net, which would allocate.
func rawDial(t *testing.T, h *hand) int32 {
	to, err := parseAddr(h.addr)
	if err != nil {
		t.Fatal(err)
	}
	fd, e := openSocket(to.family())
	if e != 0 {
		t.Fatal(e)
	}
	if e := connect(fd, &to); e != 0 && e != unix.EINPROGRESS {
		t.Fatal(e)
	}
	return fd
}

// rawListener is a server that is driven by hand too.
func rawListener(t *testing.T) (fd int32, addr string) {
	svc := &Service{Name: "raw"}
	k, err := bindSocket(svc, peers.V4, 1, nil)
	if err == nil {
		err = k.listen(svc)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.close)
	return k.fds[0], k.String()
}

// handOver drives one shard before a raw listener.
func handOver(t *testing.T, mode Splice) (h *hand, ln int32) {
	ln, addr := rawListener(t)
	h = &hand{t: t, clock: 1}
	cfg := configure(t, path{mode: mode, listen: peers.V4}, []string{addr})
	cfg.Shards = 1
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.shard, h.addr = s.shards[0], s.Addrs("s")[0]
	t.Cleanup(s.Close)
	return h, ln
}

func receive(h *hand, fd int32, b []byte) {
	for got := 0; got < len(b); {
		n, e := recv(fd, b[got:])
		if e == 0 {
			got += n
		}
		h.turn(h.clock)
	}
}

func acceptRaw(h *hand, ln int32, sa *unix.RawSockaddrAny) int32 {
	for {
		h.turn(h.clock)
		if fd, e := accept(ln, sa); e == 0 {
			return fd
		}
	}
}

func TestMessagesAllocateNothing(t *testing.T) {
	for _, mode := range []Splice{SpliceAuto, SpliceOff, SpliceAlways} {
		leak.Check(t)
		h, ln := handOver(t, mode)
		c := rawDial(t, h)
		s := acceptRaw(h, ln, new(unix.RawSockaddrAny))
		message := make([]byte, 1000)
		if n := testing.AllocsPerRun(500, func() {
			send(c, message)
			receive(h, s, message)
			send(s, message)
			receive(h, c, message)
		}); n != 0 {
			t.Errorf("%s: %v allocations for a message there and back", modeNames[mode], n)
		}
		closeFD(c)
		closeFD(s)
		h.until("the end", func() bool { return h.slab.live == 0 })
	}
}

func TestSessionsAllocateLittle(t *testing.T) {
	for _, mode := range []Splice{SpliceAuto, SpliceOff, SpliceAlways} {
		leak.Check(t)
		h, ln := handOver(t, mode)
		message, sa := make([]byte, 128), new(unix.RawSockaddrAny)
		session := func() {
			c := rawDial(t, h)
			s := acceptRaw(h, ln, sa)
			send(c, message)
			receive(h, s, message)
			closeFD(c)
			closeFD(s)
			for h.slab.live > 0 {
				h.turn(h.clock)
			}
		}
		for range 100 {
			session()
		}
		// rawDial itself makes its address each time: that is not counted.
		own := testing.AllocsPerRun(100, func() { parseAddr(h.addr) })
		if n := testing.AllocsPerRun(200, session) - own; n > 2 {
			t.Errorf("%s: %v allocations for a session", modeNames[mode], n)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What an idle session costs this process, the kernel's share apart: 512 bytes at most.
func TestIdleSessionsAreSmall(t *testing.T) {
	const sessions = 1000
	leak.Check(t)
	h, ln := handOver(t, SpliceAuto)
	fds := make([]int32, 0, 2*sessions)
	sa := new(unix.RawSockaddrAny)
	open := func() { fds = append(fds, rawDial(t, h), acceptRaw(h, ln, sa)) }
	open()
	before := heap()
	for len(fds) < 2*sessions {
		open()
	}
	if each := int64(heap()-before) / sessions; each > 512 {
		t.Errorf("%d bytes for an idle session", each)
	}
	if h.pipes.budget.out.Load() != 0 || h.held != 0 {
		t.Errorf("idle sessions hold %d pipes, %d buffers", h.pipes.budget.out.Load(), h.held)
	}
	for _, fd := range fds {
		closeFD(fd)
	}
	h.until("the end of all", func() bool { return h.slab.live == 0 })
}

// Sessions that are over leave nothing behind, however many there were.
func TestHeapDoesNotGrow(t *testing.T) {
	leak.Check(t)
	h, ln := handOver(t, SpliceAuto)
	sa := new(unix.RawSockaddrAny)
	churn := func(n int) uint64 {
		for range n {
			c := rawDial(t, h)
			s := acceptRaw(h, ln, sa)
			closeFD(c)
			closeFD(s)
			h.until("the end", func() bool { return h.slab.live == 0 })
		}
		return heap()
	}
	first := churn(500)
	if second := churn(3000); second > first+first/10+16<<10 {
		t.Errorf("heap was %d after 500 sessions, %d after 3,500", first, second)
	}
}
