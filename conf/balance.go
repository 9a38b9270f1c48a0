package conf

// Policies under their canonical names, in the order in which messages list them.
var policies = []string{
	"round_robin", "weighted_round_robin", "interleaved_wrr", "random", "weighted_random", "two_choices",
	"least_conn", "least_time", "source_hash", "ring_hash", "rendezvous", "first",
}

// What HAProxy (haproxy.cfg, balance), nginx (stream upstream) and LVS call them.
var aliases = map[string]string{
	"roundrobin":  "round_robin",
	"round-robin": "round_robin",
	"rr":          "round_robin",
	"smooth_wrr":  "weighted_round_robin",
	"static-rr":   "weighted_round_robin",
	"wrr":         "weighted_round_robin",
	"leastconn":   "least_conn",
	"least-conn":  "least_conn",
	"lc":          "least_conn",
	"source":      "source_hash",
	"ip_hash":     "source_hash",
	"hash":        "source_hash",
}

// hashes are the policies that look at the pool's hash_key.
var hashes = []string{"source_hash", "ring_hash", "rendezvous"}

// balance accepts a policy by its own name or by an alias, and returns the former.
func balance(raw any) (string, error) {
	s, _ := raw.(string)
	if canonical, ok := aliases[s]; ok {
		return canonical, nil
	}
	return oneOf(policies...)(raw)
}
