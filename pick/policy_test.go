package pick

import (
	"strings"
	"testing"
)

func TestParsePolicy(t *testing.T) {
	for name, want := range map[string]string{
		"round_robin": "round_robin", "roundrobin": "round_robin", "ROUND_ROBIN": "round_robin", "rr": "round_robin",
		"weighted_round_robin": "weighted_round_robin", "smooth_wrr": "weighted_round_robin", "static-rr": "weighted_round_robin", "wrr": "weighted_round_robin",
		"interleaved_wrr": "interleaved_wrr", "random": "random", "weighted_random": "weighted_random", "weight": "weighted_random",
		"two_choices": "two_choices", "p2c": "two_choices", "random two least_conn": "two_choices", "POWER_OF_TWO": "two_choices",
		"least_conn": "least_conn", "leastconn": "least_conn", "leastactive": "least_conn", "wlc": "least_conn",
		"least_time": "least_time", "source_hash": "source_hash", "source": "source_hash", "maglev": "source_hash", "ip_hash": "source_hash",
		"ring_hash": "ring_hash", "ketama": "ring_hash", "RING_HASH": "ring_hash", "rendezvous": "rendezvous", "HRW": "rendezvous", "first": "first",
	} {
		policy, canonical, err := ParsePolicy(name)
		if err != nil || canonical != want || policy == nil {
			t.Errorf("%q: got %q, %v; want %q", name, canonical, err, want)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	for name, nearest := range map[string]string{
		"leastcon": "(did you mean least_conn?)", "rond_robin": "(did you mean round_robin?)",
		"two_choice": "(did you mean two_choices?)", "maglef": "(did you mean source_hash?)",
		"quantum": "first", "": "first", // too far from all: the list alone
	} {
		_, _, err := ParsePolicy(name)
		if err == nil || !strings.HasSuffix(err.Error(), nearest) {
			t.Errorf("%q: got %v, want it to end in %q", name, err, nearest)
		}
		for _, known := range PolicyNames() {
			if err != nil && !strings.Contains(err.Error(), known) {
				t.Errorf("%q: %v does not name %s", name, err, known)
			}
		}
	}
}

// Names and aliases are one each.
func TestPolicyNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, p := range policies {
		for _, name := range append(strings.Fields(p.aliases), p.name) {
			if other := seen[name]; other != "" {
				t.Errorf("%s means %s and %s", name, other, p.name)
			}
			seen[name] = p.name
		}
	}
}
