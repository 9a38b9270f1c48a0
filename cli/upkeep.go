package cli

import (
	"strings"
	"time"
)

// ramps moves the slow starts of all pools on; next is when to call it again.
func (b *balancer) ramps(now time.Time) (next time.Duration) {
	next = time.Second
	for _, p := range b.pools {
		if p.Tick(now) {
			next = min(next, p.TickStep())
		}
	}
	return next
}

// A lineLogger is a Writer that hands each line to a function.
type lineLogger func(line string)

func (l lineLogger) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		l(strings.TrimSuffix(line, "\n"))
	}
	return len(text), nil
}
