package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/peer"
)

// wantReset wants that a client is turned away with a reset.
func wantReset(t *testing.T, address string) {
	t.Helper()
	c, err := dial(address)
	if err == nil {
		defer c.Close()
		_, err = hear(c)
	}
	if !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%s: got %v, want a reset", address, err)
	}
}

// tally gives n CPU seconds and log lines for a stretch of time.
type tally struct {
	p     *process
	begun time.Time
	cpu   time.Duration
	lines int
}

func (p *process) tally() *tally {
	return &tally{p, time.Now(), p.usage().CPU, p.err.count("\n")}
}

// want checks what a process used since: a share of a CPU, and lines a second.
func (a *tally) want(t *testing.T, cpu, lines float64) {
	t.Helper()
	seconds := time.Since(a.begun).Seconds()
	if got := (a.p.usage().CPU - a.cpu).Seconds() / seconds; got > cpu {
		t.Errorf("used %.0f %% of a CPU, want at most %.0f %%", 100*got, 100*cpu)
	}
	if got := float64(a.p.err.count("\n")-a.lines) / seconds; got > lines {
		t.Errorf("%.1f lines a second, want at most %.0f", got, lines)
	}
}

// Beyond max_connections new clients are reset while the old go on; a client that leaves makes room for one.
func TestMaxConnections(t *testing.T) {
	rows := []struct{ name, process, listener string }{
		{"of the process", "max_connections = 3\n", ""},
		{"of the listener", "", "max_connections = 3"},
		{"both", "max_connections = 3\n", "max_connections = 3"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s1 := named(t, peer.V4, "s1")
			at := place(t)
			text := head + row.process + listener("web", at, "p", row.listener) + pool("p", []string{server("s1", s1.Addr())})
			file := inFile(t, text)
			p := serve(t, file)
			sessions := openMany(t, at, 3)
			for range 10 {
				wantReset(t, at)
			}
			wantAlive(t, sessions...)
			sessions[0].Close()
			awaitAnswer(t, at)
			p.reload(file, strings.ReplaceAll(text, "= 3", "= 5"))
			openMany(t, at, 3)
			wantReset(t, at)
			p.reload(file, strings.ReplaceAll(text, "= 3", "= 1")) // fewer than there are: they stay
			wantReset(t, at)
			wantAlive(t, sessions[1:]...)
			p.reload(file, head+listener("web", at, "p")+pool("p", []string{server("s1", s1.Addr())}))
			openMany(t, at, 10)
		})
	}
}

// Two listeners under one full limit: no spin, and the second serves as soon as the first has room (RES-03).
func TestTwoListenersShareALimit(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	one, two := place(t), place(t)
	p := serve(t, inFile(t, head+"max_connections = 10\n"+listener("one", one, "p")+listener("two", two, "p")+
		pool("p", []string{server("s1", s1.Addr())})))
	sessions := openMany(t, one, 10)
	used := p.tally()
	for range 20 {
		wantReset(t, two)
	}
	watch(time.Second)
	used.want(t, 0.10, 5)
	wantAlive(t, sessions...)
	sessions[0].Close()
	awaitAnswer(t, two)
}

// watch lets time pass in which nothing should happen.
func watch(d time.Duration) { <-time.After(d) }

// With 64 descriptors few sessions fit. The rest is turned away without a spin and without a flood of lines; who holds
// a session keeps it, and when some leave others are served (RES-01).
func TestFewDescriptors(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, one(at, s1.Addr())), limited(64))
	p.await("descriptors=64")
	var held []*session
	for range 50 {
		if c, err := dial(at); err == nil {
			if who, err := hear(c); err == nil {
				held = append(held, &session{c, who})
				defer c.Close()
			} else {
				c.Close()
			}
		}
	}
	if len(held) == 0 {
		t.Fatal("nobody was served")
	}
	used := p.tally()
	watch(time.Second)
	used.want(t, 0.10, 5)
	wantAlive(t, held...)
	held[0].Close()
	awaitAnswer(t, at)
}

// The limit of descriptors falls below what is used: accept fails with EMFILE. Again no spin, no flood, no session
// lost; clients that wait are served once there are descriptors (RES-01).
func TestNoDescriptorLeft(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, one(at, s1.Addr())))
	sessions := openMany(t, at, 3)
	var old unix.Rlimit
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 10, Max: old.Max}, nil); err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 20)
	for range cap(answers) {
		go func() { _, err := ask(at); answers <- err }()
	}
	p.await("accept failed")
	used := p.tally()
	watch(2 * time.Second)
	used.want(t, 0.10, 5)
	wantAlive(t, sessions...)
	if err := unix.Prlimit(p.pid(), unix.RLIMIT_NOFILE, &old, nil); err != nil {
		t.Fatal(err)
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Errorf("a client that waited: %v", err)
		}
	}
	wantAlive(t, sessions...)
}

