package l4

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/pick"
)

// listenerStats is one shard's counts for one service. Each field is read on its own, so totals may tear.
type listenerStats struct {
	Accepted atomic.Uint64
	Ended    [reasonCount]atomic.Uint64 // refused connections too
	In, Out  atomic.Uint64              // bytes from and to clients
	_        [64]byte                   // no false sharing with the next shard's
}

// An upstream is what the data plane keeps for a server: its address in the kernel's form, and counts. It lives as
// long as the pick.Server that it belongs to.
type upstream struct {
	addr sockaddr
	port uint16
	bad  error // the address could not be used

	connects atomic.Uint64 // that succeeded
	failures [reasonCount]atomic.Uint64
	lastErr  atomic.Uint32 // errno of the last failure
	in, out  atomic.Uint64 // bytes to and from the server

	told uint64 // failures that the log was told of; of the one goroutine that does
}

// Attach prepares a server for the data plane; it is pick.Config's OnNew. A server whose address is not usable fails
// every dial.
func Attach(s *pick.Server) {
	u := &upstream{}
	u.addr, u.bad = parseAddr(s.Addr)
	u.port = u.addr.port()
	s.Data = u
}

func upstreamOf(s *pick.Server) *upstream { return s.Data.(*upstream) }

func (u *upstream) connected() { u.connects.Add(1) }

func (u *upstream) failed(why Reason, e syscall.Errno) {
	u.failures[why].Add(1)
	if why != LocalResource {
		u.lastErr.Store(uint32(e))
	}
}

// settle tells the counters of the bytes that moved since the last time.
func (sh *shard) settle(s *session) {
	up, down := s.halves[client].untold(), s.halves[server].untold()
	if up|down == 0 {
		return
	}
	s.stats.In.Add(up)
	s.stats.Out.Add(down)
	u := upstreamOf(s.server)
	u.in.Add(up)
	u.out.Add(down)
}

func (h *half) untold() uint64 {
	n := h.bytes - h.told
	h.told = h.bytes
	return uint64(n)
}

// Ended tells of an accepted connection that has ended.
type Ended struct {
	Service, Pool, Server string         // Server: empty when none was found
	Client                netip.AddrPort // not valid for a unix client
	Reason                Reason
	In, Out               int64 // bytes read from the client and from the server
	Tries                 int   // servers tried while the session had none
	Total                 time.Duration
	Errno                 syscall.Errno // of a reset
}

func (sh *shard) report(s *session, why Reason) {
	if sh.server.onEnd == nil {
		return
	}
	e := Ended{Service: s.Name, Pool: s.Pool.Name, Client: s.from.AddrPort(), Reason: why,
		In: s.halves[client].bytes, Out: s.halves[server].bytes, Total: time.Duration(sh.now - s.opened),
		Errno: max(s.ends[client].errno, s.ends[server].errno)}
	if s.server != nil {
		e.Server = s.server.Name
	}
	if s.tries != nil {
		e.Tries = len(s.tries.tried)
	}
	sh.server.onEnd(&e)
}

// Stats is a picture of a Server. Counters only grow; they are read one at a time, so sums may be off by what happened
// meanwhile.
type Stats struct {
	Sessions        int64 // open now
	Spliced, Copied int64 // bytes, by the way they took
	Pipes           int64 // open now
	Buffers         int64 // that hold bytes for a full receiver now
	AcceptErrors    int64
	Services        []ServiceStats
	Servers         []ServerStats
}

// ServiceStats are the counts of one listener.
type ServiceStats struct {
	Name     string
	Sessions int64 // open now
	Accepted int64 // refused ones too
	In, Out  int64 // bytes from and to clients
	Ended    map[Reason]int64
}

// ServerStats are the counts of one server of one pool.
type ServerStats struct {
	Pool string
	pick.Status
	Connects int64            // that succeeded
	Failures map[Reason]int64 // of connects
	In, Out  int64            // bytes to and from the server
}

// Stats asks each shard to bring the counters up to date first.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Sessions: s.sessions.Load(), Pipes: s.pipes.out.Load(), AcceptErrors: s.acceptErrors.Load()}
	s.onShards(func(sh *shard) {
		sh.slab.each(sh.settle)
		st.Spliced += sh.spliced
		st.Copied += sh.copied
		st.Buffers += sh.held
	})
	pools := map[*Pool]bool{}
	for _, svc := range s.config.Services {
		st.Services = append(st.Services, s.services[svc.Name].read(svc.Name))
		if !pools[svc.Pool] {
			pools[svc.Pool] = true
			st.Servers = append(st.Servers, svc.Pool.read()...)
		}
	}
	return st
}

func (svc *service) read(name string) ServiceStats {
	st := ServiceStats{Name: name, Sessions: svc.load.Load(), Ended: map[Reason]int64{}}
	for i := range svc.stats {
		l := &svc.stats[i]
		st.Accepted += int64(l.Accepted.Load())
		st.In += int64(l.In.Load())
		st.Out += int64(l.Out.Load())
		addReasons(st.Ended, &l.Ended)
	}
	return st
}

func (p *Pool) read() []ServerStats {
	var all []ServerStats
	for _, status := range p.Servers() {
		u := upstreamOf(status.Server)
		st := ServerStats{Pool: p.Name, Status: status, Connects: int64(u.connects.Load()), Failures: map[Reason]int64{},
			In: int64(u.in.Load()), Out: int64(u.out.Load())}
		addReasons(st.Failures, &u.failures)
		all = append(all, st)
	}
	return all
}

func addReasons(sum map[Reason]int64, counts *[reasonCount]atomic.Uint64) {
	for why := range counts {
		if n := counts[why].Load(); n > 0 {
			sum[Reason(why)] += int64(n)
		}
	}
}

// complain tells an operator, at most once a second for each server, of connects that failed, and of shortages. A
// line for each failure would fill the disk when a pool is down.
func (s *Server) complain(stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	shortages, dials := int64(0), int64(0)
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		if n := s.dialShortages.Load(); n > dials {
			s.log.Error("connects failed for want of descriptors, ports or memory of our own", "times", n-dials, "error", syscall.Errno(s.shortage.Load()))
			dials = n
		}
		if n := s.acceptErrors.Load(); n > shortages && s.shortage.Load() != 0 {
			s.log.Error("accept failed, listeners pause", "times", n-shortages, "error", syscall.Errno(s.shortage.Swap(0)))
			shortages = n
		}
		s.mu.Lock()
		services := s.config.Services
		s.mu.Unlock()
		for _, svc := range services {
			svc.Pool.complain(s.log)
		}
	}
}

func (p *Pool) complain(log *slog.Logger) {
	for _, status := range p.Servers() {
		u := upstreamOf(status.Server)
		sum := uint64(0)
		for why := range u.failures {
			if Reason(why) != LocalResource { // not its fault, and told elsewhere
				sum += u.failures[why].Load()
			}
		}
		if n := sum - u.told; n > 0 {
			u.told = sum
			log.Warn("connects failed", "pool", p.Name, "server", status.Name, "address", status.Addr, "times", n,
				"error", syscall.Errno(u.lastErr.Load()))
		}
	}
}
