package leak

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/netpoll"
	"golang.org/x/sys/unix"
)

// verdict is a testing.TB that keeps its cleanup and its error for us.
type verdict struct {
	testing.TB
	cleanup func()
	said    string
}

func (v *verdict) Helper()                        {}
func (v *verdict) Cleanup(f func())               { v.cleanup = f }
func (v *verdict) Errorf(format string, a ...any) { v.said += fmt.Sprintf(format, a...) }

func TestCheckLetsACleanTestPass(t *testing.T) {
	v := &verdict{TB: t}
	Check(v)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends while Check is waiting already
		_, _ = r.Read(make([]byte, 1))
		_ = r.Close()
		close(done)
	}()
	time.AfterFunc(20*time.Millisecond, func() { _ = w.Close() })
	v.cleanup()
	if v.said != "" {
		t.Errorf("a clean test failed: %s", v.said)
	}
	<-done
}

func TestLeftoversAreSeen(t *testing.T) {
	rows := []struct {
		name string
		open func(t *testing.T) (end func())
		want string
	}{
		{"goroutine", leakGoroutine, "leakGoroutine"},
		{"pipe", leakPipe, "2 x descriptor of pipe:"},
		{"listener", leakListener, "1 x descriptor of socket:"},
		{"epoll", leakEpoll, "1 x descriptor of anon_inode:[eventpoll]"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			wakeRuntimePoller()
			before := look()
			end := row.open(t)
			left := settle(before, 30*time.Millisecond)
			end()
			if !strings.Contains(left, row.want) {
				t.Errorf("got %q, want it to name %q", left, row.want)
			}
			if left := settle(before, patience); left != "" {
				t.Errorf("seen after its end: %s", left)
			}
		})
	}
}

func leakGoroutine(*testing.T) func() {
	stop := make(chan struct{})
	go func() { <-stop }()
	return func() { close(stop) }
}

func leakPipe(t *testing.T) func() {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = r.Close(); _ = w.Close() }
}

func leakListener(t *testing.T) func() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = l.Close() }
}

func leakEpoll(t *testing.T) func() {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = unix.Close(fd) }
}

// More event loops in netpoll are no leak, an epoll set beside them is one.
func TestPollersAreTolerated(t *testing.T) {
	wakeRuntimePoller()
	before := look()
	if err := netpoll.Configure(netpoll.Config{PollerNum: before.pollers + 2}); err != nil {
		t.Fatal(err)
	}
	netpoll.Initialize()
	if left := settle(before, patience); left != "" {
		t.Errorf("netpoll's own loops: %s", left)
	}
	if now := look(); now.pollers != before.pollers+2 {
		t.Fatalf("%d pollers seen, want %d", now.pollers, before.pollers+2)
	}
	end := leakEpoll(t)
	defer end()
	if left := settle(before, 30*time.Millisecond); !strings.Contains(left, "eventpoll") {
		t.Errorf("an epoll set of ours was taken for netpoll's: %q", left)
	}
}

func TestOfAnotherProcess(t *testing.T) {
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // cat is past its start
		t.Error(err)
	}
	u, err := Of(child.Process.Pid)
	if err != nil {
		t.Error(err)
	}
	if u.Descriptors["pipe"] < 2 || u.Open() < 3 || u.Threads != 1 || u.RSS < 64<<10 {
		t.Errorf("a running cat: %+v", u)
	}
	_ = in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := Of(child.Process.Pid); err == nil {
		t.Error("a process that has ended has no usage")
	}
}

func TestParseStat(t *testing.T) {
	line := "812 (a) b (c)) S 1 812 812 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 7 0 100 12345678 321 18446744073709551615 1 1"
	u, err := parseStat(line)
	want := Usage{CPU: 4 * time.Second, Threads: 7, RSS: 321 * int64(os.Getpagesize())}
	if err != nil || u.CPU != want.CPU || u.Threads != want.Threads || u.RSS != want.RSS {
		t.Errorf("got %+v, %v, want %+v", u, err, want)
	}
	if _, err := parseStat("1 (x) S 1"); err == nil {
		t.Error("a short line was accepted")
	}
}
