package cli

import (
	"strings"
	"time"
)

// upkeep tries names again that had no address, every resolveAgain.
func (b *balancer) upkeep() {
	if !b.unresolved() {
		return
	}
	if err := b.change(b.cfg); err != nil {
		b.log.Error("names resolved again", "error", err)
	}
}

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
