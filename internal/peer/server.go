package peer

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Where to listen: a free port or path that the kernel or the file system
// picks. Listen takes an exact address as well.
const (
	V4   = "127.0.0.1:0"
	V6   = "[::1]:0"
	Unix = "unix:"
)

// Server is a listening peer. All methods may be called from any goroutine.
type Server struct {
	t        testing.TB
	address  string
	listener net.Listener
	closers  []func() // what else Close has to give back

	running sync.WaitGroup
	mu      sync.Mutex
	changed *sync.Cond // ended or closed has changed
	conns   map[*Conn]struct{}
	opened  int
	ended   int
	closed  bool
}

// Listen plays script on every connection to where (V4, V6, Unix or an exact
// address), each in its own goroutine, and closes it when the script is over.
// Without a script nobody accepts until Accept is called.
func Listen(t testing.TB, where string, script ...Step) *Server {
	t.Helper()
	s := newServer(t)
	listener, err := s.listen(where)
	if err != nil {
		t.Fatalf("server: %v", err)
	}
	s.listener, s.address = listener, addressOf(listener.Addr())
	if len(script) > 0 {
		s.running.Go(func() { s.serve(script) })
	}
	return s
}

func newServer(t testing.TB) *Server {
	s := &Server{t: t, conns: make(map[*Conn]struct{})}
	s.changed = sync.NewCond(&s.mu)
	t.Cleanup(s.Close)
	return s
}

func (s *Server) listen(where string) (net.Listener, error) {
	network, addr := split(where)
	if where == Unix {
		path, err := s.socketPath()
		if err != nil {
			return nil, err
		}
		addr = path
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), network, addr)
}

// socketPath is short whatever the test is called: a path holds 107 bytes.
func (s *Server) socketPath() (string, error) {
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		return "", err
	}
	s.closers = append(s.closers, func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "sock"), nil
}

func addressOf(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}

// Addr is where clients connect: "127.0.0.1:4711", "[::1]:4711", "unix:/path".
func (s *Server) Addr() string { return s.address }

func (s *Server) serve(script []Step) {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		if c := s.adopt(raw); c != nil {
			s.running.Go(func() { s.converse(c, script) })
		}
	}
}

func (s *Server) converse(c *Conn, script []Step) {
	c.Do(script...)
	c.hangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.ended++
	s.changed.Broadcast()
}

// adopt makes raw a conversation of this server, or closes it with the server.
func (s *Server) adopt(raw net.Conn) *Conn {
	c := newConn(s.t, "server", raw)
	c.setStreams(downStream, upStream)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.hangUp()
		return nil
	}
	s.conns[c] = struct{}{}
	s.opened++
	return c
}

// Accept takes one connection of a server without a script, or ends the test.
// The connection is closed with the server at the latest.
func (s *Server) Accept() *Conn {
	s.t.Helper()
	deadline := s.listener.(interface{ SetDeadline(time.Time) error })
	if err := deadline.SetDeadline(time.Now().Add(Patience)); err != nil {
		s.t.Fatalf("server: %v", err)
	}
	raw, err := s.listener.Accept()
	if err != nil {
		s.t.Fatalf("server: %v", err)
	}
	return s.adopt(raw)
}

// Accepted is how many connections there have been, Open how many there are.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened - s.ended
}

// Wait returns when n scripts have ended since the server began to listen, and
// fails the test if that takes longer than twice Patience.
func (s *Server) Wait(n int) {
	s.t.Helper()
	late := time.AfterFunc(2*Patience, func() {
		s.t.Errorf("server: %d conversations have not ended", n)
		s.Close()
	})
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ended < n && !s.closed {
		s.changed.Wait()
	}
}

// Close stops listening and ends all conversations. It may be called again.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.shut()
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) shut() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for c := range s.conns {
		c.hangUp()
	}
	for _, f := range s.closers {
		f()
	}
}

// String names the server in messages.
func (s *Server) String() string { return fmt.Sprintf("server at %s", s.address) }
