package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudwego/netpoll"
	"golang.org/x/sys/unix"
)

// SIGPIPE from a write to descriptor 1 or 2 ends a Go process, unless it has asked to be told of the signal.
func TestSIGPIPE(t *testing.T) {
	begin(t)
	for _, fd := range []int{1, 2} {
		if got := writeToNobody(t, "plain", fd); got != unix.SIGPIPE {
			t.Errorf("descriptor %d: ended by signal %d, want SIGPIPE", fd, got)
		}
		if got := writeToNobody(t, "notified", fd); got != 0 {
			t.Errorf("descriptor %d: ended by signal %d in spite of signal.Notify", fd, got)
		}
	}
}

// writeToNobody lets a child write to a pipe that nobody reads, and returns the signal that ended it.
func writeToNobody(t *testing.T, role string, fd int) syscall.Signal {
	t.Helper()
	r, w, err := os.Pipe()
	check(t, err)
	r.Close()
	defer w.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "SLUICE_KERNEL_CHILD="+role, "FD="+strconv.Itoa(fd),
		"GORACE=atexit_sleep_ms=0")
	if fd == 1 {
		cmd.Stdout = w
	} else {
		cmd.Stderr = w
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatal(err)
	}
	return exit.Sys().(syscall.WaitStatus).Signal()
}

// child writes where nobody reads; 0 says that the write failed as it should and the child lives.
func child(role string) int {
	if role == "notified" {
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	}
	out := os.Stdout
	if os.Getenv("FD") == "2" {
		out = os.Stderr
	}
	if _, err := fmt.Fprintln(out, "to nobody"); errors.Is(err, unix.EPIPE) {
		return 0
	}
	return 1
}

// netpoll opens its epoll and eventfd descriptors without close-on-exec; close_range sets it on all there are.
func TestCloseRangeMarksNetpollsDescriptors(t *testing.T) {
	begin(t)
	netpoll.Initialize()
	if len(kept(t)) == 0 {
		t.Fatal("none: netpoll opens its descriptors with close-on-exec by now")
	}
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		t.Skip("close_range: ", err) // Linux 5.11
	}
	if left := kept(t); len(left) > 0 {
		t.Fatalf("still without close-on-exec: %v", left)
	}
}

// kept are the epoll and eventfd descriptors that would live on over an exec.
func kept(t *testing.T) (fds []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || !strings.HasPrefix(target, "anon_inode:[event") {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			fds = append(fds, fd)
		}
	}
	return fds
}

// A process may raise its soft limit of descriptors to the hard limit without a privilege, and no further with none.
func TestSoftLimitRisesToHard(t *testing.T) {
	begin(t)
	var before, now unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: before.Max / 2, Max: before.Max}))
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: before.Max, Max: before.Max}))
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &now))
	if now.Cur != before.Max {
		t.Fatalf("soft limit %d, want %d", now.Cur, before.Max)
	}
}
