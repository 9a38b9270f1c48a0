package conf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unicode"
)

// What is at the path of a configuration when it is not one, and what is said then. PATH stands for the path.
var unreadables = []struct {
	name string
	make func(t *testing.T, path string)
	want string
}{
	{"missing", func(*testing.T, string) {}, "PATH: no such file or directory"},
	{"directory", func(t *testing.T, path string) { try(t, os.Mkdir(path, 0o755)) }, "PATH: is a directory, want a file"},
	{"dangling link", func(t *testing.T, path string) { try(t, os.Symlink("nowhere", path)) }, "PATH: no such file or directory"},
	{"empty", holds(""), "PATH: listeners: missing, want at least one [[listeners]]\nPATH: pools: missing, want at least one [[pools]]"},
	{"pipe that nobody writes to", func(t *testing.T, path string) { try(t, syscall.Mkfifo(path, 0o644)) },
		"PATH: listeners: missing, want at least one [[listeners]]\nPATH: pools: missing, want at least one [[pools]]"},
	{"10 MiB", holds("#" + strings.Repeat("x", 10<<20)), "PATH: larger than 1048576 bytes, which no configuration is"},
	{"one byte too large", holds("#" + strings.Repeat("x", largest)), "PATH: larger than 1048576 bytes, which no configuration is"},
	{"as large as may be", holds("#" + strings.Repeat("x", largest-1)), "PATH: listeners: missing, want at least one [[listeners]]\nPATH: pools: missing, want at least one [[pools]]"},
	{"binary", holds("\x7fELF\x02\x01\x01\x00\x00"), "PATH:1: a zero byte; this is not a text file"},
	{"not UTF-8", holds("# a\n# \xe4\n"), "PATH:2: not UTF-8; this is not a text file, or one of another encoding"},
	{"U+FFFD is UTF-8", holds("# \uFFFD\nx"), "PATH:2: unexpected EOF; expected key separator '='"},
	{"byte order mark", holds("\xef\xbb\xbf[log]\n"), "PATH:1: begins with a byte order mark, want plain UTF-8 without one"},
	{"UTF-16", holds("\xff\xfe[\x00l\x00"), "PATH:1: is UTF-16, want UTF-8"},
	{"cut off in a string", holds("[log]\nlevel = \"inf"), "PATH:2: unexpected EOF; expected '\"'"},
	{"not TOML", holds("global\n  maxconn 100\n"), "PATH:1: expected '.' or '=', but got '\\n' instead"},
	{"cut off in an escape", holds("x = \"\\"), `PATH:1: invalid escape in string '\\x00'`},
	{"nested too deep", holds("\nx = " + strings.Repeat("[", 1000)), "PATH:2: nested too deep"},
}

func holds(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { try(t, os.WriteFile(path, []byte(text), 0o644)) }
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLoadUnreadable(t *testing.T) {
	for _, row := range unreadables {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sluice.toml")
			row.make(t, path)
			c, _, err := Load(path)
			equal(t, "configuration", c, nil)
			if err == nil {
				t.Fatal("no error")
			}
			equal(t, "error", err.Error(), strings.ReplaceAll(row.want, "PATH", path))
			if problems := (Errors{}); !errors.As(err, &problems) {
				t.Errorf("got %T, want Errors", err)
			}
		})
	}
}

func TestLoadWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	path := filepath.Join(t.TempDir(), "sluice.toml")
	try(t, os.WriteFile(path, nil, 0))
	_, _, err := Load(path)
	if err == nil || err.Error() != path+": permission denied" {
		t.Errorf("got %v", err)
	}
}

// Editors rename a new file over the old one, and a ConfigMap is a link that is swapped: Load goes by the path each time.
func TestLoadFollowsThePath(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "new"), filepath.Join(dir, "sluice.toml")
	for _, name := range []string{"one", "two"} {
		try(t, os.WriteFile(path+name, []byte(strings.ReplaceAll(file("", "", ""), `"l"`, `"`+name+`"`)), 0o644))
		try(t, os.Symlink(path+name, path))
		try(t, os.Rename(path, link))
		equal(t, "listener", load(t, link).Listeners[0].Name, name)
	}
	try(t, os.Rename(path+"one", link))
	equal(t, "listener", load(t, link).Listeners[0].Name, "one")
}

func TestLinesOfTables(t *testing.T) {
	c := parse(t, "[process]\n"+file("", "check = {}", ""))
	equal(t, "process", c.Process.Line, 1)
	equal(t, "listener", c.Listeners[0].Line, 2)
	equal(t, "pool", c.Pools[0].Line, 7)
	equal(t, "check", c.Pools[0].Check.Line, 9)
	equal(t, "server", c.Pools[0].Servers[0].Line, 10)
}

func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../examples/*.toml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("got %v, %v, want the examples", paths, err)
	}
	for _, path := range paths {
		if _, warnings, err := Load(path); err != nil || len(warnings) > 0 {
			t.Errorf("error %v, warnings %v", err, warnings)
		}
	}
}

func TestManyProblems(t *testing.T) {
	_, _, err := Parse("f", []byte(strings.Repeat("[[pools]]\n", 1000)))
	lines := strings.Split(err.Error(), "\n")
	equal(t, "lines", len(lines), 1001)
	equal(t, "the last", lines[1000], "and 1001 more")
	equal(t, "problems", len(err.(Errors)), 2001)
}

// Whatever the text: no panic, the same answer again, and problems that fit a terminal: each with the file and a line that
// the text has, and nothing in them that a terminal would act on.
func FuzzParse(f *testing.F) {
	for _, path := range []string{"testdata/every.toml", "testdata/default.toml", "testdata/minimal.toml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(chain("unix:/a", "localhost:1")))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, warnings, err := Parse("f", text)
		again, _, _ := Parse("f", bytes.Clone(text))
		if !reflect.DeepEqual(c, again) {
			t.Errorf("%q: got\n%+v and then\n%+v", text, c, again)
		}
		if (c == nil) == (err == nil) {
			t.Errorf("%q: configuration %v, error %v", text, c, err)
		}
		problems, _ := err.(Errors)
		for _, p := range append(problems, warnings...) {
			checkProblem(t, p, 1+bytes.Count(text, []byte("\n")))
		}
	})
}

func checkProblem(t *testing.T, p Problem, lines int) {
	t.Helper()
	if p.File != "f" || p.Line < 0 || p.Line > lines || p.Text == "" || p.Line == 0 && p.Text[:6] != "missin" {
		t.Errorf("%+v in a file of %d lines", p, lines)
	}
	if strings.ContainsFunc(p.String(), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q cannot be printed", p.String())
	}
}
