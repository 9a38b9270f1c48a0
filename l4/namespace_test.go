package l4

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
	peers "sluice/internal/peer"
)

// Some scenarios change the network for everybody: they run in this test's own process again, in a network namespace
// of its own with nothing but a loopback.
const childMark = "SLUICE_L4_CHILD"

// inNamespace runs inside as the body of t in a new namespace.
func inNamespace(t *testing.T, inside func(t *testing.T)) {
	t.Helper()
	if os.Getenv(childMark) == t.Name() {
		command(t, "ip", "link", "set", "lo", "up")
		leak.Check(t)
		inside(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	again(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
}

// again runs this one test in a child process.
func again(t *testing.T, attr *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.Command(readableBinary(t), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childMark+"="+t.Name())
	cmd.Dir, cmd.SysProcAttr = "/", attr
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// readableBinary is a copy of this test that every user may execute: go test keeps its own in a private directory.
func readableBinary(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(socketPath(t))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "l4.test")
	if err := os.WriteFile(exe, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return exe
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs %s", name)
	}
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func setPorts(t *testing.T, low, high int) {
	t.Helper()
	text := fmt.Sprintf("%d %d", low, high)
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lines is a log that a test reads.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// When all ports towards a server are taken, that is our shortage, and new sessions end at once.
func TestOutOfPorts(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		server := peers.Listen(t, peers.V4, peers.Echo())
		setPorts(t, 40000, 40019)
		said := make(lines, 16)
		logged := func(cfg *Config, _ *Service) { cfg.Log = slog.New(slog.NewTextHandler(said, nil)) }
		b := start(t, path{listen: peers.Unix, server: peers.V4}, []*peers.Server{server}, logged)
		for range 30 {
			peers.Dial(t, b.addr) // it says nothing: the session may have ended before it could
		}
		short := b.expect(10, LocalResource)
		if line := <-said; !strings.Contains(line, "of our own") || strings.Contains(line, "server=") {
			t.Errorf("the log blames a server: %s", line)
		}
		if n := b.Stats().Sessions; n > 20 || short[0].Total > limit/2 {
			t.Errorf("%d sessions, ended after %v", n, short[0].Total)
		}
	})
}

// A connect to a free port of the ephemeral range may be given that very port as its source, and connects to itself.
func TestSelfConnect(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		setPorts(t, 40000, 40000)
		b := run(t, configure(t, path{listen: peers.Unix}, []string{"127.0.0.1:40000"}))
		peers.Visit(t, b.addr, peers.ExpectEOF(0))
		b.expect(1, ConnectRefused)
	})
}

// A peer that vanished says nothing: keepalive finds out.
func TestVanishedServer(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		server := peers.Listen(t, peers.V4, peers.Greet(1))
		b := start(t, path{listen: peers.Unix, server: peers.V4}, []*peers.Server{server}, func(_ *Config, s *Service) {
			s.Keepalive = Keepalive{Idle: time.Second, Interval: time.Second, Count: 2}
		})
		c := peers.Dial(t, b.addr)
		c.Do(peers.Expect(1))
		command(t, "nft", "add table ip t; add chain ip t i { type filter hook input priority 0; }; add rule ip t i tcp sport > 0 drop")
		c.Do(peers.ExpectEnd(0))
		if e := b.expect(1, ServerReset)[0]; e.Errno != syscall.ETIMEDOUT {
			t.Errorf("errno %v", e.Errno)
		}
		command(t, "nft", "flush ruleset")
	})
}

// Sent data that nobody acknowledges is given up after the user timeout.
func TestUserTimeout(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		server := peers.Listen(t, peers.V4, peers.Greet(1))
		b := start(t, path{listen: peers.Unix, server: peers.V4}, []*peers.Server{server}, func(_ *Config, s *Service) {
			s.UserTimeout = time.Second
		})
		c := peers.Dial(t, b.addr)
		c.Do(peers.Expect(1), peers.Hold(700*time.Millisecond)) // it is set after half its time
		command(t, "nft", "add table ip t; add chain ip t i { type filter hook input priority 0; }; add rule ip t i tcp sport > 0 drop")
		c.Do(peers.Send(10), peers.ExpectEnd(0))
		b.expect(1, ServerReset)
		command(t, "nft", "flush ruleset")
	})
}

// Ordinary sessions send no reset on either side.
func TestNoResetsOnTheWire(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		const visits, n = 200, 10 << 10
		before := resetsSent(t)
		for _, mode := range []Splice{SpliceAuto, SpliceOff, SpliceAlways} {
			server := peers.Listen(t, peers.V4, peers.Expect(n), peers.Send(n), peers.FIN(), peers.ExpectEOF(0))
			b := start(t, path{mode, peers.V4, peers.V4}, []*peers.Server{server})
			together(4, visits/4, func(int) {
				peers.Visit(t, b.addr, peers.Send(n), peers.Expect(n), peers.ExpectEOF(0), peers.FIN())
			})
			server.Wait(visits)
			b.expect(visits, Normal)
		}
		// A probe of the kernel's that crosses the last ACK may be answered with a reset: few sessions see that.
		if sent := resetsSent(t) - before; sent > 3*visits/20 {
			t.Errorf("%d resets were sent in %d sessions", sent, 3*visits)
		}
	})
}

func resetsSent(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == "OutRsts" {
				fmt.Sscan(fields[i], &n)
			}
		}
	}
	return n
}

// An unprivileged user may hold few pipe pages: beyond that new pipes are too small, and streams are copied.
func TestPipesOfAnUnprivilegedUser(t *testing.T) {
	if os.Getenv(childMark) != t.Name() {
		if os.Getuid() != 0 {
			t.Skip("needs root to become nobody")
		}
		again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
		return
	}
	leak.Check(t)
	usePipePages(t)
	if q := openPipe(); q != nil {
		q.close()
		t.Skipf("this kernel still gives pipes of %d bytes", q.size)
	}
	const n = 1 << 20
	for _, mode := range []Splice{SpliceAuto, SpliceAlways} {
		server := peers.Listen(t, peers.V4, peers.Send(n), peers.FIN(), peers.Expect(n), peers.ExpectEOF(0))
		b := start(t, path{mode, peers.V4, peers.V4}, []*peers.Server{server})
		peers.Visit(t, b.addr, peers.Expect(n), peers.ExpectEOF(0), peers.Send(n), peers.FIN())
		if e := b.expect(1, Normal)[0]; e.In != n || e.Out != n {
			t.Errorf("%d in, %d out", e.In, e.Out)
		}
	}
}

// usePipePages takes all that the user may have.
func usePipePages(t *testing.T) {
	for range 2000 {
		var fds [2]int
		if unix.Pipe2(fds[:], unix.O_CLOEXEC) != nil {
			return
		}
		t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
		if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, wantPipe); err != nil {
			if size, _ := unix.FcntlInt(uintptr(fds[0]), unix.F_GETPIPE_SZ, 0); size < leastOf {
				return
			}
		}
	}
}
