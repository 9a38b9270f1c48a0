package conf

import "strings"

// A loop is a server that leads back to the listener it serves: the first client would be passed round until the last
// descriptor is gone. It may take several hops: one listener's server is the next listener's address.

// A hop leads from one listener to another, by way of a server.
type hop struct {
	to  int // index of the listener
	via *table
	at  Address // of the server
}

// checkLoops refuses the servers that close a loop. Host names other than localhost, and addresses of this host other
// than those that are bound, cannot be told from the text; they are not followed.
func (r *reading) checkLoops() {
	hops := r.hops()
	for from, ways := range hops {
		for _, h := range ways {
			if leads(hops, h.to, from, map[int]bool{}) {
				h.via.fail("address", "%s is where the listener %s at line %d listens%s: a loop",
					h.at, r.cfg.Listeners[h.to].Name, r.cfg.Listeners[h.to].Line, r.detour(from, h.to))
			}
		}
	}
}

// detour says how a loop of several hops closes.
func (r *reading) detour(from, to int) string {
	if from == to {
		return ""
	}
	return ", whose servers lead back to " + r.cfg.Listeners[from].Name
}

// hops are the ways out of each listener that end at a listener.
func (r *reading) hops() [][]hop {
	byPort := map[uint16][]int{}
	for i, l := range r.cfg.Listeners {
		for _, b := range l.Bind {
			byPort[b.PortNumber()] = append(byPort[b.PortNumber()], i)
		}
	}
	out := make([][]hop, len(r.cfg.Listeners))
	for i := range r.cfg.Listeners {
		for _, p := range r.poolsOf(i) {
			out[i] = append(out[i], r.hopsOf(p, byPort)...)
		}
	}
	return out
}

func (r *reading) hopsOf(pool int, byPort map[uint16][]int) []hop {
	var out []hop
	for j, s := range r.cfg.Pools[pool].Servers {
		seen := -1 // a listener stands in the list once for each of its addresses, one after the other
		for _, i := range byPort[s.Address.PortNumber()] {
			if i != seen && r.cfg.Listeners[i].reachedBy(s.Address) {
				out = append(out, hop{to: i, via: r.servers[pool][j], at: s.Address})
				seen = i
			}
		}
	}
	return out
}

// leads reports whether hops lead from one listener to the other; from itself to itself they do.
func leads(hops [][]hop, from, to int, seen map[int]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for _, h := range hops[from] {
		if !seen[h.to] && leads(hops, h.to, to, seen) {
			return true
		}
	}
	return false
}

// reachedBy reports whether a connect to a reaches one of the addresses that l binds.
func (l *Listener) reachedBy(a Address) bool {
	for _, b := range l.Bind {
		if !a.IsZero() && (a == b || l.takes(b, a)) {
			return true
		}
	}
	return false
}

// takes reports whether b, an address with another text than a, takes what connects to a.
func (l *Listener) takes(b, a Address) bool {
	at, to := b.IP.Addr(), a.IP.Addr()
	switch {
	case !at.IsValid() || a.PortNumber() != b.PortNumber():
		return false
	case strings.EqualFold(a.Host, "localhost"):
		return at.IsLoopback() || at.IsUnspecified()
	case !at.IsUnspecified() || !to.IsLoopback():
		return false
	}
	return at.Is4() == to.Is4() || at.Is6() && !l.V6Only // [::] takes IPv4 as well, unless told not to
}
