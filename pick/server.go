package pick

import "sync/atomic"

// A Server is who may be picked: an identity and its counters. The identity is
// the pointer, and it outlives the Sets it is a member of: a Pool hands out the
// same *Server for the same name and address as long as anybody counts on it.
//
// The fields sit on three cache lines by who writes them: the first hardly
// anybody, the second every session's begin and end, the third the latency
// reports. Without that, shards that only read Addr would wait for each other.
type Server struct {
	Name string // unique in its Pool; never changes
	Addr string // what to dial; never changes

	// Data belongs to whoever embeds this package. It is set before the Server
	// is first published (see [Config].OnNew) and not touched here.
	Data any

	limit atomic.Int64 // most sessions at once, 0: no limit; written by the Pool
	ident uint64       // hash of name and address: what the hash policies place

	active atomic.Int64
	_      [56]byte

	timing timing
	_      [64 - timingSize]byte
}

// NewServer returns a Server without sessions, limits or measurements. Pools make
// their own; a direct call is for code that builds Members by hand.
func NewServer(name, addr string) *Server {
	return &Server{Name: name, Addr: addr, ident: identity(name, addr)}
}

// Acquire takes one session slot. It reports false, and takes nothing, when the
// server is at its limit. It is exact: whatever the number of goroutines, there
// are never more slots out than the limit says. Each true is paired with one
// [Server.Release]. Safe for concurrent use.
func (s *Server) Acquire() bool {
	if s.limit.Load() == 0 {
		s.active.Add(1)
		return true
	}
	// Compare-and-swap and not add-look-undo: an undo that is still to come
	// would refuse a slot that is free.
	for {
		n, limit := s.active.Load(), s.limit.Load()
		if limit != 0 && n >= limit {
			return false
		}
		if s.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives back a slot that [Server.Acquire] took. Safe for concurrent use.
func (s *Server) Release() {
	if s.active.Add(-1) < 0 {
		panic("pick: Release of " + s.Name + " without Acquire")
	}
}

// Active is the number of slots that are taken now. Safe for concurrent use.
func (s *Server) Active() int64 { return s.active.Load() }

// Limit is the most sessions the server takes at once, 0 for no limit.
func (s *Server) Limit() int64 { return s.limit.Load() }

// full reports whether Acquire would fail now.
func (s *Server) full() bool {
	limit := s.limit.Load()
	return limit != 0 && s.active.Load() >= limit
}
