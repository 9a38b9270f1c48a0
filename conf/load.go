package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// largest is how many bytes a file may have: room for ten thousand servers. A file beyond it is not a configuration.
const largest = 1 << 20

// Load reads, parses and checks the file at path. The error is of type Errors and holds all that is wrong with the
// file; then there is no Config. Warnings come with either.
func Load(path string) (*Config, []Warning, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, nil, Errors{{File: path, Text: err.Error()}}
	}
	return Parse(path, text)
}

// readFile reads no more than a configuration may have, whatever path is: a file that grows, a device, a pipe. Without
// O_NONBLOCK the open of a named pipe that nobody writes to would never return, and a reload would hang.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("is a directory, want a file")
	}
	text, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err != nil {
		return nil, reason(err)
	}
	return text, nil
}

// reason is err without the path, which stands before it anyway.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Parse is Load for a text that was read already; name is what messages call it.
func Parse(name string, text []byte) (*Config, []Warning, error) {
	src := &source{file: name}
	values, ok := src.parse(text)
	if !ok {
		return nil, nil, src.errors
	}
	cfg := src.config(values)
	sortByLine(src.errors)
	sortByLine(src.warnings)
	if len(src.errors) > 0 {
		return nil, src.warnings, src.errors
	}
	return cfg, src.warnings, nil
}

// parse is the part that ends at the first error, since nothing can be said of what follows it.
func (s *source) parse(text []byte) (map[string]any, bool) {
	if line, sentence := unreadable(text); sentence != "" {
		s.errors = append(s.errors, Problem{File: s.file, Line: line, Text: sentence})
		return nil, false
	}
	var deep int
	if s.lines, deep = scan(string(text)); deep > 0 {
		s.errors = append(s.errors, Problem{File: s.file, Line: deep, Text: "nested too deep"})
		return nil, false
	}
	var values map[string]any
	if _, err := toml.Decode(string(text), &values); err != nil {
		s.errors = append(s.errors, s.syntax(err, text))
		return nil, false
	}
	s.refuseRepeats()
	return values, true
}

// refuseRepeats finds what the library lets pass: of "a.b = 1" and then "a = 2" it drops the second unheard.
func (s *source) refuseRepeats() {
	for _, r := range s.lines.twice {
		text := fmt.Sprintf("defined at line %d already", r.first)
		s.errors = append(s.errors, Problem{File: s.file, Line: r.line, Key: clip(r.path, longEnough), Text: text})
	}
}

// unreadable is what is wrong with a text that is not TOML at all, and the line.
func unreadable(text []byte) (line int, sentence string) {
	switch {
	case len(text) > largest:
		return 0, fmt.Sprintf("larger than %d bytes, which no configuration is", largest)
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return 1, "begins with a byte order mark, want plain UTF-8 without one"
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return 1, "is UTF-16, want UTF-8"
	}
	for i, r := range string(text) {
		if r == 0 {
			return lineAt(text, i), "a zero byte; this is not a text file"
		}
		if r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\uFFFD")) {
			return lineAt(text, i), "not UTF-8; this is not a text file, or one of another encoding"
		}
	}
	return 0, ""
}

// lineAt is the line that a byte stands in.
func lineAt(text []byte, at int) int {
	return 1 + bytes.Count(text[:max(0, min(at, len(text)))], []byte("\n"))
}

// printable is a sentence of the library, which may repeat any part of the file, in a form that fits a terminal.
func printable(s string) string {
	var b strings.Builder
	for _, r := range clip(s, 3*longEnough) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// syntax turns an error of the TOML library into a problem. The line comes from the offset: for errors at a line end
// the library counts one too far.
func (s *source) syntax(err error, text []byte) Problem {
	p := Problem{File: s.file, Text: strings.TrimPrefix(err.Error(), "toml: ")}
	var at toml.ParseError
	if errors.As(err, &at) {
		p.Text = printable(strings.TrimSuffix(at.Message, "."))
		p.Line = lineAt(text, at.Position.Start)
	}
	if first := s.lines.again[p.Line]; first > 0 && strings.Contains(p.Text, "already") {
		p.Text += fmt.Sprintf(" (at line %d)", first)
	}
	return p
}
