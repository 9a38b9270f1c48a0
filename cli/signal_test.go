package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/peer"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// A log file that was moved away is opened anew on SIGUSR1; lines of before stay where they are.
func TestReopenLog(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	dir := t.TempDir()
	log, moved := filepath.Join(dir, "sluice.log"), filepath.Join(dir, "sluice.log.1")
	text := "[log]\nformat = \"json\"\noutput = \"" + log + "\"\n" + one(at, s1.Addr())
	file := inFile(t, text)
	p := start(t, []string{"run", "-c", file})
	inLog := func(want string) func() bool { return func() bool { return strings.Contains(read(t, log), want) } }
	eventually(t, "it says that it serves", inLog(`"msg":"serving"`))
	if err := os.Rename(log, moved); err != nil {
		t.Fatal(err)
	}
	p.signal(unix.SIGHUP)
	eventually(t, "the old file is written to", func() bool { return strings.Contains(read(t, moved), `"msg":"reloaded"`) })
	p.signal(unix.SIGUSR1)
	eventually(t, "the file is there again", func() bool { _, err := os.Stat(log); return err == nil })
	before := read(t, moved)
	p.signal(unix.SIGHUP)
	eventually(t, "the new file is written to", inLog(`"msg":"reloaded"`))
	if read(t, moved) != before {
		t.Error("the old file is still written to")
	}
	os.Remove(log)
	if err := os.Mkdir(log, 0o755); err != nil { // now it cannot be opened: it goes on without
		t.Fatal(err)
	}
	p.signal(unix.SIGUSR1)
	p.signal(unix.SIGHUP)
	wantAnswer(t, at, "s1")
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
	for line := range bytes.Lines([]byte(before)) {
		if !json.Valid(line) {
			t.Errorf("not JSON: %q", line)
		}
	}
	wantText(t, "stderr", p.err.String(), "")
}

// The rest of the signals neither end the process nor its sessions.
func TestSignalsThatDoNotStop(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, one(at, s1.Addr())))
	session := open(t, at)
	p.signal(unix.SIGQUIT)
	p.await("goroutine ")
	p.await("(*balancer).serve")
	p.signal(unix.SIGUSR2)
	p.await("SIGUSR2 ignored")
	p.signal(unix.SIGUSR1)
	p.signal(unix.SIGPIPE)
	p.signal(unix.SIGHUP)
	p.await("msg=reloaded")
	wantAlive(t, session)
	wantAnswer(t, at, "s1")
}

// logTo starts sluice with stderr and stdout at a pipe whose reader the test is.
func logTo(t *testing.T) (twist, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return func(c *exec.Cmd) { c.Stdout, c.Stderr = w, w }, r
}

// A reader of the log that exits does not take the balancer along.
func TestLogReaderExits(t *testing.T) {
	for _, output := range []string{"stderr", "stdout"} {
		t.Run(output, func(t *testing.T) {
			s1 := named(t, peer.V4, "s1")
			at := place(t)
			file := inFile(t, "[log]\noutput = \""+output+"\"\n"+one(at, s1.Addr()))
			toPipe, reader := logTo(t)
			p := start(t, []string{"run", "-c", file}, toPipe)
			p.cmd.Stderr.(*os.File).Close() // the child has it
			awaitAnswer(t, at)
			session := open(t, at)
			reader.Close()
			for range 50 { // each says something that nobody hears
				p.signal(unix.SIGUSR2)
				wantAnswer(t, at, "s1")
			}
			more := place(t)
			write(t, file, one(at, s1.Addr())+listener("more", more, "p"))
			p.signal(unix.SIGHUP)
			awaitAnswer(t, more)
			wantAlive(t, session)
			session.Close()
			p.signal(unix.SIGTERM)
			p.wantExit(exitFine)
		})
	}
}

func awaitAnswer(t *testing.T, address string) {
	t.Helper()
	eventually(t, "answers at "+address, func() bool { _, err := ask(address); return err == nil })
}

// A reader of the log that stops reading blocks nothing: not traffic, not signals, not the end.
func TestLogReaderStops(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	file := inFile(t, one(at, s1.Addr()))
	toPipe, reader := logTo(t)
	if _, err := unix.FcntlInt(reader.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"run", "-c", file}, toPipe)
	p.cmd.Stderr.(*os.File).Close()
	awaitAnswer(t, at)
	session := open(t, at)
	for range 20 { // each writes all stacks, far more than the pipe holds
		p.signal(unix.SIGQUIT)
		wantAnswer(t, at, "s1")
		wantAlive(t, session)
	}
	more := place(t)
	write(t, file, one(at, s1.Addr())+listener("more", more, "p"))
	p.signal(unix.SIGHUP)
	awaitAnswer(t, more)
	session.Close()
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
}

// A named pipe that nobody reads is an error at the start, and on SIGUSR1 one that is passed over: never a wait.
func TestLogToNamedPipe(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file := inFile(t, "[log]\noutput = \""+pipe+"\"\n"+one(at, s1.Addr()))
	p := call(t, []string{"run", "-c", file})
	p.wantExit(exitNo)
	wantText(t, "stderr", p.err.String(), "log.output: open "+pipe)
	reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	p = start(t, []string{"run", "-c", file})
	awaitAnswer(t, at)
	reader.Close()
	p.signal(unix.SIGUSR1)
	p.signal(unix.SIGQUIT)
	wantAnswer(t, at, "s1")
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
}
