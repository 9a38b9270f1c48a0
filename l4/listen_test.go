package l4

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
	peers "sluice/internal/peer"
)

var tcp = path{listen: peers.V4, server: peers.V4}

func bindTo(binds ...string) option {
	return func(_ *Config, s *Service) { s.Bind = binds }
}

func refuses(t *testing.T, cfg Config, words ...string) {
	t.Helper()
	s, err := New(cfg)
	if err == nil {
		s.Close()
		t.Fatalf("nothing is said; want %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %q", err, word)
		}
	}
}

// leftOver is a socket file whose process was killed.
func leftOver(t *testing.T) string {
	at := socketPath(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: at}); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestStaleUnixSocketIsReplaced(t *testing.T) {
	leak.Check(t)
	at := leftOver(t)
	server := peers.Listen(t, peers.V4, peers.Greet(1))
	b := start(t, tcp, []*peers.Server{server}, bindTo("unix:"+at))
	peers.Visit(t, b.addr, peers.Expect(1))
	refuses(t, configure(t, tcp, nil, bindTo("unix:"+at)), at, "another process listens")
	peers.Visit(t, b.addr, peers.Expect(1)) // the refused one did no harm
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(at); !os.IsNotExist(err) {
		t.Errorf("the path is still there: %v", err)
	}
}

// Whatever else lies at the path is not ours to remove.
func TestOtherFilesAreNotReplaced(t *testing.T) {
	leak.Check(t)
	dir := filepath.Dir(socketPath(t))
	file, sub, link, target := dir+"/file", dir+"/dir", dir+"/link", leftOver(t)
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{file, sub, link} {
		refuses(t, configure(t, tcp, nil, bindTo("unix:"+at)), at, "not a socket")
		if _, err := os.Lstat(at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// A path that somebody else has bound meanwhile is theirs.
func TestForeignSocketIsNotRemoved(t *testing.T) {
	leak.Check(t)
	at := socketPath(t)
	old := run(t, configure(t, tcp, nil, bindTo("unix:"+at)))
	os.Remove(at)
	run(t, configure(t, tcp, nil, bindTo("unix:"+at)))
	if err := old.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(at); err != nil {
		t.Errorf("the younger one's socket is gone: %v", err)
	}
}

func TestAbstractSocket(t *testing.T) {
	leak.Check(t)
	server := peers.Listen(t, peers.V4, peers.Greet(1))
	b := start(t, tcp, []*peers.Server{server}, bindTo("unix:@"+filepath.Base(filepath.Dir(socketPath(t)))))
	peers.Visit(t, b.addr, peers.Expect(1))
}

// SO_REUSEPORT would let two share a port without a word.
func TestPortInUseIsRefused(t *testing.T) {
	leak.Check(t)
	b := run(t, configure(t, tcp, nil))
	refuses(t, configure(t, tcp, nil, bindTo(b.addr)), "listener s", b.addr, "in use")
	taken, err := net.Listen("tcp", peers.V4)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	refuses(t, configure(t, tcp, nil, bindTo(taken.Addr().String())), taken.Addr().String(), "in use")
}

func TestSameAddressTwiceIsRefused(t *testing.T) {
	leak.Check(t)
	at := freePort(t)
	refuses(t, configure(t, tcp, nil, bindTo(at, at)), at, "already")
	path := "unix:" + socketPath(t)
	refuses(t, configure(t, tcp, nil, bindTo(path, path)), path, "already")
}

func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", peers.V4)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// All addresses are bound, or none.
func TestAllOrNothing(t *testing.T) {
	leak.Check(t)
	first, path := freePort(t), socketPath(t)
	refuses(t, configure(t, tcp, nil, bindTo(first, "unix:"+path, "192.0.2.1:1")), "192.0.2.1:1", "no such address")
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the unix socket is still there: %v", err)
	}
	run(t, configure(t, tcp, nil, bindTo(first, "unix:"+path)))
}

// [::] takes IPv6 and IPv4, or with V6Only IPv6 alone, whatever the system's default is.
func TestDualStack(t *testing.T) {
	leak.Check(t)
	server := peers.Listen(t, peers.V4, peers.Greet(1))
	dual := start(t, tcp, []*peers.Server{server}, bindTo("[::]:0"))
	_, port, _ := net.SplitHostPort(dual.addr)
	peers.Visit(t, "127.0.0.1:"+port, peers.Expect(1))
	peers.Visit(t, "[::1]:"+port, peers.Expect(1))
	for _, e := range dual.wait(2) {
		if e.Client.Addr().Is4In6() {
			t.Errorf("an IPv4 client is called %v", e.Client)
		}
	}
	only := start(t, tcp, []*peers.Server{server}, bindTo("[::]:0"), func(_ *Config, s *Service) { s.V6Only = true })
	_, port, _ = net.SplitHostPort(only.addr)
	peers.Visit(t, "[::1]:"+port, peers.Expect(1))
	run(t, configure(t, tcp, nil, bindTo("0.0.0.0:"+port))) // there is room for IPv4
}

// What waits at a listener that goes is served, not reset; one that stays keeps its socket.
func TestApplyKeepsWhatWaits(t *testing.T) {
	leak.Check(t)
	server := peers.Listen(t, peers.V4, peers.Greet(1))
	stays, goes := freePort(t), freePort(t)
	cfg := configure(t, tcp, []string{server.Addr()}, bindTo(stays, goes))
	b := run(t, cfg)
	for range 10 {
		var waiting []*peers.Conn
		for range 20 {
			waiting = append(waiting, peers.Dial(t, stays), peers.Dial(t, goes))
		}
		for _, binds := range [][]string{{stays}, {stays, goes}} {
			svc := *cfg.Services[0]
			svc.Bind, cfg.Services = binds, []*Service{&svc}
			cfg.OnEnd = nil
			if err := b.Apply(cfg); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range waiting {
			c.Do(peers.Expect(1), peers.FIN(), peers.ExpectEOF(0))
		}
	}
	b.expect(400, Normal)
}

// Close may come before Run has begun: then Run has nothing to do, and touches no descriptor.
func TestCloseBeforeRun(t *testing.T) {
	leak.Check(t)
	for range 20 {
		s, err := New(configure(t, tcp, nil))
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if err := s.Run(t.Context()); err != nil {
			t.Errorf("run: %v", err)
		}
	}
}
