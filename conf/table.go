package conf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A table is one table of the file while its keys are read. A key is declared by reading it: the call names the key,
// where its value goes and how it is checked. What was not read by the time of done is unknown. So the list of keys
// stands once, in process.go, listener.go and pool.go.
type table struct {
	*source
	kind   string // which table of the format, such as "pools.check"; later.go and hints go by it
	path   string // where it is in the file, such as "pools[0].check"
	name   string // what messages call it, such as "pools.pg.check"
	line   int
	values map[string]any
	known  []string
}

// source is the file that is being read, and what was found wrong with it.
type source struct {
	file     string
	lines    lines
	tables   []*table // all of them, in the order in which they were asked for
	errors   Errors
	warnings []Warning
}

// read takes the key's value into dst. Where the key is missing or wrong, dst keeps what it holds: its default.
func read[T any](t *table, key string, dst *T, parse parser[T]) {
	raw, ok := t.take(key)
	if !ok {
		return
	}
	v, err := parse(raw)
	if err != nil {
		t.refuse(key, err)
		return
	}
	*dst = v
	t.refuseLater(key, fmt.Sprint(v))
}

// refuse records what a parser said, of a list each element apart.
func (t *table) refuse(key string, err error) {
	items, ok := err.(itemErrors)
	if !ok {
		t.fail(key, "%v", err)
	}
	for _, item := range items {
		t.fail(element(key, item.index), "%v", item.error)
	}
}

// refuseLater refuses a value that asks for what is not built yet.
func (t *table) refuseLater(key, value string) {
	if isLater(t.kind+"."+key, value) {
		t.fail(key, notSupported)
	}
}

// take declares the key and returns its value as the TOML library left it.
func (t *table) take(key string) (any, bool) {
	if !slices.Contains(t.known, key) {
		t.known = append(t.known, key)
	}
	v, ok := t.values[key]
	return v, ok
}

func (t *table) has(key string) bool {
	_, ok := t.values[key]
	return ok
}

// sub is the table under key. It is empty where the file has none, so that its keys are declared all the same;
// has tells the two apart.
func (t *table) sub(key string) *table {
	raw, there := t.take(key)
	values, ok := raw.(map[string]any)
	if there && !ok {
		t.fail(key, "%v", wrong(raw, "a table"))
	}
	return t.child(key, "", values)
}

// subs are the tables of the array under key.
func (t *table) subs(key string) []*table {
	raw, there := t.take(key)
	items, ok := tables(raw)
	if there && !ok {
		t.fail(key, "%v", wrong(raw, "one or more [["+under(t.kind, key)+"]] tables"))
	}
	out := make([]*table, len(items))
	for i, values := range items {
		out[i] = t.child(key, fmt.Sprintf("[%d]", i), values)
	}
	return out
}

// tables are the elements of an array of tables, whichever way the file spells it.
func tables(raw any) ([]map[string]any, bool) {
	if items, ok := raw.([]map[string]any); ok {
		return items, true
	}
	list, ok := raw.([]any)
	out := make([]map[string]any, len(list))
	for i, item := range list {
		if out[i], ok = item.(map[string]any); !ok {
			return nil, false
		}
	}
	return out, ok
}

func (t *table) child(key, index string, values map[string]any) *table {
	c := &table{source: t.source, values: values}
	c.kind = under(t.kind, key)
	c.path = under(t.path, key) + index
	c.name = under(t.name, key) + index
	if name, ok := values["name"].(string); ok && index != "" && checkName(name) == nil {
		c.name = under(t.name, key) + "." + name
	}
	c.line = t.lines.at(c.path)
	t.tables = append(t.tables, c)
	return c
}

func under(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}

// done refuses what is left: keys that nobody read.
func (t *table) done() {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if !slices.Contains(t.known, key) {
			t.fail(shown(key), "unknown key%s", t.hint(key))
		}
	}
}

// homes are the tables that do have the key.
func homes(key string) []string {
	var out []string
	for _, t := range vocabulary() {
		if t.kind != "defaults" && slices.Contains(t.known, key) && !slices.Contains(out, t.title()) {
			out = append(out, t.title())
		}
	}
	return out
}

// vocabulary is every table of the format, with the keys that are known in it.
var vocabulary = sync.OnceValue(func() []*table {
	s := new(source)
	root := s.root(nil)
	newReading(root).read()
	listener, pool := root.child("listeners", "[]", nil), root.child("pools", "[]", nil)
	new(Listener).read(listener)
	new(Pool).read(pool)
	new(Pool).readCheck(pool, Check{})
	new(Route).read(listener.child("routes", "[]", nil))
	new(Certificate).read(listener.child("tls", "", nil).child("certificates", "[]", nil))
	new(Server).read(pool.child("servers", "[]", nil))
	return s.tables
})

// title is the table's header in the file.
func (t *table) title() string {
	switch {
	case t.kind == "":
		return "the top level of the file"
	case strings.HasSuffix(t.path, "]"):
		return "[[" + t.kind + "]]"
	}
	return "[" + t.kind + "]"
}

// hint says what an unknown key may have been meant for.
func (t *table) hint(key string) string {
	if homes := homes(key); len(homes) > 0 {
		return ": it belongs in " + strings.Join(homes, " or ")
	}
	if near := didYouMean(key, t.known); near != "" {
		return near
	}
	return ": want one of " + strings.Join(t.known, ", ")
}

// shown is a key that can stand in a message: quoted where it is not a bare key.
func shown(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !isNameRune(r) || r == '.' }) {
		return strconv.Quote(key)
	}
	return key
}

// require refuses a table that lacks the key.
func (t *table) require(key, what string) {
	if !t.has(key) {
		t.fail(key, "missing, want %s", what)
	}
}

func (t *table) fail(key, format string, args ...any) {
	t.errors = append(t.errors, t.problem(key, format, args))
}

func (t *table) warn(key, format string, args ...any) {
	t.warnings = append(t.warnings, t.problem(key, format, args))
}

func (t *table) problem(key, format string, args []any) Problem {
	return Problem{File: t.file, Line: t.lineOf(key), Key: under(t.name, clip(key, longEnough)), Text: fmt.Sprintf(format, args...)}
}

// lineOf is where the key stands; for a key that is missing, where its table begins.
func (t *table) lineOf(key string) int {
	if line := t.lines.at(under(t.path, key)); line > 0 {
		return line
	}
	return t.line
}
