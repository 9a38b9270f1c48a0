package cli

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sluice/conf"
)

const resolveTimeout = 5 * time.Second

// Tests have their own.
var (
	resolveAgain = 10 * time.Second // how often a name that did not resolve is tried
	lookupIP     = net.DefaultResolver.LookupNetIP
)

// resolve looks up the host names of cfg, all at once. A name that does not resolve is a warning: the addresses that it
// had last go on, and if it never had any its server stays down and is tried again.
func (b *balancer) resolve(cfg *conf.Config, last map[string][]string) map[string][]string {
	found := map[string][]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for host := range hosts(cfg) {
		all.Go(func() {
			addresses, err := lookup(host)
			if err != nil {
				b.log.Warn("name does not resolve", "address", host.String(), "error", err, "kept", last[host.String()])
				addresses = last[host.String()]
			}
			mu.Lock()
			defer mu.Unlock()
			found[host.String()] = addresses
		})
	}
	all.Wait()
	return found
}

func hosts(cfg *conf.Config) map[conf.Address]bool {
	all := map[conf.Address]bool{}
	for _, p := range cfg.Pools {
		for _, s := range p.Servers {
			if s.Address.Host != "" {
				all[s.Address] = true
			}
		}
	}
	return all
}

func lookup(host conf.Address) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), resolveTimeout)
	defer cancel()
	ips, err := lookupIP(ctx, "ip", host.Host)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip.Unmap(), host.Port).String())
	}
	slices.Sort(out) // answers rotate; servers should not
	return slices.Compact(out), nil
}

// unresolved says whether a name of the configuration has no address.
func (b *balancer) unresolved() bool {
	for _, addresses := range b.names {
		if len(addresses) == 0 {
			return true
		}
	}
	return false
}
