package conf

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// The TOML library keeps the positions of keys to itself, so this file finds them: a scanner that walks the text once
// and notes at which line each key and each table first appears. It knows the shape of TOML (headers, dotted keys,
// strings of four kinds, arrays, inline tables) and nothing of values.
//
// It runs before the library, over text that may be wrong in any way, and refuses only what would be a burden to the
// library: keys of many parts and values nested deep cost it time in the square of their length, or stack. On text
// that the library refuses, what the scanner notes is worthless but harmless.

// deepest is how many parts a key may have, and how many lists and tables may nest in a value. The format needs 4.
const deepest = 16

// lines knows where keys stand.
type lines struct {
	first map[string]int // path of a key, such as pools[0].servers[2].weight -> its line
	again map[int]int    // line of a table or key that was there already -> line where it was first
	twice []repeat       // keys that were given a value again
}

// repeat is a key that has a value, or a table under its name, already.
type repeat struct {
	path        string
	first, line int
}

// at is the line of path, 0 when it is not in the file.
func (l lines) at(path string) int { return l.first[path] }

type scanner struct {
	text   string
	pos    int
	line   int
	found  lines
	counts map[string]int // arrays of tables -> how many elements so far
	table  string         // path of the table whose keys follow
	deep   int            // line of what nests too deep, 0 when nothing does
}

// scan notes where the keys of text stand. deep is the line of the first thing nested too deep, else 0.
func scan(text string) (found lines, deep int) {
	s := scanner{text: text, line: 1, counts: map[string]int{}}
	s.found = lines{first: map[string]int{}, again: map[int]int{}}
	for s.skipBlank(); s.pos < len(text) && s.deep == 0; s.skipBlank() {
		if s.peek() == '[' {
			s.header()
		} else {
			s.pair(s.table, 0)
		}
	}
	return s.found, s.deep
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// next steps over one byte, if there is one, and counts lines.
func (s *scanner) next() {
	if s.peek() == '\n' {
		s.line++
	}
	s.pos = min(s.pos+1, len(s.text))
}

// skip steps over prefix, which holds no line end, if it is next.
func (s *scanner) skip(prefix string) bool {
	if !strings.HasPrefix(s.text[s.pos:], prefix) {
		return false
	}
	s.pos += len(prefix)
	return true
}

// skipTo steps on until one of stops is next.
func (s *scanner) skipTo(stops string) {
	for s.pos < len(s.text) && !strings.Contains(stops, s.text[s.pos:s.pos+1]) {
		s.next()
	}
}

// skipBlank steps over blanks, line ends and comments.
func (s *scanner) skipBlank() {
	for s.pos < len(s.text) {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.next()
		case '#':
			s.skipTo("\n")
		default:
			return
		}
	}
}

func (s *scanner) skipSpaces() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.next()
	}
}

// header reads [table] or [[array]] and makes it the table of the keys that follow.
func (s *scanner) header() {
	line := s.line
	s.skip("[")
	array := s.skip("[")
	parts := s.key()
	s.skipTo("\n")
	if len(parts) == 0 {
		return
	}
	parents, last := parts[:len(parts)-1], parts[len(parts)-1]
	path := under(s.descend("", parents, line), last)
	if array {
		if s.counts[path] == 0 {
			s.note(path, line)
		}
		s.counts[path]++
		s.table = element(path, s.counts[path]-1)
	} else {
		s.table = path
	}
	s.note(s.table, line)
}

