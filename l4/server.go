package l4

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sluice/pick"
)

// A Server accepts connections and relays each to a server of its service's pool. Its methods are safe for concurrent
// use, except that Run is called once.
type Server struct {
	mode     Splice
	log      *slog.Logger
	onEnd    func(*Ended)
	born     time.Time
	shards   []*shard
	sessions atomic.Int64
	pipes    pipeBudget

	maxSessions   atomic.Int64
	acceptErrors  atomic.Int64
	dialShortages atomic.Int64  // connects that failed for want of something of ours
	shortage      atomic.Uint32 // errno of the last shortage
	ephemeralLow  uint16        // first port that the kernel gives to connects
	started       chan struct{} // closed when the event loops run
	cut           chan struct{} // closed by Close
	cutOnce       sync.Once

	mu       sync.Mutex
	config   Config
	running  bool
	sockets  map[socketKey]*socket
	services map[string]*service
}

// service is what outlives a configuration: counts, by name.
type service struct {
	load  atomic.Int64
	stats []listenerStats // one for each shard
}

// socketKey tells whether a listening socket may stay when the configuration changes.
type socketKey struct {
	bind, device string
	v6Only       bool
}

// New binds every address of cfg, or none: then the error names the one that could not be bound.
func New(cfg Config) (*Server, error) {
	s := &Server{mode: cfg.Splice, log: cfg.Log, onEnd: cfg.OnEnd, born: time.Now(), started: make(chan struct{}), cut: make(chan struct{}),
		ephemeralLow: firstEphemeralPort(), sockets: map[socketKey]*socket{}, services: map[string]*service{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.pipes.limit = int64(cfg.MaxPipes); cfg.MaxPipes == 0 {
		s.mode = SpliceOff
	}
	for i := range max(cfg.Shards, 1) {
		sh, err := newShard(s, i)
		if err != nil {
			s.closeShards()
			return nil, fmt.Errorf("event loop %d: %w", i, err)
		}
		s.shards = append(s.shards, sh)
	}
	if err := s.Apply(cfg); err != nil {
		s.closeShards()
		return nil, err
	}
	return s, nil
}

// clock is the time of the shards: ns since the server's birth, at least 1.
func (s *Server) clock() int64 { return int64(time.Since(s.born)) + 1 }

// firstEphemeralPort is where net.ipv4.ip_local_port_range begins.
func firstEphemeralPort() uint16 {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if fields := strings.Fields(string(text)); len(fields) == 2 {
		if low, err := strconv.ParseUint(fields[0], 10, 16); err == nil {
			return uint16(low)
		}
	}
	return 1
}

// Apply changes to another configuration while sessions go on as they began. Listeners are matched by address and keep
// their descriptors and what waits in them; new ones are bound before anything changes, and if one cannot be, nothing
// changes. Shards, Splice, MaxPipes, Log and OnEnd are those of New for good.
func (s *Server) Apply(cfg Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, fresh, err := s.bindAll(cfg)
	if err != nil {
		return err
	}
	for key, k := range fresh {
		s.sockets[key] = k
	}
	s.config = cfg
	s.maxSessions.Store(int64(cfg.MaxConnections))
	for _, svc := range cfg.Services {
		if s.services[svc.Name] == nil {
			s.services[svc.Name] = &service{stats: make([]listenerStats, len(s.shards))}
		}
	}
	s.onShards(func(sh *shard) { sh.apply(plan, s.services) })
	for key, k := range s.sockets {
		if plan[key] == nil {
			delete(s.sockets, key)
			k.retire()
		}
	}
	return nil
}

// bindAll binds what is not bound yet, and listens only once everything is bound: a client that was taken in by a start
// or a change that then fails would be reset. plan says which service each socket serves.
func (s *Server) bindAll(cfg Config) (plan map[socketKey]*binding, fresh map[socketKey]*socket, err error) {
	plan, fresh = map[socketKey]*binding{}, map[socketKey]*socket{}
	leaving := s.leaving(cfg)
	defer func() {
		if err != nil {
			for _, k := range fresh {
				k.close()
			}
		}
	}()
	for _, svc := range cfg.Services {
		for _, bind := range svc.Bind {
			key := socketKey{bind, svc.Interface, svc.V6Only}
			if plan[key] != nil {
				return nil, fresh, fmt.Errorf("listener %s: %s is bound by listener %s already", svc.Name, bind, plan[key].service.Name)
			}
			k := s.sockets[key]
			if k == nil {
				if k, err = bindSocket(svc, bind, len(s.shards), leaving); err != nil {
					return nil, fresh, err
				}
				fresh[key] = k
			} else if err = k.retune(svc); err != nil {
				return nil, fresh, err
			}
			plan[key] = &binding{service: svc, socket: k}
		}
	}
	for key, k := range fresh {
		if err = k.listen(plan[key].service); err != nil {
			return nil, fresh, err
		}
	}
	return plan, fresh, nil
}

// leaving are the ports of the sockets that cfg has no use for. They close only when the new ones listen, so a new one
// may have to share its port with them for a moment.
func (s *Server) leaving(cfg Config) map[uint16]bool {
	stay := map[socketKey]bool{}
	for _, svc := range cfg.Services {
		for _, bind := range svc.Bind {
			stay[socketKey{bind, svc.Interface, svc.V6Only}] = true
		}
	}
	ports := map[uint16]bool{}
	for key, k := range s.sockets {
		if !stay[key] && !k.addr.isUnix() {
			ports[k.addr.port()] = true
		}
	}
	return ports
}

// A binding is a socket and the service that it is for.
type binding struct {
	service *Service
	socket  *socket
}

// retune sets on a socket that listens already what a new configuration says.
func (k *socket) retune(svc *Service) error {
	for _, fd := range k.fds {
		if !k.addr.isUnix() {
			if err := tune(svc, fd); err != nil {
				return fmt.Errorf("listener %s: %w", svc.Name, err)
			}
		}
		if err := unix.Listen(int(fd), backlog(svc)); err != nil {
			return fmt.Errorf("listener %s: backlog: %w", svc.Name, err)
		}
	}
	return nil
}

// retire ends a socket that no shard watches any more. Shards close their TCP descriptors themselves.
func (k *socket) retire() {
	if k.addr.isUnix() {
		k.close()
	}
}

// apply makes the shard listen where plan says, and nowhere else.
func (sh *shard) apply(plan map[socketKey]*binding, services map[string]*service) {
	pools := map[*pick.Pool]*pick.State{}
	have := map[*socket]*listener{}
	for _, l := range sh.listeners {
		have[l.socket] = l
	}
	for _, b := range plan {
		svc := services[b.service.Name]
		state := sh.stateOf(b.service.Pool.Pool)
		pools[b.service.Pool.Pool] = state
		r := newRoute(b.service, state, &svc.stats[sh.id], &svc.load)
		if l := have[b.socket]; l != nil {
			l.route = r
			delete(have, b.socket)
		} else {
			sh.listen(b.socket, r)
		}
	}
	sh.states = pools
	for _, l := range have {
		sh.unlisten(l)
	}
}

// stateOf keeps the shard's position in a pool over changes of the configuration.
func (sh *shard) stateOf(p *pick.Pool) *pick.State {
	if st := sh.states[p]; st != nil {
		return st
	}
	st := pick.NewState(sh.id)
	sh.states[p] = st
	return st
}

func (sh *shard) listen(k *socket, r *route) {
	sh.lastID++
	l := &listener{id: sh.lastID, unix: k.addr.isUnix(), route: r, socket: k, fd: k.fds[sh.id%len(k.fds)]}
	sh.listeners[l.id] = l
	if sh.watch(l) != 0 {
		l.paused = true
		sh.resumeAt = sh.now + acceptPause
	}
}

// unlisten takes in what waits at a listener, which closing it would reset, and leaves it.
func (sh *shard) unlisten(l *listener) {
	for range backlogMax / acceptBatch {
		if !sh.acceptFrom(l) {
			break
		}
	}
	delete(sh.listeners, l.id)
	if !l.paused {
		epollDel(sh.epfd, l.fd)
	}
	if !l.unix {
		closeFD(l.fd)
	}
}

// onShards runs f on every shard, one after the other, each on its own goroutine once the server runs.
func (s *Server) onShards(f func(*shard)) {
	for _, sh := range s.shards {
		if !s.running {
			f(sh)
		} else {
			sh.call(func() { f(sh) })
		}
	}
}

// Run serves until ctx ends and the sessions have drained: listeners close at once, sessions may go on for
// ShutdownTimeout (0: as long as they like), what is left then is cut. Close cuts at once. The error is nil unless
// the event loops could not be started.
func (s *Server) Run(ctx context.Context) error {
	loops, err := s.start()
	if len(loops) > 0 && err == nil {
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() { s.complain(stop); close(done) }()
		select {
		case <-ctx.Done():
		case <-s.cut:
		}
		s.drain()
		close(stop)
		<-done
	}
	for i, l := range loops {
		s.shards[i].stop()
		l.Shutdown(context.Background())
	}
	s.closeShards()
	return err
}

// drain ends the listening, waits for the sessions, and cuts what is left.
func (s *Server) drain() {
	s.mu.Lock()
	empty := s.config
	s.mu.Unlock()
	empty.Services = nil
	s.Apply(empty)
	var late <-chan time.Time
	if empty.ShutdownTimeout > 0 {
		late = time.After(empty.ShutdownTimeout)
	}
	ask := time.NewTicker(10 * time.Millisecond)
	defer ask.Stop()
	for s.sessions.Load() > 0 {
		select {
		case <-ask.C:
			continue
		case <-late:
		case <-s.cut:
		}
		break
	}
	if n := s.sessions.Load(); n > 0 {
		s.log.Warn("sessions cut at the end of the shutdown", "sessions", n)
	}
	s.onShards(func(sh *shard) {
		sh.slab.each(func(x *session) {
			if x.phase < closed {
				sh.close(x, Shutdown)
			}
		})
	})
}

// Close makes Run end at once, cutting every session. It does not wait. On a server that was never run it gives the
// addresses back.
func (s *Server) Close() {
	s.cutOnce.Do(func() { close(s.cut) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		for key, k := range s.sockets {
			k.close()
			delete(s.sockets, key)
		}
		s.closeShards()
	}
}

func (s *Server) closeShards() {
	for _, sh := range s.shards {
		sh.shut()
	}
}

// shut gives back the shard's own descriptors.
func (sh *shard) shut() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return
	}
	sh.closed = true
	sh.reap()
	sh.pipes.trim()
	closeFD(sh.evfd)
	closeFD(sh.tmfd)
	closeFD(sh.epfd)
}

// Addrs are the addresses that a service listens on, with the port that a bind to port 0 was given.
func (s *Server) Addrs(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var addrs []string
	for _, svc := range s.config.Services {
		for _, bind := range svc.Bind {
			k := s.sockets[socketKey{bind, svc.Interface, svc.V6Only}]
			if svc.Name == name && k != nil {
				addrs = append(addrs, k.String())
			}
		}
	}
	return addrs
}

func (k *socket) String() string {
	if k.addr.isUnix() {
		return k.bind
	}
	return newPeer(&k.addr.raw).AddrPort().String()
}
