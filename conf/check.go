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
	for i := range r.cfg.Listeners {
		r.checkLoop(&r.cfg.Listeners[i])
	}
	for i := range r.cfg.Pools {
		r.checkPool(&r.cfg.Pools[i], r.pools[i])
	}
}

func (r *reading) checkEmpty() {
	if len(r.listeners) == 0 {
		r.root.fail("listeners", "missing, want at least one [[listeners]]")
	}
	if len(r.pools) == 0 {
		r.root.fail("pools", "missing, want at least one [[pools]]")
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
	var names, used []string
	for _, p := range r.cfg.Pools {
		names = append(names, p.Name)
	}
	for i, l := range r.cfg.Listeners {
		used = append(used, l.Pool)
		if l.Pool == "" && len(l.Routes) == 0 {
			r.listeners[i].require("pool", "the name of a pool")
		}
		dangling(r.listeners[i], l.Pool, names)
		for j, route := range l.Routes {
			used = append(used, route.Pool)
			dangling(r.routes[i][j], route.Pool, names)
		}
	}
	for i, name := range names {
		if !slices.Contains(used, name) && name != "" {
			r.pools[i].warn("name", "no listener uses this pool")
		}
	}
}

func dangling(t *table, pool string, names []string) {
	if pool != "" && !slices.Contains(names, pool) {
		near := ""
		if n := nearest(pool, names); n != "" {
			near = " (did you mean " + n + "?)"
		}
		t.fail("pool", "there is no pool named %s%s", quote(pool), near)
	}
}

// A place is what one socket can listen on: the same address on two interfaces is two places.
type place struct {
	Address
	device string
}

// checkBinds refuses to listen on one address twice. The kernel would allow it, with SO_REUSEPORT, and give each
// half of the connections. Addresses that merely overlap, 0.0.0.0:80 and 127.0.0.1:80, are legal: the nearer wins.
func (r *reading) checkBinds() {
	first := map[place]*table{}
	for i, l := range r.cfg.Listeners {
		for _, b := range l.Bind {
			at := place{b, l.Interface}
			if other := first[at]; other != nil {
				r.listeners[i].fail("bind", "%s is bound at line %d already", b, other.lineOf("bind"))
				continue
			}
			first[at] = r.listeners[i]
		}
	}
}

// checkLoop refuses servers that are the listener's own address.
func (r *reading) checkLoop(l *Listener) {
	for i, p := range r.cfg.Pools {
		if !l.uses(p.Name) {
			continue
		}
		for j, s := range p.Servers {
			if b, ok := l.reachedBy(s.Address); ok {
				r.servers[i][j].fail("address", "%s is where the listener %s at line %d listens (%s): a loop", s.Address, l.Name, l.Line, b)
			}
		}
	}
}

func (l *Listener) uses(pool string) bool {
	return l.Pool == pool || slices.ContainsFunc(l.Routes, func(r Route) bool { return r.Pool == pool })
}

// reachedBy returns the bind address that a connect to a would reach, as far as the text tells.
func (l *Listener) reachedBy(a Address) (Address, bool) {
	for _, b := range l.Bind {
		if !a.IsZero() && (a == b || b.isAny() && a.isLoopback() && a.PortNumber() == b.PortNumber()) {
			return b, true
		}
	}
	return Address{}, false
}

// isAny reports whether a is 0.0.0.0 or [::].
func (a Address) isAny() bool { return a.IP.IsValid() && a.IP.Addr().IsUnspecified() }

func (a Address) isLoopback() bool {
	return a.Host == "localhost" || a.IP.IsValid() && a.IP.Addr().IsLoopback()
}

// Ports of servers that log, and count against the client, each connect that says nothing.
var chatty = map[uint16]string{3306: "MySQL", 5432: "PostgreSQL"}

func (r *reading) checkPool(p *Pool, t *table) {
	if p.Check == nil || p.Check.Type != "tcp" {
		return
	}
	for _, s := range p.Servers {
		port := s.Address.PortNumber()
		if p.Check.Port != 0 {
			port = p.Check.Port
		}
		if who := chatty[port]; who != "" {
			t.warn("check.type", "a tcp check on port %d makes %s log an aborted connection each time", port, who)
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
