package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The run happens in a child in a network namespace of its own: what happens
// to ports, sysctls and TIME_WAIT there does not concern the host, and nothing
// on the host takes part. It is in a session of its own too, since the
// scheduler shares the machine out among sessions first (autogroup) and looks
// at niceness only within one.

const insideMark = "SLUICE_BENCH_INSIDE"

func inside() bool { return os.Getenv(insideMark) != "" }

// enclose runs this program again, inside. Its exit status becomes ours.
func enclose(args []string) error {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideMark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Setsid: true, Pdeathsig: syscall.SIGTERM}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("a network namespace of our own: %w (-host runs on the host's loopback)", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range stop {
			cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(1, exit.ExitCode()))
	}
	return err
}

// furnish makes the fresh namespace fit for a test.
func furnish(congestion string) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	settings := [][2]string{
		// Every port below 10000 is left to balancers and servers.
		{"net/ipv4/ip_local_port_range", "10000 65535"},
		// T2 uses up the range in seconds; a port in TIME_WAIT is taken again after one.
		{"net/ipv4/tcp_tw_reuse", "1"},
		{"net/core/somaxconn", "8192"},
		{"net/ipv4/tcp_max_syn_backlog", "8192"},
	}
	if congestion != "" {
		settings = append(settings, [2]string{"net/ipv4/tcp_congestion_control", congestion})
	}
	for _, s := range settings {
		if err := os.WriteFile("/proc/sys/"+s[0], []byte(s[1]), 0); err != nil {
			return fmt.Errorf("set %s to %q: %w", s[0], s[1], err)
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// prefer raises the weight of this session against others on the machine. It
// is a wish: without the right to it the figures are only noisier.
func prefer(nice int) {
	if nice == 0 {
		return
	}
	os.WriteFile("/proc/self/autogroup", []byte(fmt.Sprint(nice)), 0)
	unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// machineTurn waits until no other run measures on this machine. Without a lock
// file there is nothing to wait for.
func machineTurn() (release func()) {
	path := filepath.Join(os.TempDir(), "sluice-bench.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return func() {}
	}
	for unix.Flock(int(f.Fd()), unix.LOCK_EX) == unix.EINTR {
	}
	return func() {
		f.Close()
		// The kernel is not fair here: let who waits get it.
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitListen waits until something listens on a port of 127.0.0.1. It looks
// instead of connecting: a connect would open a session to a server that is
// not there yet.
func awaitListen(port int, alive func() error) error {
	want := fmt.Sprintf("0100007F:%04X 00000000:0000 0A", port)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile("/proc/self/net/tcp")
		if err != nil {
			return err
		}
		if strings.Contains(string(b), want) {
			return nil
		}
		if err := alive(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("nothing listens on port %d after 5 s", port)
		}
	}
}
