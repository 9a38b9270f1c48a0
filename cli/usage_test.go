package cli

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/leak"
)

func TestExitStatus(t *testing.T) {
	at := place(t)
	good := inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s1", "127.0.0.1:1")}))
	warn := inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s1", "127.0.0.1:3306")}, tcpCheck))
	bad := inFile(t, "nonsense = 1\n")
	rows := []struct {
		name   string
		args   []string
		status int
		out    string // wanted on stdout; "": nothing may be there
		err    string // likewise on stderr
	}{
		{"no arguments", nil, exitFine, "Usage:", ""},
		{"help", []string{"--help"}, exitFine, "Usage:", ""},
		{"help of run", []string{"run", "--help"}, exitFine, "SIGHUP", ""},
		{"version", []string{"version"}, exitFine, "sluice ", ""},
		{"unknown command", []string{"serve"}, exitUsage, "", "serve"},
		{"unknown flag", []string{"run", "--nonsense"}, exitUsage, "", "--nonsense"},
		{"run with an argument", []string{"run", good}, exitUsage, "", "Run 'sluice --help'"},
		{"run without a value for -c", []string{"run", "-c"}, exitUsage, "", "-c"},
		{"check without a file", []string{"check"}, exitUsage, "", "accepts 1 arg"},
		{"check of two files", []string{"check", good, good}, exitUsage, "", "accepts 1 arg"},
		{"version with an argument", []string{"version", "x"}, exitUsage, "", "x"},
		{"demo for a negative time", []string{"demo", "--for", "-1s"}, exitUsage, "", "--for"},
		{"demo for no time", []string{"demo", "--for", "soon"}, exitUsage, "", "--for"},
		{"demo with an argument", []string{"demo", "x"}, exitUsage, "", "x"},
		{"check of a good file", []string{"check", good}, exitFine, "", ""},
		{"check of a good file, strict", []string{"check", "--strict", good}, exitFine, "", ""},
		{"check with a warning", []string{"check", warn}, exitFine, "", "(warning)"},
		{"check with a warning, strict", []string{"check", "--strict", warn}, exitNo, "", "(warning)"},
		{"check of a bad file", []string{"check", bad}, exitNo, "", "nonsense"},
		{"run of a bad file", []string{"run", "-c", bad}, exitNo, "", "nonsense"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := call(t, row.args)
			p.wantExit(row.status)
			wantText(t, "stdout", p.out.String(), row.out)
			wantText(t, "stderr", p.err.String(), row.err)
		})
	}
}

func wantText(t *testing.T, where, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) || want == "" && got != "" {
		t.Errorf("%s: got %q, want %q", where, clipped(got), want)
	}
}

// A check does not mind that the addresses are in use, and leaves them alone.
func TestCheckBindsNothing(t *testing.T) {
	s1 := named(t, "127.0.0.1:0", "s1")
	at := place(t)
	text := head + listener("web", at, "p") + pool("p", []string{server("s1", s1.Addr())})
	file := inFile(t, text)
	p := serve(t, file)
	call(t, []string{"check", file}).wantExit(exitFine) // the port is in use, by the process that the file is of
	wantAnswer(t, at, "s1")
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
}

func TestDemo(t *testing.T) {
	leak.Check(t)
	p := call(t, []string{"demo", "--for", "2s"})
	p.wantExit(exitFine)
	wantText(t, "stderr", p.err.String(), "")
	for _, want := range []string{"conn/s", "every byte came back right", "s1  weight 5"} {
		wantText(t, "stdout", p.out.String(), want)
	}
}

func TestDemoJSON(t *testing.T) {
	p := call(t, []string{"demo", "--for", "2s", "--json"})
	p.wantExit(exitFine)
	wantText(t, "stderr", p.err.String(), "")
	var lines []demoLine
	for in := bufio.NewScanner(strings.NewReader(p.out.String())); in.Scan(); {
		var l demoLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatalf("%q: %v", in.Text(), err)
		}
		lines = append(lines, l)
	}
	if len(lines) < 2 {
		t.Fatalf("%d lines in 2 s: %s", len(lines), p.out.String())
	}
	last := lines[len(lines)-1]
	if !last.Final || last.Errors != 0 || last.Problem != "" || last.Connections == 0 {
		t.Errorf("last line: %+v", last)
	}
	if slices.IndexFunc(lines, func(l demoLine) bool { return l.Final }) != len(lines)-1 {
		t.Error("a line before the last says that it is the last")
	}
}

func TestDemoStopsOnASignal(t *testing.T) {
	p := start(t, []string{"demo", "--for", "0s"})
	eventually(t, "a line of the demo", func() bool { return p.out.has("conn/s") })
	p.signal(unix.SIGTERM)
	p.wantExit(exitFine)
	wantText(t, "stdout", p.out.String(), "every byte came back right")
}
