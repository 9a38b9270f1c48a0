package conf

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	Line int    // 0: the file as a whole
	Key  string // such as pools.pg.balance; empty: the text as such
	Text string
}

// Warning is suspicious, but legal.
type Warning = Problem

// String is "file:line: key: text", without the parts that p lacks.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Key != "" {
		s += ": " + p.Key
	}
	return s + ": " + p.Text
}

// Errors is all that is wrong with a file, in the order of its lines. It is what Load and Parse return as error.
type Errors []Problem

// Error is one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func sortByLine(p []Problem) {
	sort.SliceStable(p, func(i, j int) bool { return p[i].Line < p[j].Line })
}
