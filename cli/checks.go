package cli

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"sluice/conf"
	"sluice/health"
	"sluice/pick"
)

// owner is who wants to know whether an address is up: a server of a pool.
type owner struct {
	name   string // of the pool
	pool   *pick.Pool
	server *pick.Server
}

// updateChecks has the checker look at the servers that the pools have now.
func (b *balancer) updateChecks() {
	var targets []health.Target
	for _, p := range b.cfg.Pools {
		pool := b.pools[p.Name]
		for _, s := range pool.Servers() {
			switch {
			case s.Removed || !dialable(s.Addr):
			case p.Check == nil:
				pool.SetUp(s.Server, true) // nobody says otherwise, or any more
			default:
				targets = append(targets, health.Target{Owner: owner{p.Name, pool, s.Server},
					Addr: checkAddress(s.Addr, p.Check), Settings: settings(p.Check)})
			}
		}
	}
	b.checker.Update(targets)
}

// dialable says whether an address is one, and not a name that did not resolve.
func dialable(addr string) bool {
	_, err := netip.ParseAddrPort(addr)
	return err == nil || strings.HasPrefix(addr, "unix:")
}

// checkAddress is where a server is checked: the check's own address or port where it has one.
func checkAddress(server string, c *conf.Check) string {
	ap, err := netip.ParseAddrPort(server)
	if err != nil { // a unix socket
		return server
	}
	ip, port := ap.Addr(), ap.Port()
	if c.Address.IsValid() {
		ip = c.Address
	}
	if c.Port != 0 {
		port = c.Port
	}
	return netip.AddrPortFrom(ip, port).String()
}

func settings(c *conf.Check) health.Settings {
	return health.Settings{Probe: health.TCP, Kind: c.Type, Interval: c.Interval, Fast: c.FastInterval,
		Down: c.DownInterval, Timeout: c.Timeout, Rise: c.Rise, Fall: c.Fall, Jitter: c.Jitter,
		Initial: initialState(c.InitialState)}
}

func initialState(word string) health.State {
	switch word {
	case "up":
		return health.Up
	case "down":
		return health.Down
	}
	return health.Checking
}

// checked passes a verdict on to the pool.
func (b *balancer) checked(t health.Target, up bool, since time.Time, why string) {
	o := t.Owner.(owner)
	o.pool.SetUp(o.server, up)
	usable := 0
	for _, s := range o.pool.Servers() {
		if s.Usable {
			usable++
		}
	}
	say := b.log.Info
	if !up {
		say = b.log.Warn
	}
	say("server "+upDown(up), "pool", o.name, "server", o.server.Name, "address", t.Addr, "why", why, "usable", strconv.Itoa(usable))
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}
