package pick

import (
	"math"
	"sync/atomic"
	"time"
)

// LeastTime takes the server with the smallest product of how long it lately took
// to answer and how many sessions it has, for its weight: peak EWMA, as in Finagle
// (2015) and Linkerd. The times are what [Server.Observe] was told; State.Now must
// be kept. What was heard fades with its age, and a server that nothing was heard
// of for ten seconds gets one session to find out, as go-zero's does. The cost is
// a few loads a server.
func LeastTime(members []Member) Picker {
	l := newLoads(members)
	if l.idle() {
		return nobody{}
	}
	return &leastTime{l, newCycle(l.ws)}
}

const (
	fade        = 10 * time.Second // after which an observation counts half
	probeAfter  = 10 * time.Second // of silence
	unknownTime = time.Second      // assumed of a server that was asked and has not answered yet
)

type leastTime struct {
	loads
	cycle *cycle
}

func (l *leastTime) Pick(st *State, _ uint64, tried []int) int {
	// Equal costs are common only when nothing is known yet. Then whose turn it is
	// decides, by being looked at first.
	start := l.cycle.next(st)
	best, low := -1, math.Inf(1)
	for k := range l.members {
		i := start + k
		if i >= len(l.members) {
			i -= len(l.members)
		}
		if l.barred(i, tried) || l.ramped && !l.admits(st, i) {
			continue
		}
		if l.members[i].timing.due(st.Now) {
			return i
		}
		if c := l.cost(st.Now, i); c < low {
			best, low = i, c
		}
	}
	if best < 0 && l.ramped {
		return l.anyFrom(start, tried)
	}
	return best
}

func (l *leastTime) cost(now int64, i int) float64 {
	m := l.members[i]
	return m.timing.expect(now) * float64(m.Active()+1) / float64(l.ws[i])
}

// Observe tells how long the server took to accept a connection and to send its
// first byte after; 0 for what is not known. A failed connect is best told as one
// that took as long as the caller would have waited. now is the State.Now of the
// caller. Lock-free, safe for concurrent use.
func (s *Server) Observe(now int64, connect, firstByte time.Duration) {
	if connect > 0 {
		s.timing.connect.observe(now, connect)
	}
	if firstByte > 0 {
		s.timing.firstByte.observe(now, firstByte)
	}
	if s.timing.heard.Load() < now {
		s.timing.heard.Store(now) // two that race here are of the same moment
	}
}

// timing is how fast a server answered lately.
type timing struct {
	connect   ewma
	firstByte ewma
	heard     atomic.Int64 // when it was last heard of, or asked by a probe; 0: never
}

const timingSize = 24

// due reports whether the caller should send a session to find out how the server
// is. Of all callers, one is told so.
func (t *timing) due(now int64) bool {
	heard := t.heard.Load()
	if heard != 0 && now-heard < int64(probeAfter) {
		return false
	}
	return t.heard.CompareAndSwap(heard, max(now, 1))
}

// expect is how long an answer will take, in nanoseconds.
func (t *timing) expect(now int64) float64 {
	expected := t.connect.value(now) + t.firstByte.value(now)
	if expected == 0 {
		return float64(unknownTime)
	}
	return expected
}

// An ewma is a moving average that rises at once and falls slowly, in one word so
// that it changes as one: a float32 of nanoseconds, and the time of the last change
// in units of 2^20 ns. Those wrap after 52 days; an average that old may count as new.
type ewma struct{ word atomic.Uint64 }

func (e *ewma) observe(now int64, d time.Duration) {
	for {
		old := e.word.Load()
		value := float64(d)
		if last, age := unpack(old, now); value < last {
			keep := kept(age)
			value = last*keep + value*(1-keep)
		}
		if e.word.CompareAndSwap(old, pack(value, now)) {
			return
		}
	}
}

func (e *ewma) value(now int64) float64 {
	value, age := unpack(e.word.Load(), now)
	return value * kept(age)
}

func pack(value float64, now int64) uint64 {
	return uint64(math.Float32bits(float32(value)))<<32 | uint64(uint32(now>>20))
}

func unpack(word uint64, now int64) (value, age float64) {
	units := int32(uint32(now>>20) - uint32(word)) // negative: another shard's clock is ahead
	return float64(math.Float32frombits(uint32(word >> 32))), max(0, float64(units)) * (1 << 20)
}

// kept is how much an observation of a certain age counts. A hyperbola and not an
// exponential: a division instead of a call for each server of each pick.
func kept(age float64) float64 { return float64(fade) / (float64(fade) + age) }
