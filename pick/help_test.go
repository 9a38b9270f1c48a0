package pick

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// newPool returns a configured Pool, or ends the test.
func newPool(tb testing.TB, cfg Config) *Pool {
	tb.Helper()
	p := NewPool()
	configure(tb, p, cfg)
	return p
}

func configure(tb testing.TB, p *Pool, cfg Config) {
	tb.Helper()
	if err := p.Configure(cfg); err != nil {
		tb.Fatal(err)
	}
}

// named returns servers a, b, c ... with the given weights.
func named(weights ...int) []ServerConfig {
	servers := make([]ServerConfig, len(weights))
	for i, w := range weights {
		servers[i] = ServerConfig{Name: letter(i), Addr: "10.0.0.1:" + fmt.Sprint(1000+i), Weight: w}
	}
	return servers
}

func letter(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return fmt.Sprintf("s%d", i)
}

// membersOf returns Members for a Policy that is called directly.
func membersOf(weights ...int) []Member {
	ms := make([]Member, len(weights))
	for i, w := range weights {
		ms[i] = Member{Server: NewServer(letter(i), fmt.Sprint(i)), Weight: w}
	}
	return ms
}

func repeat(n, weight int) []int { return slices.Repeat([]int{weight}, n) }

// sequence returns the names of the next n picks of a Set.
func sequence(set *Set, st *State, n int) string {
	names := make([]string, n)
	for k := range names {
		names[k] = "-"
		if i := set.Pick(st, 0, nil); i >= 0 {
			names[k] = set.At(i).Name
		}
	}
	return strings.Join(names, " ")
}

// tally counts n picks with keys 1, 2, 3 ... by name.
func tally(set *Set, st *State, n int) map[string]int {
	counts := map[string]int{}
	for k := range n {
		if i := set.Pick(st, uint64(k+1), nil); i >= 0 {
			counts[set.At(i).Name]++
		} else {
			counts["-"]++
		}
	}
	return counts
}

// find returns the Server of a name, which need not be in the Set.
func find(tb testing.TB, p *Pool, name string) *Server {
	tb.Helper()
	for _, s := range p.Servers() {
		if s.Name == name {
			return s.Server
		}
	}
	tb.Fatalf("no server %s", name)
	return nil
}

func mustParse(tb testing.TB, name string) Policy {
	tb.Helper()
	policy, _, err := ParsePolicy(name)
	if err != nil {
		tb.Fatal(err)
	}
	return policy
}
