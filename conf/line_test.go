package conf

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// In these files the value of each key is the number of its line, so the file is its own table of what is right.
var numbered = []string{
	"a = 1\nb = 2\n\n\nc = 5",
	"a = 1\r\nb = 2\r\n\r\nc = 4\r\n",
	"# 1\na = 2 # 2\n\t\n  b\t=\t4",
	"[t]\na = 2\n[t.u]\nb = 4\n[v . w]\nc = 6",
	"[[t]]\na = 2\n[[t]]\na = 4\n[t.u]\nb = 6\n[[t.v]]\nc = 8\n[[t.v]]\nc = 10\n[[t]]\n[[t.v]]\nc = 13",
	"a.b.c = 1\na.b.d = 2\n[t]\nu.v = 4",
	"\"a.b\" = 1\n'c d' = 2\n\"\" = 3\n\"\\u00e4\\n\\\"\" = 4\na.\"b]\".'c=' = 5",
	"[\"t # [\".'u\"']\na = 2\n[[t.\"u.v\"]]\na = 4\n[[t.\"u.v\"]]\na = 6",
	"t = { a = 1, b = { c = 1 }, d = [1, 1] }\ne = 2",
	"t = {\n  a = 2, # }\n  b = 3,\n}\nc = 5",
	"t = [\n  { a = 2 }, { a = 2, b = [ { c = 2 } ] },\n  # ]\n  { a = 4 },\n]\nb = 6",
	"t = [ [1, 1], [\n2 ], ]\nb = 3",
	"s = \"\"\"\na = 9\n[t]\n\\\"\"\" \\\\\"\"\"\nb = 5",
	"s = '''\n\\''' # '\na = 3",
	"s = \"\"\"\"x\"\"\"\"\"\na = 2\nq = ''''x'''''\nb = 4",
	"t = [ \"\"\"x\"\"\"\"\", {\n  a = 2 } ]",
	"s = \"]#\\\"\"\na = 2\nq = '\\'\nb = 4\nx = [\"]\", '}', \"\\\\\"]\nc = 6",
	"d = 1979-05-27T07:32:00Z\na = 2\nf = 1.5 # x\nb = 4\ng = true\nc = 6",
	"[t]\n[u]\na = 3\n[t.v]\na = 5",
}

func TestLines(t *testing.T) {
	for _, text := range numbered {
		compareLines(t, text)
	}
}

// compareLines wants the line of each key to be its value, where that is a number.
func compareLines(t *testing.T, text string) {
	t.Helper()
	found, deep := scan(text)
	if deep > 0 {
		t.Fatalf("%q: line %d nests too deep", text, deep)
	}
	seen := 0
	eachKey(t, text, func(path string, value any) {
		line, isNumber := value.(int64)
		seen++
		if isNumber && found.at(path) != int(line) {
			t.Errorf("%q: %s is at line %d, got %d", text, path, line, found.at(path))
		}
	})
	if seen == 0 {
		t.Errorf("%q: no keys", text)
	}
}

// eachKey calls do for every key and every element of a list that the library finds in text.
func eachKey(t *testing.T, text string, do func(path string, value any)) {
	t.Helper()
	var values map[string]any
	if _, err := toml.Decode(text, &values); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	walk("", values, do)
}

func walk(path string, value any, do func(path string, value any)) {
	if path != "" {
		do(path, value)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			walk(under(path, shown(key)), inner, do)
		}
	case []map[string]any:
		for i, inner := range v {
			walk(element(path, i), inner, do)
		}
	case []any:
		for i, inner := range v {
			walk(element(path, i), inner, do)
		}
	}
}

// A writer writes a random file of the kind above.
type writer struct {
	strings.Builder
	*rand.Rand
	line, names int
}

func TestLinesOfRandomFiles(t *testing.T) {
	for seed := range uint64(500) {
		w := writer{Rand: rand.New(rand.NewPCG(seed, 0)), line: 1}
		for range 5 {
			w.pairs()
			w.header()
		}
		w.pairs()
		compareLines(t, w.String())
	}
}

func (w *writer) newline() {
	w.WriteString("\n")
	w.line++
}

// name is new each time, so that nothing is defined twice.
func (w *writer) name() string {
	w.names++
	return fmt.Sprintf([]string{"k%d", "\"k.%d\"", "'k]%d'", "k%d.x", "k%d . \"#\""}[w.IntN(5)], w.names)
}

func (w *writer) header() {
	form := []string{"[%s]", "[[%s]]", "[ %s ] # [no]"}[w.IntN(3)]
	name := w.name()
	for range 1 + w.IntN(2) {
		fmt.Fprintf(w, form, name)
		w.newline()
		w.pairs()
		if form != "[[%s]]" {
			return
		}
	}
}

func (w *writer) pairs() {
	for range w.IntN(4) {
		w.WriteString(w.name() + " = ")
		w.value(3)
		w.newline()
	}
}

// value writes the number of the line, or something that holds it.
func (w *writer) value(depth int) {
	switch n := w.IntN(6); {
	case n == 0 && depth > 0:
		w.WriteString("{ " + w.name() + " = ")
		w.value(depth - 1)
		w.WriteString(" }")
	case n == 1 && depth > 0:
		w.WriteString("[ ")
		w.newline()
		w.value(depth - 1)
		w.WriteString(", # ]")
		w.newline()
		w.WriteString("]")
	case n == 2:
		w.WriteString(`"""`)
		w.newline()
		w.WriteString(`[x] \"""`)
		w.newline()
		w.WriteString(`"""`)
	default:
		fmt.Fprint(w, w.line)
	}
}

func TestNestedTooDeep(t *testing.T) {
	for _, row := range []struct {
		text string
		deep int
	}{
		{"x = " + strings.Repeat("[", deepest) + strings.Repeat("]", deepest), 0},
		{"\nx = " + strings.Repeat("[", deepest+1), 2},
		{"x = " + strings.Repeat("{a=", deepest+1), 1},
		{strings.Repeat("a.", deepest-1) + "a = 1", 0},
		{"\n\n" + strings.Repeat("a.", deepest) + "a = 1", 3},
		{"[" + strings.Repeat("a.", deepest) + "a]", 1},
		{"x = " + strings.Repeat("[", 1<<20), 1},
	} {
		if _, deep := scan(row.text); deep != row.deep {
			t.Errorf("%.40q: got line %d, want %d", row.text, deep, row.deep)
		}
	}
}

// Whatever the text, the scanner ends; and where the library accepts it, the scanner knows each key.
func FuzzLines(f *testing.F) {
	for _, text := range numbered {
		f.Add(text)
	}
	f.Add(`k."\`)
	f.Fuzz(func(t *testing.T, text string) {
		found, deep := scan(text)
		if _, sentence := unreadable([]byte(text)); deep > 0 || sentence != "" {
			return
		}
		var values map[string]any
		if _, err := toml.Decode(text, &values); err != nil || len(found.twice) > 0 {
			return
		}
		lines := 1 + strings.Count(text, "\n")
		walk("", values, func(path string, _ any) {
			if line := found.at(path); line < 1 || line > lines {
				t.Errorf("%q: %s at line %d of %d", text, path, line, lines)
			}
		})
	})
}