// A limit that carries not a single session is an error at the start.
func TestTooFewDescriptors(t *testing.T) {
	p := call(t, []string{"run", "-c", inFile(t, one(place(t), "127.0.0.1:1"))}, limited(30))
	p.wantExit(exitNo)
	wantText(t, "stderr", p.err.String(), "30 descriptors (RLIMIT_NOFILE) carry no session")
}

// Servers that refuse, and none at all, under many clients: the log stays readable (ADM-09).
func TestNoLogFlood(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	good, dead, none := place(t), place(t), place(t)
	refusing := []string{server("r1", peer.Refusing(t, peer.V4).Addr()), server("r2", peer.Refusing(t, peer.V4).Addr())}
	p := serve(t, inFile(t, head+listener("good", good, "p")+listener("dead", dead, "dead")+listener("none", none, "none")+
		pool("p", []string{server("s1", s1.Addr())})+pool("dead", refusing)+pool("none", []string{server("m", "127.0.0.1:1", `state = "maint"`)})))
	lines, begun := p.err.count("\n"), time.Now()
	const clients = 1500
	for n := range clients {
		address := []string{dead, none}[n%2]
		if _, err := ask(address); err == nil {
			t.Fatalf("an answer at %s", address)
		}
	}
	p.await("connects failed")
	wantAnswer(t, good, "s1")
	seconds := time.Since(begun).Seconds()
	if got := float64(p.err.count("\n") - lines); got > 10*seconds+4 {
		t.Errorf("%.0f lines in %.1f s of %d failing clients", got, seconds, clients)
	}
}

// Every descriptor is closed on exec, also those that netpoll opened: nothing that a check executes may hold a listener.
func TestDescriptorsCloseOnExec(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at, more := place(t), place(t)
	file := inFile(t, one(at, s1.Addr()))
	p := serve(t, file)
	openMany(t, at, 3)
	p.reload(file, one(at, s1.Addr())+listener("more", more, "p"))
	openMany(t, more, 3)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fdinfo", p.pid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		flags := fdFlags(t, p.pid(), fd)
		if target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.pid(), fd)); fd > 2 && flags&unix.O_CLOEXEC == 0 {
			t.Errorf("descriptor %d (%s) stays open over exec", fd, target)
		}
	}
}

func fdFlags(t *testing.T, pid, fd int) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "flags:" {
			flags, err := strconv.ParseUint(f[1], 8, 64)
			if err != nil {
				t.Fatal(err)
			}
			return flags
		}
	}
	t.Fatalf("no flags in %q", text)
	return 0
}

// After load, streams and reloads the process holds what it held before: descriptors of each kind, goroutines.
func TestBackToBaseline(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	source := peer.Listen(t, peer.V4, peer.Source())
	at, bulk := place(t), place(t)
	text := one(at, s1.Addr()) + listener("bulk", bulk, "bulk") + pool("bulk", []string{server("b", source.Addr())})
	file := inFile(t, text)
	p := serve(t, file)
	wantAnswer(t, at, "s1")
	eventually(t, "the session ends", func() bool { return s1.Open() == 0 })
	before, stacks := p.usage().Descriptors, goroutinesOf(p)
	clients := startCrowd(at, 4)
	for range 5 {
		drink(t, bulk, 2<<20)
		p.reload(file, text)
	}
	clients.awaitServed(t, 200)
	clients.wantNoFailure(t)
	eventually(t, fmt.Sprintf("no descriptor more than before the load, %v", before), func() bool {
		for kind, n := range p.usage().Descriptors {
			if n > before[kind] {
				return false
			}
		}
		return true
	})
	if now := goroutinesOf(p); now > stacks {
		t.Errorf("%d goroutines, before the load %d", now, stacks)
	}
}

// drink reads n bytes of a stream and leaves.
func drink(t *testing.T, address string, n int64) {
	t.Helper()
	c, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.CopyN(io.Discard, c, n); err != nil {
		t.Fatal(err)
	}
}

// goroutinesOf counts the stacks that SIGQUIT prints. SIGUSR2 has a line of its own, which comes after them.
func goroutinesOf(p *process) int {
	p.t.Helper()
	before := p.err.count("goroutine ")
	lines := p.err.count("SIGUSR2 ignored")
	p.signal(unix.SIGQUIT)
	eventually(p.t, "stacks", func() bool { return p.err.count("goroutine ") > before })
	p.signal(unix.SIGUSR2)
	p.awaitCount("SIGUSR2 ignored", lines+1)
	n := 0
	text := p.err.String()
	for line := range strings.Lines(text[nth(text, "goroutine ", before):]) {
		if strings.HasPrefix(line, "goroutine ") {
			n++
		}
	}
	return n
}

// nth is where the n-th occurrence begins, counted from 0.
func nth(text, part string, n int) int {
	at := 0
	for range n {
		at += strings.Index(text[at:], part) + len(part)
	}
	return at
}
