package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/peer"
)

// socketFile is a path for a unix socket, short enough for one.
func socketFile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "sock")
}

func TestUnixSockets(t *testing.T) {
	s1 := named(t, peer.Unix, "s1")
	path := socketFile(t)
	p := serve(t, inFile(t, one("unix:"+path, s1.Addr())))
	wantAlive(t, openMany(t, "unix:"+path, 5)...)
	p.signal(unix.SIGTERM)
	eventually(t, "the socket file goes away", func() bool { _, err := os.Lstat(path); return os.IsNotExist(err) })
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
}

// A socket file that a killed process left is replaced (LSN-01, 1).
func TestStaleSocketFile(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := "unix:" + socketFile(t)
	file := inFile(t, one(at, s1.Addr()))
	first := serve(t, file)
	wantAnswer(t, at, "s1")
	first.signal(unix.SIGKILL)
	first.wait()
	serve(t, file)
	wantAnswer(t, at, "s1")
}

// A socket that another process listens on is left alone (LSN-01, 2).
func TestLiveSocketFile(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	at := "unix:" + socketFile(t)
	serve(t, inFile(t, one(at, s1.Addr())))
	second := call(t, []string{"run", "-c", inFile(t, one(at, s2.Addr()))})
	second.wantExit(exitNo)
	wantText(t, "stderr", second.err.String(), "listener web: cannot listen on "+at)
	wantText(t, "stderr", second.err.String(), "another process listens there")
	wantAnswer(t, at, "s1")
}

// What is no socket is not touched (LSN-01, 3 to 5).
func TestPathIsNoSocket(t *testing.T) {
	stale := socketFile(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	rows := []struct {
		name string
		make func(path string) error
	}{
		{"file", func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) }},
		{"directory", func(path string) error { return os.Mkdir(path, 0o755) }},
		{"symlink to a file", func(path string) error { return os.Symlink("/etc/passwd", path) }},
		{"symlink to nothing", func(path string) error { return os.Symlink("/nonexistent", path) }},
		{"symlink to a stale socket", func(path string) error { return os.Symlink(stale, path) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			path := socketFile(t)
			if err := row.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(path)
			p := call(t, []string{"run", "-c", inFile(t, one("unix:"+path, "127.0.0.1:1"))})
			p.wantExit(exitNo)
			wantText(t, "stderr", p.err.String(), "is not a socket")
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("%s was touched: %v", path, err)
			}
		})
	}
}

// A process that stops does not remove the socket of the one that took its place (RLD-09).
func TestSocketFileOfTheSuccessor(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	path := socketFile(t)
	first := serve(t, inFile(t, one("unix:"+path, s1.Addr())))
	os.Remove(path)
	serve(t, inFile(t, one("unix:"+path, s2.Addr())))
	first.signal(unix.SIGTERM)
	first.wantExit(exitFine)
	wantAnswer(t, "unix:"+path, "s2")
}

func has6() bool { return free("[::1]:0") }

func TestIPv6(t *testing.T) {
	if !has6() {
		t.Skip("this machine has no IPv6")
	}
	s1 := named(t, peer.V6, "s1")
	at := place6(t)
	p := serve(t, inFile(t, one(at, s1.Addr())))
	p.await(at)
	wantAlive(t, openMany(t, at, 5)...)
}

// [::] alone takes IPv4 too; with v6_only, or beside 0.0.0.0, it does not (LSN-03).
func TestDualStack(t *testing.T) {
	if !has6() {
		t.Skip("this machine has no IPv6")
	}
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	_, port, _ := net.SplitHostPort(place6(t))
	four, six := "127.0.0.1:"+port, "[::1]:"+port
	pools := pool("p", []string{server("s1", s1.Addr())}) + pool("q", []string{server("s2", s2.Addr())})
	file := inFile(t, head+listener("six", "[::]:"+port, "p")+pools)
	p := serve(t, file)
	wantAnswer(t, four, "s1")
	wantAnswer(t, six, "s1")
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
	write(t, file, head+listener("six", "[::]:"+port, "p", "v6_only = true")+listener("four", "0.0.0.0:"+port, "q")+pools)
	serve(t, file)
	wantAnswer(t, four, "s2")
	wantAnswer(t, six, "s1")
}

// A listener may have a list of addresses, of all kinds; its limit holds over the list.
func TestListOfAddresses(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	one, two, three := place(t), place(t), "unix:"+socketFile(t)
	list := "[\"" + strings.Join([]string{one, two, three}, `", "`) + "\"]"
	text := strings.Replace(head+listener("web", "LIST", "p", "max_connections = 3")+pool("p", []string{server("s1", s1.Addr())}), `"LIST"`, list, 1)
	serve(t, inFile(t, text))
	sessions := []*session{open(t, one), open(t, two), open(t, three)}
	for _, at := range []string{one, two} {
		wantReset(t, at)
	}
	if _, err := ask(three); err == nil {
		t.Error("a fourth session of three")
	}
	wantAlive(t, sessions...)
}