// descend is the path of the table that parts lead to: an array of tables stands for its newest element.
func (s *scanner) descend(path string, parts []string, line int) string {
	for _, part := range parts {
		path = under(path, part)
		s.noteOnce(path, line)
		if n := s.counts[path]; n > 0 {
			path = element(path, n-1)
		}
	}
	return path
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// pair reads key = value.
func (s *scanner) pair(table string, depth int) {
	line := s.line
	parts := s.key()
	s.skipSpaces()
	if len(parts) == 0 || !s.skip("=") {
		s.skipTo("\n")
		return
	}
	path := under(s.descend(table, parts[:len(parts)-1], line), parts[len(parts)-1])
	if first := s.found.at(path); first > 0 {
		s.found.twice = append(s.found.twice, repeat{path, first, line})
	}
	s.note(path, line)
	s.value(path, depth)
}

// note records where path is defined, or that it was before.
func (s *scanner) note(path string, line int) {
	if first, twice := s.found.first[path]; twice {
		s.found.again[line] = first
		return
	}
	s.found.first[path] = line
}

func (s *scanner) noteOnce(path string, line int) {
	if _, there := s.found.first[path]; !there {
		s.found.first[path] = line
	}
}

// key reads a key and returns its parts, each spelled as shown does.
func (s *scanner) key() []string {
	var parts []string
	for {
		s.skipSpaces()
		part, ok := s.keyPart()
		if !ok {
			return nil
		}
		if parts = append(parts, shown(part)); len(parts) > deepest {
			s.deep = s.line
			return nil
		}
		s.skipSpaces()
		if !s.skip(".") {
			return parts
		}
	}
}

func (s *scanner) keyPart() (string, bool) {
	start := s.pos
	if c := s.peek(); c != '"' && c != '\'' {
		for s.pos < len(s.text) && isBare(s.text[s.pos]) {
			s.pos++
		}
		return s.text[start:s.pos], s.pos > start
	}
	s.quoted()
	return unquote(s.text[start:s.pos])
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// unquote asks the library what a quoted key says, so that the two cannot differ.
func unquote(key string) (string, bool) {
	var table map[string]any
	if _, err := toml.Decode(key+"=0", &table); err != nil {
		return "", false
	}
	for name := range table {
		return name, true
	}
	return "", false
}

// value steps over a value and notes the keys of the inline tables in it.
func (s *scanner) value(path string, depth int) {
	if depth >= deepest {
		s.deep = s.line
		return
	}
	s.skipSpaces()
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.array(path, depth)
	case '{':
		s.inline(path, depth)
	default:
		s.skipTo(",]}#\n")
	}
}

func (s *scanner) array(path string, depth int) {
	s.next()
	for i := 0; s.more(']'); i++ {
		s.noteOnce(element(path, i), s.line)
		s.value(element(path, i), depth+1)
		s.toComma(']')
	}
	s.skip("]")
}

func (s *scanner) inline(path string, depth int) {
	s.next()
	for s.more('}') {
		s.pair(path, depth+1)
		s.toComma('}')
	}
	s.skip("}")
}

// more reports whether another element comes before end.
func (s *scanner) more(end byte) bool {
	s.skipBlank()
	return s.pos < len(s.text) && s.peek() != end && s.deep == 0
}

// toComma steps over the comma after an element. In text that is wrong there may be something else: it steps over
// that too, and so always gets on.
func (s *scanner) toComma(end byte) {
	s.skipBlank()
	if s.peek() != end && s.pos < len(s.text) {
		s.next()
	}
}

// quoted steps over a string of any of the four kinds.
func (s *scanner) quoted() {
	quote := s.text[s.pos : s.pos+1]
	escapes := quote == `"`
	if !s.skip(quote + quote + quote) {
		s.next()
		s.closing(quote, "\n", escapes)
		return
	}
	s.closing(quote+quote+quote, "", escapes)
	for range 2 { // a multi-line string may end in up to two quotes of its own
		s.skip(quote)
	}
}

// closing steps over everything up to and with end, and stops before stop.
func (s *scanner) closing(end, stop string, escapes bool) {
	for s.pos < len(s.text) && !s.skip(end) {
		if stop != "" && s.peek() == stop[0] {
			return
		}
		if escapes && s.peek() == '\\' {
			s.next()
		}
		s.next()
	}
}
