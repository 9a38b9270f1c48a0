package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice/internal/peer"
)

// Servers and weights change with SIGHUP, for new clients; sessions go on.
func TestReloadServersAndWeights(t *testing.T) {
	s1, s2, s3 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2"), named(t, peer.V4, "s3")
	at := place(t)
	with := func(servers ...string) string {
		return "[process]\nshards = 1\n" + listener("web", at, "p") + pool("p", servers)
	}
	file := inFile(t, with(server("s1", s1.Addr()), server("s2", s2.Addr())))
	p := serve(t, file)
	sessions := openMany(t, at, 4)
	steps := []struct {
		text string
		want map[string]int
	}{
		{with(server("s1", s1.Addr(), "weight = 3"), server("s2", s2.Addr())), map[string]int{"s1": 30, "s2": 10}},
		{with(server("s1", s1.Addr(), "weight = 0"), server("s2", s2.Addr())), map[string]int{"s2": 40}},
		{with(server("s1", s1.Addr()), server("s2", s2.Addr()), server("s3", s3.Addr(), "weight = 2")), map[string]int{"s1": 10, "s2": 10, "s3": 20}},
		{with(server("s1", s1.Addr(), `state = "maint"`), server("s3", s3.Addr(), `state = "drain"`), server("s2", s2.Addr())), map[string]int{"s2": 40}},
		{with(server("s3", s3.Addr())), map[string]int{"s3": 40}},
	}
	for i, step := range steps {
		p.reload(file, step.text)
		if got := census(at, 40); fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("step %d: answers %v, want %v", i, got, step.want)
		}
		wantAlive(t, sessions...)
	}
}

// Another pool for a listener, and other settings of a session, apply to new clients.
func TestReloadPoolAndTimeouts(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	at := place(t)
	pools := pool("p", []string{server("s1", s1.Addr())}) + pool("q", []string{server("s2", s2.Addr())})
	file := inFile(t, head+listener("web", at, "p")+pools)
	p := serve(t, file)
	old := open(t, at)
	p.reload(file, head+listener("web", at, "q", `idle_timeout = "200ms"`)+pools)
	young := open(t, at)
	if young.who != "s2" {
		t.Errorf("answer of %s after the pool was changed to s2's", young.who)
	}
	young.wantEnd(t, patience)
	wantAlive(t, old)
	p.reload(file, head+listener("web", at, "q", `max_session_duration = "200ms"`, "max_session_jitter = 0.0")+pools)
	open(t, at).wantEnd(t, patience)
	wantAlive(t, old)
}

// A listener that comes, one that goes, one that changes its name; their sessions do not.
func TestReloadListeners(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	one, two := place(t), place(t)
	pools := pool("p", []string{server("s1", s1.Addr())})
	file := inFile(t, head+listener("one", one, "p")+pools)
	p := serve(t, file)
	first := open(t, one)
	p.reload(file, head+listener("one", one, "p")+listener("two", two, "p")+pools)
	wantAnswer(t, one, "s1")
	wantAnswer(t, two, "s1")
	p.reload(file, head+listener("new-name", two, "p")+pools)
	wantRefused(t, one, time.Now())
	wantAnswer(t, two, "s1")
	wantAlive(t, first)
	p.reload(file, head+listener("one", one, "p")+pools)
	wantAnswer(t, one, "s1")
	wantRefused(t, two, time.Now())
	wantAlive(t, first)
}

// A bad file changes nothing, whatever is bad about it; what is said names the fault. The next good one is taken
// (RLD-03, CFG-07).
func TestReloadOfBadFiles(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.toml")
	good := one(at, s1.Addr())
	write(t, file, good)
	p := serve(t, file)
	sessions := openMany(t, at, 3)
	before := listening(t, p)
	for _, row := range badFiles(t) {
		t.Run(row.name, func(t *testing.T) {
			os.RemoveAll(file)
			if err := os.Symlink(row.file, file); err != nil {
				t.Fatal(err)
			}
			said := p.refuse()
			if want := strings.TrimPrefix(row.want, "half:"); !strings.Contains(unquoted(said), want) && !strings.Contains(row.want, filepath.Base(row.file)) {
				t.Errorf("got %q, want %q", said, row.want)
			}
			wantAlive(t, sessions...)
			wantAnswer(t, at, "s1")
		})
	}
	os.Remove(file)
	if after := listening(t, p); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("listening sockets changed: %v, then %v", before, after)
	}
	second := place(t)
	p.reload(file, good+listener("second", second, "p"))
	wantAnswer(t, second, "s1")
	wantAlive(t, sessions...)
}

// unquoted takes the quoting of a log line off.
func unquoted(line string) string { return strings.ReplaceAll(line, `\"`, `"`) }

// A port in use refuses the whole file: the other changes in it are not made either.
func TestReloadWithPortInUse(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	taken := peer.Listen(t, place(t), peer.Say("xx"))
	at, more := place(t), place(t)
	file := inFile(t, one(at, s1.Addr()))
	p := serve(t, file)
	session := open(t, at)
	write(t, file, head+listener("web", at, "p")+listener("more", more, "p")+listener("taken", taken.Addr(), "p")+
		pool("p", []string{server("s2", s2.Addr())}))
	said := p.refuse()
	wantText(t, "message", said, "listener taken: cannot listen on "+taken.Addr())
	if got := census(at, 20); got["s1"] != 20 {
		t.Errorf("answers %v, want 20 of s1", got)
	}
	if !free(more) {
		t.Errorf("%s is bound by a file that was refused", more)
	}
	wantAlive(t, session)
	taken.Close()
	p.signal(unix.SIGHUP)
	p.await("msg=reloaded")
	wantAnswer(t, taken.Addr(), "s2")
}

