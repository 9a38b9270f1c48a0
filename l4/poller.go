package l4

import (
	"fmt"
	"net"
	"sync"

	"github.com/cloudwego/netpoll"
)

// pollers is how many pollers netpoll was asked for. They are the process's, not a server's.
var pollers struct {
	sync.Mutex
	n int
}

// start hands each shard to a poller of its own, as far as netpoll has one for each.
func (s *Server) start() ([]netpoll.EventLoop, error) {
	pollers.Lock()
	defer pollers.Unlock()
	if len(s.shards) > pollers.n {
		pollers.n = len(s.shards)
		if err := netpoll.Configure(netpoll.Config{PollerNum: pollers.n}); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.cut: // Close came first, and has given everything back
		return nil, nil
	default:
	}
	var loops []netpoll.EventLoop
	for _, sh := range s.shards {
		loop, err := netpoll.NewEventLoop(nil)
		if err != nil {
			return loops, err
		}
		ended := make(chan error, 1)
		started := make(chan struct{})
		sh.do(func() { close(started) })
		go func() { ended <- loop.Serve(nest{sh}) }()
		select {
		case <-started:
			loops = append(loops, loop)
		case err := <-ended:
			return loops, fmt.Errorf("netpoll: %w", err)
		}
	}
	s.running = true
	close(s.started)
	return loops, nil
}

// Started is closed when Run has its event loops running: from then on the process opens no descriptor but its own.
func (s *Server) Started() <-chan struct{} { return s.started }

// nest makes a shard's epoll set look like a listening socket to netpoll: an epoll descriptor is itself pollable, and
// Accept is called whenever something in the set is ready.
type nest struct{ sh *shard }

func (n nest) Fd() int                   { return int(n.sh.epfd) }
func (n nest) Accept() (net.Conn, error) { n.sh.run(); return nil, nil }
func (n nest) Close() error              { return nil }
func (n nest) Addr() net.Addr            { return &net.UnixAddr{Name: "shard", Net: "epoll"} }
