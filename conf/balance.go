package conf

import (
	"slices"

	"sluice/pick"
)

// hashes are the policies that look at the pool's hash_key.
var hashes = []string{"source_hash", "ring_hash", "rendezvous"}

// Hashes reports whether the pool's policy places clients by a hash of their key.
func (p *Pool) Hashes() bool { return slices.Contains(hashes, p.Balance) }

// balance accepts a policy by its own name or by what other products call it, and returns the former.
func balance(raw any) (string, error) {
	s, _ := raw.(string)
	if _, name, err := pick.ParsePolicy(s); err == nil {
		return name, nil
	}
	return oneOf(pick.PolicyNames()...)(raw)
}
