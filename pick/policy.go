package pick

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxWeight is the largest weight of a server.
const MaxWeight = 1_000_000

// A Member is a server in one Set, with what the Set's policy knows of it.
type Member struct {
	*Server
	Weight int // as the operator set it, 1..MaxWeight
	Ramp   int // percent of the weight that counts now: under 100 in slow start; 0 is taken as 100
}

// weight is what policies compute with: hundredths, so that a ramp needs no
// fractions.
func (m Member) weight() uint64 {
	if m.Ramp == 0 {
		return uint64(m.Weight) * 100
	}
	return uint64(m.Weight) * uint64(m.Ramp)
}

// A Picker chooses one of the members it was built for. Its one method is called
// for each new session: it must not block, allocate, or change anything but st.
// It returns an index into the members, none of tried and no server that is
// full, or -1 if none is left.
type Picker interface {
	Pick(st *State, key uint64, tried []int) int
}

// A Policy builds the Picker of a tier. It runs where Sets are published, so it
// may take time to prepare what makes picks fast.
type Policy func([]Member) Picker

// bounder is a Picker that can keep each server's load within a factor of the
// mean.
type bounder interface{ bound(factor float64) Picker }

// policies is every way to choose: canonical name, what other products call it.
var policies = []struct {
	name    string
	policy  Policy
	aliases string
}{
	{"round_robin", RoundRobin, "roundrobin rr"},
	{"weighted_round_robin", WeightedRoundRobin, "smooth_wrr static_rr wrr weight_round_robin weighted_roundrobin"},
	{"interleaved_wrr", InterleavedWRR, "iwrr interleaved_weighted_round_robin lvs_wrr"},
	{"random", Random, ""},
	{"weighted_random", WeightedRandom, "weight_random weight"},
	{"two_choices", TwoChoices, "p2c power_of_two random_two random_two_least_conn least_request twos"},
	{"least_conn", LeastConn, "leastconn least_connections least_connection leastactive least_active least_loaded wlc lc"},
	{"least_time", LeastTime, "leasttime peak_ewma p2c_ewma"},
	{"source_hash", SourceHash, "source maglev mh sh ip_hash iphash hash"},
	{"ring_hash", RingHash, "ketama ringhash consistent_hash consistenthash hash_consistent"},
	{"rendezvous", Rendezvous, "hrw"},
	{"first", First, "fo"},
}

// PolicyNames returns the canonical names of all policies.
func PolicyNames() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.name
	}
	return names
}

// ParsePolicy returns the policy with the given name and its canonical name. What
// HAProxy, nginx, Envoy, IPVS and others call it is understood as well, in any
// case and with "-" for "_". The error for anything else lists the names and the
// nearest one.
func ParsePolicy(name string) (Policy, string, error) {
	want := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(name))
	for _, p := range policies {
		if p.name == want || slices.Contains(strings.Fields(p.aliases), want) {
			return p.policy, p.name, nil
		}
	}
	return nil, "", fmt.Errorf("got %q, want one of %s%s", name, strings.Join(PolicyNames(), ", "), didYouMean(want))
}

// didYouMean names the policy that is spelt nearest, if one is near at all.
func didYouMean(want string) string {
	best, at := "", len(want)/2+1
	for _, p := range policies {
		for _, name := range append(strings.Fields(p.aliases), p.name) {
			if d := distance(want, name); d < at {
				best, at = p.name, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance is the number of letters to insert, delete or replace to make b of a
// (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// nobody is the Picker of those that have nobody to pick.
type nobody struct{}

func (nobody) Pick(*State, uint64, []int) int { return -1 }

// A group is what all Pickers have in common: the members and which questions
// need asking about them at all.
type group struct {
	members []Member
	guarded bool // somebody has a limit or no weight: each must be looked at
	ramped  bool // somebody is in slow start
	equal   bool // all weigh the same
}

func newGroup(members []Member) group {
	g := group{members: members, equal: true}
	for _, m := range members {
		g.guarded = g.guarded || m.limit.Load() != 0 || m.Weight == 0
		g.ramped = g.ramped || m.weight() != uint64(m.Weight)*100
		g.equal = g.equal && m.weight() == members[0].weight()
	}
	return g
}

// idle reports that there is nobody to pick, ever: no members or none with a weight.
func (g *group) idle() bool {
	return !slices.ContainsFunc(g.members, func(m Member) bool { return m.Weight > 0 })
}

// open reports that any member may be picked: nobody can be full, nobody was tried.
func (g *group) open(tried []int) bool { return !g.guarded && len(tried) == 0 }

// barred reports whether a pick must pass over member i.
func (g *group) barred(i int, tried []int) bool {
	return slices.Contains(tried, i) || g.guarded && (g.members[i].full() || g.members[i].Weight == 0)
}

// anyFrom looks at each member once, from start on, and returns the first that is
// not barred, or -1. It is where every search that found nothing ends.
func (g *group) anyFrom(start int, tried []int) int {
	for k := range g.members {
		i := start + k
		if i >= len(g.members) {
			i -= len(g.members)
		}
		if !g.barred(i, tried) {
			return i
		}
	}
	return -1
}

// weights returns what the members weigh, in hundredths.
func (g *group) weights() []uint64 {
	ws := make([]uint64, len(g.members))
	for i, m := range g.members {
		ws[i] = m.weight()
	}
	return ws
}

// byIdentity returns the members' indices in the order of their identities, which
// is the same however the list was ordered.
func (g *group) byIdentity() []int32 {
	order := make([]int32, len(g.members))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := g.members[a].Server, g.members[b].Server
		return cmp.Or(cmp.Compare(x.ident, y.ident), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Addr, y.Addr))
	})
	return order
}
