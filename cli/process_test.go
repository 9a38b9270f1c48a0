package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
)

// The tests of this package run the whole process: the test binary executes itself, and is sluice then. So there are
// real signals, real files, real sockets, and a crash or a race in the child is seen by its exit status.

const beSluice = "SLUICE_TEST_BINARY_IS_SLUICE"

func TestMain(m *testing.M) {
	if os.Getenv(beSluice) != "" {
		if zone := os.Getenv(zoneVariable); zone != "" {
			resolveFrom(zone)
		}
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// patience is how long an event may take on a machine that is busy with other things.
const patience = 20 * time.Second

// eventually waits until something holds, or ends the test.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); !holds(); <-tick.C {
		if time.Since(begun) > patience {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// A transcript is what a process has written so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *transcript) has(text string) bool  { return strings.Contains(s.String(), text) }
func (s *transcript) count(text string) int { return strings.Count(s.String(), text) }

// A process is a sluice of its own.
type process struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, err    transcript
	ended       chan struct{}
	exitStatus  int // after ended; -1: a signal killed it
	expectedEnd bool
}

// A twist changes how a process is started.
type twist func(*exec.Cmd)

// command is sluice with arguments, not started yet.
func command(t *testing.T, args []string, twists ...twist) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(self, args...), ended: make(chan struct{})}
	// The race detector keeps a process for a second after its end unless told not to.
	p.cmd.Env = append(os.Environ(), beSluice+"=1", "GORACE=atexit_sleep_ms=10")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	for _, twist := range twists {
		twist(p.cmd)
	}
	return p
}

// start runs sluice until the end of the test at the latest. What nobody waited for must not have ended by then.
func start(t *testing.T, args []string, twists ...twist) *process {
	t.Helper()
	p := command(t, args, twists...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		p.exitStatus = p.cmd.ProcessState.ExitCode()
		close(p.ended)
	}()
	t.Cleanup(p.cleanup)
	return p
}

func (p *process) cleanup() {
	p.cmd.Process.Kill()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Errorf("process %d does not end", p.pid())
	}
	if !p.expectedEnd && p.exitStatus != -1 {
		p.t.Errorf("sluice ended unasked with exit status %d", p.exitStatus)
	}
	if p.t.Failed() {
		p.t.Logf("stderr of process %d:\n%s", p.pid(), clipped(p.err.String()))
	}
}

func clipped(text string) string {
	const most = 8 << 10
	if len(text) > most {
		return text[:most/2] + "\n...\n" + text[len(text)-most/2:]
	}
	return text
}

// serve runs `sluice run` and returns when it serves.
func serve(t *testing.T, file string, twists ...twist) *process {
	t.Helper()
	p := start(t, []string{"run", "-c", file}, twists...)
	p.await("msg=serving")
	return p
}

// await waits for a text in the messages.
func (p *process) await(text string) {
	p.t.Helper()
	p.awaitCount(text, 1)
}

func (p *process) awaitCount(text string, n int) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%q %d times in the messages of sluice", text, n), func() bool {
		select {
		case <-p.ended:
			if p.err.count(text) < n {
				p.expectedEnd = true
				p.t.Fatalf("sluice ended with exit status %d before it said %q", p.exitStatus, text)
			}
		default:
		}
		return p.err.count(text) >= n
	})
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// wait returns the exit status.
func (p *process) wait() int {
	p.t.Helper()
	p.expectedEnd = true
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("sluice does not end")
	}
	return p.exitStatus
}

func (p *process) wantExit(status int) {
	p.t.Helper()
	if got := p.wait(); got != status {
		p.t.Errorf("exit status %d, want %d", got, status)
	}
}

// running fails the test if the process is gone.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// reload writes the file anew, sends SIGHUP and waits until it was taken.
func (p *process) reload(file, text string) {
	p.t.Helper()
	n := p.err.count("msg=reloaded")
	write(p.t, file, text)
	p.signal(unix.SIGHUP)
	p.awaitCount("msg=reloaded", n+1)
}

// refuse sends SIGHUP and waits until the file was refused; it returns what was said about it.
func (p *process) refuse() string {
	p.t.Helper()
	before := len(p.err.String())
	n := p.err.count("reload refused")
	p.signal(unix.SIGHUP)
	p.awaitCount("reload refused", n+1)
	return p.err.String()[before:]
}

func (p *process) usage() leak.Usage {
	p.t.Helper()
	u, err := leak.Of(p.pid())
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// call runs sluice to its end.
func call(t *testing.T, args []string, twists ...twist) *process {
	t.Helper()
	p := start(t, args, twists...)
	p.wait()
	return p
}

// limited starts the process with so many descriptors, soft and hard.
func limited(descriptors int) twist {
	return func(c *exec.Cmd) {
		script := fmt.Sprintf(`ulimit -n %d && exec "$@"`, descriptors)
		c.Args = append([]string{"sh", "-c", script, "sh", c.Path}, c.Args[1:]...)
		c.Path = "/bin/sh"
	}
}
