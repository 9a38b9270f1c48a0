package cli

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/peer"
)

// badFiles are files that no configuration is in, and what the message must say.
func badFiles(t *testing.T) []struct{ name, file, want string } {
	dir := t.TempDir()
	good := head + listener("web", place(t), "p") + pool("p", []string{server("s1", "127.0.0.1:1")})
	garbage := make([]byte, 64<<10)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(garbage)
	in := func(name, text string) string {
		file := filepath.Join(dir, name)
		write(t, file, text)
		return file
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	return []struct{ name, file, want string }{
		{"missing", filepath.Join(dir, "missing.toml"), "no such file"},
		{"directory", dir, "is a directory"},
		{"symlink to itself", loop, "too many levels of symbolic links"},
		{"device without end", "/dev/zero", "/dev/zero"},
		{"empty", in("empty", ""), "listeners: missing"},
		{"garbage", in("garbage", string(garbage)), "not a text file"},
		{"a program", "/bin/sh", "not a text file"},
		{"10 MiB", in("large", good+strings.Repeat("# 15 characters\n", 10<<16)), "larger than"},
		{"half written", in("half", good[:len(good)-8]), "half:"},
		{"byte order mark", in("bom", "\xef\xbb\xbf"+good), "byte order mark"},
		{"syntax", in("syntax", good+"x = = 1\n"), "syntax:"},
		{"unknown key", in("unknown", good+"wieght = 1\n"), "did you mean weight"},
		{"unknown table", in("table", good+"[[listenr]]\n"), "listenr"},
		{"duplicate name", in("twice", good+pool("p", []string{server("s1", "127.0.0.1:1")})), "already"},
		{"table twice", in("again", good+head), "already"},
		{"missing pool", in("nopool", strings.Replace(good, `pool = "p"`, `pool = "q"`, 1)), `no pool named`},
		{"weight -1", in("weight", good+"weight = -1\n"), "weight"},
		{"port 0", in("port", strings.Replace(good, "127.0.0.1:1", "127.0.0.1:0", 1)), "port"},
		{"not built yet", in("later", good+"[admin]\nlisten = \"127.0.0.1:9060\"\ntoken_file=\"x\"\n"), "admin"},
	}
}

// Bad files get the same verdict and the same text from check and from run (CFG-09), with the file's name.
func TestBadFiles(t *testing.T) {
	for _, row := range badFiles(t) {
		t.Run(row.name, func(t *testing.T) {
			check := call(t, []string{"check", row.file})
			run := call(t, []string{"run", "-c", row.file})
			check.wantExit(exitNo)
			run.wantExit(exitNo)
			wantText(t, "check", check.err.String(), row.want)
			wantText(t, "check", check.err.String(), filepath.Base(row.file))
			if check.err.String() != run.err.String() {
				t.Errorf("check and run differ:\n%s\n%s", clipped(check.err.String()), clipped(run.err.String()))
			}
			wantText(t, "stdout", check.out.String()+run.out.String(), "")
			if n := len(check.err.String()); n > 4<<10 {
				t.Errorf("%d bytes of messages", n)
			}
		})
	}
}

// All errors of a file come at once, each with its line.
func TestAllErrorsAtOnce(t *testing.T) {
	file := inFile(t, "[process]\nshards = -1\n[[listeners]]\nname = \"a\"\nbind = \"nowhere\"\npool = \"b\"\n"+
		"[[pools]]\nname = \"p\"\nbalance = \"leastcon\"\nconnect_timeout = 5\n")
	p := call(t, []string{"check", file})
	p.wantExit(exitNo)
	for _, want := range []string{":2:", ":5:", ":6:", ":9:", ":10:", "did you mean least_conn"} {
		wantText(t, "stderr", p.err.String(), want)
	}
}

// asNobody runs the process as a user who may do nothing. The test binary stands where only its owner may look, so a
// copy of it runs.
func asNobody(t *testing.T) twist {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	dir, err := os.MkdirTemp("", "sluice")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	return func(c *exec.Cmd) {
		copyFile(t, c.Path, filepath.Join(dir, "sluice"))
		c.Path, c.Dir = filepath.Join(dir, "sluice"), "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableFile(t *testing.T) {
	nobody := asNobody(t)
	file := inFile(t, head)
	os.Chmod(file, 0)
	for _, args := range [][]string{{"check", file}, {"run", "-c", file}} {
		p := call(t, args, nobody)
		p.wantExit(exitNo)
		wantText(t, "stderr", p.err.String(), "permission denied")
	}
}

// Warnings come with a good file, and do not stop it.
func TestRunWithAWarning(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	file := inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s1", s1.Addr())})+
		pool("unused", []string{server("s1", s1.Addr())}))
	check := call(t, []string{"check", file})
	check.wantExit(exitFine)
	warning := strings.TrimSpace(check.err.String())
	wantText(t, "stderr", warning, "no listener uses this pool")
	p := serve(t, file)
	wantText(t, "stderr of run", p.err.String(), warning)
	wantAnswer(t, at, "s1")
}

// A port in use: the message names the listener and the address, and nothing is left half-started. While it is tried,
// again and again, the listeners that could be bound do not take a single client in.
func TestPortInUse(t *testing.T) {
	taken := peer.Listen(t, place(t), peer.Say("xx"))
	first := place(t)
	file := inFile(t, head+listener("first", first, "p")+listener("second", taken.Addr(), "p")+
		pool("p", []string{server("s1", "127.0.0.1:1")}))
	p := start(t, []string{"run", "-c", file})
	accepted := 0
	for p.running() {
		if c, err := dial(first); err == nil {
			c.Close()
			accepted++
		}
	}
	p.wantExit(exitNo)
	if accepted > 0 {
		t.Errorf("%d clients were taken in by a process that did not start", accepted)
	}
	for _, want := range []string{"listener second", taken.Addr(), "address already in use"} {
		wantText(t, "stderr", p.err.String(), want)
	}
	if strings.Count(p.err.String(), "\n") != 1 {
		t.Errorf("want one line, got %q", p.err.String())
	}
	wantText(t, "stdout", p.out.String(), "")
	if !free(first) {
		t.Errorf("%s is still taken", first)
	}
}

// A second process on the same port, and the same user, is refused; the first goes on alone (LSN-07).
func TestSecondInstance(t *testing.T) {
	s1, s2 := named(t, peer.V4, "s1"), named(t, peer.V4, "s2")
	at := place(t)
	serve(t, inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s1", s1.Addr())})))
	second := call(t, []string{"run", "-c", inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s2", s2.Addr())}))})
	second.wantExit(exitNo)
	wantText(t, "stderr", second.err.String(), at)
	if got := census(at, 50); got["s1"] != 50 {
		t.Errorf("answers: %v, want 50 of s1", got)
	}
}

// An address that this host does not have, and a port that needs a privilege.
func TestCannotBind(t *testing.T) {
	rows := []struct {
		name, bind, want string
		twists           []twist
	}{
		{"foreign address", "192.0.2.1:7777", "no such address", nil},
		{"no such directory", "unix:" + filepath.Join(t.TempDir(), "none", "x.sock"), "no such file or directory", nil},
		{"not a directory", "unix:/etc/passwd/x.sock", "not a directory", nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := call(t, []string{"run", "-c", inFile(t, head+listener("web", row.bind, "p")+pool("p", []string{server("s1", "127.0.0.1:1")}))})
			p.wantExit(exitNo)
			wantText(t, "stderr", p.err.String(), "listener web: cannot listen on "+row.bind)
			wantText(t, "stderr", p.err.String(), row.want)
		})
	}
}

// The start fails as well where the log cannot be opened, before anything is bound.
func TestLogCannotBeOpened(t *testing.T) {
	at := place(t)
	p := call(t, []string{"run", "-c", inFile(t, head+"[log]\noutput = \"/nonexistent/sluice.log\"\n"+listener("web", at, "p")+
		pool("p", []string{server("s1", "127.0.0.1:1")}))})
	p.wantExit(exitNo)
	wantText(t, "stderr", p.err.String(), "log.output: open /nonexistent/sluice.log: no such file or directory")
}

// The limits are printed at the start, in one line.
func TestLimitsLine(t *testing.T) {
	p := serve(t, inFile(t, head+listener("web", place(t), "p")+pool("p", []string{server("s1", "127.0.0.1:1")})), limited(1000))
	var line []byte
	for l := range bytes.Lines([]byte(p.err.String())) {
		if bytes.Contains(l, []byte("msg=limits")) {
			line = l
		}
	}
	for _, want := range []string{"max_connections=4", "descriptors=1000", "shards=2", "pipes=8", "somaxconn="} {
		wantText(t, "limits", string(line), want)
	}
	p.signal(unix.SIGINT)
	p.wantExit(exitFine)
}