// A rename over the file and a swapped symlink, as a ConfigMap does it, are seen (CFG-07).
func TestReloadOfReplacedFile(t *testing.T) {
	s1, s2, s3 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2"), named(t, peer.V4, "s3")
	at := place(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("1"), one(at, s1.Addr()))
	write(t, in("2"), strings.ReplaceAll(one(at, s2.Addr()), "\n", "\r\n"))
	write(t, in("3"), one(at, s3.Addr()))
	os.Symlink(in("1"), in("sluice.toml"))
	p := serve(t, in("sluice.toml"))
	wantAnswer(t, at, "s1")
	os.Symlink(in("2"), in("next"))
	os.Rename(in("next"), in("sluice.toml"))
	p.signal(unix.SIGHUP)
	p.awaitCount("msg=reloaded", 1)
	wantAnswer(t, at, "s2")
	os.Rename(in("3"), in("sluice.toml"))
	p.signal(unix.SIGHUP)
	p.awaitCount("msg=reloaded", 2)
	wantAnswer(t, at, "s3")
}

// Reloads under load lose no connection, and a listener that stays keeps its sockets (RLD-01).
func TestReloadUnderLoad(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	at, other := place(t), place(t)
	base := head + listener("web", at, "p")
	texts := []string{
		base + listener("other", other, "p") + pool("p", []string{server("s1", s1.Addr())}),
		base + pool("p", []string{server("s1", s1.Addr()), server("s2", s2.Addr(), "weight = 2")}),
		base + pool("p", []string{server("s2", s2.Addr())}, `balance = "least_conn"`),
	}
	file := inFile(t, base+pool("p", []string{server("s1", s1.Addr())}))
	p := serve(t, file)
	before := listening(t, p)
	clients := startCrowd(at, 8)
	clients.awaitServed(t, 50)
	for n := range 20 {
		p.reload(file, texts[n%len(texts)])
		clients.awaitServed(t, 50)
	}
	clients.wantNoFailure(t)
	after := listening(t, p)
	for _, inode := range before {
		if !strings.Contains(fmt.Sprint(after), inode) {
			t.Errorf("a listener that stayed lost its socket: %v, then %v", before, after)
		}
	}
}

// listening are the inodes of the TCP sockets that a process listens on, from /proc.
func listening(t *testing.T, p *process) []string {
	t.Helper()
	owned := map[string]bool{}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.pid(), e.Name()))
		owned[target] = true
	}
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		const state, inode = 3, 9
		if f := strings.Fields(line); len(f) > inode && f[state] == "0A" && owned["socket:["+f[inode]+"]"] {
			all = append(all, f[inode])
		}
	}
	if len(all) == 0 {
		t.Fatal("no listening socket found")
	}
	return all
}

// A removed server keeps its sessions: bytes flow, and each of the four ways to end works (RLD-13).
func TestRemovedServerKeepsItsSessions(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	b2 := peer.Listen(t, peer.V4)
	at := place(t)
	file := inFile(t, one(at, b2.Addr()))
	p := serve(t, file)
	var clients, servers []*peer.Conn
	for range 8 {
		clients = append(clients, peer.Dial(t, at))
		servers = append(servers, b2.Accept())
	}
	exchange := func() {
		for i := range clients {
			servers[i].Do(peer.Say("s2"))
			clients[i].Do(peer.Hear("s2"), peer.Say("c"))
			servers[i].Do(peer.Hear("c"))
		}
	}
	exchange()
	p.reload(file, one(at, s1.Addr()))
	if got := census(at, 20); got["s1"] != 20 {
		t.Errorf("answers %v, want 20 of s1", got)
	}
	exchange()
	for i := range clients {
		one, other := clients[i], servers[i]
		if i%2 == 1 {
			one, other = other, one
		}
		if i < 4 {
			one.Do(peer.FIN())
			other.Do(peer.ExpectEOF(0), peer.FIN())
			one.Do(peer.ExpectEOF(0))
		} else {
			one.Do(peer.RST())
			other.Do(peer.ExpectRST(0))
		}
	}
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine) // so every session was counted out
}

// A server that goes, comes back, and only then loses its old sessions has the right count: least_conn shares evenly
// (LIM-01).
func TestServerThatCameBack(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	at := place(t)
	with := func(servers ...string) string {
		return head + listener("web", at, "p") + pool("p", servers, `balance = "least_conn"`)
	}
	one, two := server("s1", s1.Addr()), server("s2", s2.Addr())
	file := inFile(t, with(one))
	p := serve(t, file)
	sessions := openMany(t, at, 10)
	p.reload(file, with(two))
	p.reload(file, with(one, two))
	wantAlive(t, sessions...)
	for _, s := range sessions {
		s.Close()
	}
	eventually(t, "the ten leave s1", func() bool { return s1.Open() == 0 })
	counts := map[string]int{}
	for _, s := range openMany(t, at, 20) {
		counts[s.who]++
	}
	if counts["s1"] != 10 || counts["s2"] != 10 {
		t.Errorf("shares %v, want 10 and 10", counts)
	}
}
