package health

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/internal/leak"
)

// TestMain lets the test binary be the servers of TestThousandTargets too: in
// a process of their own, their work is not taken for ours.
func TestMain(m *testing.M) {
	if os.Getenv("HEALTH_TEST_SERVE") != "" {
		serveUntilStdinEnds()
		return
	}
	os.Exit(m.Run())
}

func serveUntilStdinEnds() {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}()
		}
	}()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// serverProcess returns the port of a process that listens on all of 127/8.
func serverProcess(t *testing.T) (port string) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), "HEALTH_TEST_SERVE=1")
	child.Stderr = os.Stderr
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
	t.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait()
	})
	line := bufio.NewScanner(out)
	if !line.Scan() {
		t.Fatal("the servers did not start")
	}
	return line.Text()
}

// 1,000 servers at the default interval take few percent of a core. What that
// is in percent depends on the machine and on who else is on it, so the gate is
// a ratio: what a plain loop needs to connect to the same servers and go.
func TestThousandTargets(t *testing.T) {
	leak.Check(t)
	const n, took = 1000, 5 * time.Second
	port := serverProcess(t)
	targets := make([]Target, n)
	var probes atomic.Int64
	probe := func(ctx context.Context, addr string) error {
		probes.Add(1)
		return TCP(ctx, addr)
	}
	for i := range targets {
		targets[i] = Target{Owner: i, Addr: fmt.Sprintf("127.1.%d.%d:%s", i/250, i%250+1, port),
			Settings: Settings{Probe: probe, Kind: "tcp", Interval: 2 * time.Second, Timeout: 10 * time.Second, Jitter: 0.1}}
	}
	plain := plainCost(t, targets)
	before := cpu(t)
	c := New(func(tg Target, up bool, _ time.Time, why string) {
		if !up {
			t.Errorf("%s is down: %s", tg.Addr, why)
		}
	})
	c.Update(targets)
	time.Sleep(took) // a span to measure over, not an event to wait for
	used := cpu(t) - before
	c.Close()
	each := used / time.Duration(probes.Load())
	t.Logf("%d targets: %.1f %% of a core; %s a probe, %.1f times a plain connect and close (%s)",
		n, 100*float64(used)/float64(took), each, float64(each)/float64(plain), plain)
	if each > 6*plain {
		t.Errorf("a probe takes %s, a plain connect and close %s", each, plain)
	}
}

func plainCost(t *testing.T, targets []Target) time.Duration {
	before := cpu(t)
	for _, tg := range targets {
		conn, err := net.Dial("tcp", tg.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	return (cpu(t) - before) / time.Duration(len(targets))
}

func cpu(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
