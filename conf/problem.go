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

// Error is one problem a line. Beyond a thousand it only says how many there are: nobody reads on.
func (e Errors) Error() string {
	const enough = 1000
	var lines []string
	for _, p := range e[:min(len(e), enough)] {
		lines = append(lines, p.String())
	}
	if len(e) > enough {
		lines = append(lines, fmt.Sprintf("and %d more", len(e)-enough))
	}
	return strings.Join(lines, "\n")
}

func sortByLine(p []Problem) {
	sort.SliceStable(p, func(i, j int) bool { return p[i].Line < p[j].Line })
}
