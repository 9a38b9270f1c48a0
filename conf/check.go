package conf

import (
	"fmt"
	"slices"
)

// What must hold between keys. It runs over the values that were read, also when some were refused: a person wants
// the whole list. So it looks away where a refused key left a value empty.

func (r *reading) checkAll() {
	r.checkEmpty()
	r.checkNames()
	r.checkPoolNames()
	r.checkBinds()
	r.checkLoops()
	for i := range r.cfg.Pools {
		r.checkHash(&r.cfg.Pools[i], r.pools[i])
		r.checkNoise(&r.cfg.Pools[i], r.pools[i])
	}
}

func (r *reading) checkEmpty() {
	for _, key := range []string{"listeners", "pools"} {
		raw := r.root.values[key]
		if items, ok := tables(raw); raw == nil || ok && len(items) == 0 {
			r.root.fail(key, "missing, want at least one [[%s]]", key)
		}
	}
}

func (r *reading) checkNames() {
	unique("listener", r.listeners, func(i int) string { return r.cfg.Listeners[i].Name })
	unique("pool", r.pools, func(i int) string { return r.cfg.Pools[i].Name })
	for i := range r.pools {
		servers := r.cfg.Pools[i].Servers
		unique("server", r.servers[i], func(i int) string { return servers[i].Name })
	}
}

// unique refuses a second use of a name.
func unique(what string, all []*table, name func(i int) string) {
	first := map[string]*table{}
	for i, t := range all {
		n := name(i)
		if other := first[n]; other != nil && n != "" {
			t.fail("name", "%s is the name of the %s at line %d already", quote(n), what, other.lineOf("name"))
			continue
		}
		first[n] = t
	}
}

// checkPoolNames refuses references to pools that are not there, and tells of pools that nobody refers to.
func (r *reading) checkPoolNames() {
	used := map[string]bool{}
	for i, l := range r.cfg.Listeners {
		if len(l.Routes) == 0 {
			r.listeners[i].require("pool", "the name of a pool")
		}
		r.checkPoolName(r.listeners[i], l.Pool, used)
		for j, route := range l.Routes {
			r.checkPoolName(r.routes[i][j], route.Pool, used)
		}
	}
	for i, p := range r.cfg.Pools {
		if p.Name != "" && !used[p.Name] {
			r.pools[i].warn("name", "no listener uses this pool")
		}
	}
}

func (r *reading) checkPoolName(t *table, pool string, used map[string]bool) {
	used[pool] = true
	if _, ok := r.byName[pool]; ok || pool == "" {
		return
	}
	t.fail("pool", "there is no pool named %s%s", quote(pool), didYouMean(pool, r.poolNames()))
}

func (r *reading) poolNames() []string {
	names := make([]string, len(r.cfg.Pools))
	for i, p := range r.cfg.Pools {
		names[i] = p.Name
	}
	return names
}

// poolsOf are the indexes of the pools that a listener refers to.
func (r *reading) poolsOf(listener int) []int {
	l := &r.cfg.Listeners[listener]
	names := []string{l.Pool}
	for _, route := range l.Routes {
		names = append(names, route.Pool)
	}
	var out []int
	for _, name := range names {
		if p, ok := r.byName[name]; ok && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// A place is what one socket listens on.
type place struct {
	Address
	device string
	v6Only bool
	table  *table
}

// checkBinds refuses to listen on one address twice, or on addresses of which one includes the other. The kernel would
// share out the connections of the first, with SO_REUSEPORT; the second it refuses.
func (r *reading) checkBinds() {
	var places []place
	for i, l := range r.cfg.Listeners {
		for _, b := range l.Bind {
			at := place{b, l.Interface, l.V6Only, r.listeners[i]}
			for _, other := range places {
				if at.overlaps(other) {
					at.table.fail("bind", "%s", at.taken(other))
					break
				}
			}
			places = append(places, at)
		}
	}
}

func (p place) taken(other place) string {
	line := other.table.lineOf("bind")
	if p.Address == other.Address {
		return fmt.Sprintf("%s is bound at line %d already", p.Address, line)
	}
	return fmt.Sprintf("%s and %s, bound at line %d, overlap", p.Address, other.Address, line)
}

// overlaps reports whether a connection could belong to both.
func (p place) overlaps(q place) bool {
	if p.device != q.device && p.device != "" && q.device != "" || p.IsZero() || q.IsZero() {
		return false
	}
	return p.Address == q.Address || p.includes(q) || q.includes(p)
}

// includes reports whether p is the wildcard address that q falls under.
func (p place) includes(q place) bool {
	if !p.IP.IsValid() || !p.IP.Addr().IsUnspecified() || !q.IP.IsValid() || p.IP.Port() != q.IP.Port() {
		return false
	}
	return p.IP.Addr().Is4() == q.IP.Addr().Is4() || p.IP.Addr().Is6() && !p.v6Only
}

// checkHash tells of keys that only the hashes look at.
func (r *reading) checkHash(p *Pool, t *table) {
	if p.Hashes() {
		return
	}
	for _, key := range []string{"hash_key", "bounded_load"} {
		if t.has(key) {
			t.warn(key, "has no effect with balance = %s", quote(p.Balance))
		}
	}
}

// Ports of servers that log, and hold against the client, each connection that says nothing.
var chatty = map[uint16]string{3306: "MySQL", 5432: "PostgreSQL"}

// checkNoise tells of checks that flood their servers' logs, once for each pool.
func (r *reading) checkNoise(p *Pool, t *table) {
	if p.Check == nil || p.Check.Type != "tcp" {
		return
	}
	for _, s := range p.Servers {
		port := s.Address.PortNumber()
		if p.Check.Port != 0 {
			port = p.Check.Port
		}
		if who := chatty[port]; who != "" {
			t.warn("check", "a tcp check on port %d makes %s log an aborted connection each time", port, who)
			return
		}
	}
}

// CheckDescriptors warns of connection limits beyond what so many descriptors carry. A session takes two.
func (c *Config) CheckDescriptors(limit int) []Warning {
	var out []Warning
	check := func(line int, table string, n int) {
		if n > limit/2 {
			text := fmt.Sprintf("got %d, but %d descriptors carry %d sessions at most", n, limit, limit/2)
			out = append(out, Warning{File: c.File, Line: line, Key: table + ".max_connections", Text: text})
		}
	}
	check(c.Process.Line, "process", c.Process.MaxConnections)
	for _, l := range c.Listeners {
		check(l.Line, "listeners."+l.Name, l.MaxConnections)
	}
	return out
}
