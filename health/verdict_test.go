package health

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Results are o (ok) and f (failed); the line below shows the state after each.
func TestVerdict(t *testing.T) {
	rows := []struct {
		name       string
		initial    State
		rise, fall int
		results    string
		states     string
	}{
		{"alternating answers change nothing", Up, 2, 3, strings.Repeat("of", 30), strings.Repeat("UU", 30)},
		{"down at the third failure in a row", Up, 2, 3, "ffofff", "UUUUUD"},
		{"up at the second pass in a row", Down, 2, 3, "ofoo", "DDDU"},
		{"both, one after the other", Up, 2, 3, "ffofffofoo", "UUUUUDDDDU"},
		{"the first result decides: ok", Checking, 2, 3, "off", "UUU"},
		{"the first result decides: failed", Checking, 2, 3, "foo", "DDU"},
		{"an initial state needs the full count", Down, 3, 1, "ooof", "DDUD"},
		{"one and one", Up, 1, 1, "fofo", "DUDU"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			v := verdict{up: row.initial == Up, open: row.initial == Checking}
			var states strings.Builder
			for _, r := range row.results {
				v.observe(r == 'o', row.rise, row.fall)
				states.WriteByte(map[bool]byte{true: 'U', false: 'D'}[v.up])
			}
			if states.String() != row.states {
				t.Errorf("results %s\n    got %s\n   want %s", row.results, &states, row.states)
			}
		})
	}
}

// Beside a model that looks back over all results.
func TestVerdictAgainstHistory(t *testing.T) {
	for range 200 {
		rise, fall := 1+rand.IntN(4), 1+rand.IntN(4)
		v, up := verdict{up: true}, true
		var history []bool
		for range 200 {
			ok := rand.IntN(2) == 0
			history = append(history, ok)
			decided := v.observe(ok, rise, fall)
			was := up
			if endsWith(history, !up, map[bool]int{true: fall, false: rise}[up]) {
				up, history = !up, nil
			}
			if v.up != up || decided != (up != was) {
				t.Fatalf("rise %d, fall %d: got %+v, decided %v; want up %v", rise, fall, v, decided, up)
			}
		}
	}
}

func endsWith(history []bool, ok bool, n int) bool {
	if len(history) < n {
		return false
	}
	for _, h := range history[len(history)-n:] {
		if h != ok {
			return false
		}
	}
	return true
}
