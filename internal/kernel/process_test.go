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
	cmd := childOf(role)
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

// netpoll opens its epoll and eventfd descriptors without close-on-exec; close_range sets it on all there are. This is
// seen in a child, since the marks would stay.
func TestCloseRangeMarksNetpollsDescriptors(t *testing.T) {
	begin(t)
	out, err := childOf("close_range").Output()
	if before, after, _ := strings.Cut(string(out), " "); err != nil || before == "0" || after != "0" {
		t.Fatalf("descriptors without close-on-exec before and after: %q (%v), want some and 0", out, err)
	}
}

func childOf(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "SLUICE_KERNEL_CHILD="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// child is the other process; its exit status is 0 if it lived.
func child(role string) int {
	switch role {
	case "notified":
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	case "close_range":
		netpoll.Initialize()
		before := kept()
		unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
		fmt.Print(before, kept())
		return 0
	}
	for _, out := range []*os.File{os.Stdout, os.Stderr} { // one is the pipe, the other the null device
		out.WriteString("to nobody")
	}
	return 0
}

// kept is how many epoll and eventfd descriptors would live on over an exec.
func kept() (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		target, _ := os.Readlink("/proc/self/fd/" + e.Name())
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if strings.HasPrefix(target, "anon_inode:[event") && err == nil && flags&unix.FD_CLOEXEC == 0 {
			n++
		}
	}
	return n
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
