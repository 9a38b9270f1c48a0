package cli

import (
	"fmt"
	"log/slog"

	"sluice/conf"
	"sluice/health"
	"sluice/l4"
	"sluice/pick"
)

// A balancer is a running configuration: it ties the parts together and survives reloads.
type balancer struct {
	log    *slog.Logger
	cfg    *conf.Config
	limits limits
	pools  map[string]*pick.Pool // by name: counts, health and positions stay over a reload
	names  map[string][]string   // host:port of the file -> the addresses it resolved to last
	server *l4.Server

	checker *health.Checker
}

// build makes the parts of cfg and binds its listeners. Nothing serves yet.
func build(cfg *conf.Config, log *slog.Logger, lim limits, onEnd func(*l4.Ended)) (*balancer, error) {
	b := &balancer{log: log, limits: lim, pools: map[string]*pick.Pool{}, names: map[string][]string{}}
	b.names = b.resolve(cfg, nil)
	pools, err := b.configure(cfg, nil)
	if err != nil {
		return nil, err
	}
	server, err := l4.New(b.l4Config(cfg, pools, onEnd))
	if err != nil {
		return nil, err
	}
	b.server, b.cfg, b.pools = server, cfg, pools
	return b, nil
}

// change makes cfg, with what its names resolved to, the running configuration. If its listeners cannot be bound nothing
// changes.
func (b *balancer) change(cfg *conf.Config, names map[string][]string) (err error) {
	before := b.names
	b.names = names
	defer func() {
		if err != nil {
			b.names = before
		}
	}()
	pools, err := b.configure(cfg, b.pools)
	if err != nil {
		return err
	}
	if err := b.server.Apply(b.l4Config(cfg, pools, nil)); err != nil {
		return err
	}
	// Pools that stay change last: until here everything could still be refused. conf has checked what pick checks.
	for _, p := range cfg.Pools {
		if old := b.pools[p.Name]; old != nil {
			if err := old.Configure(b.poolConfig(&p)); err != nil {
				return fmt.Errorf("pool %s: %w", p.Name, err)
			}
		}
	}
	b.cfg, b.pools = cfg, pools
	b.updateChecks()
	return nil
}

// configure returns a pool for each of cfg's: the old one of that name, as it is, or a new one.
func (b *balancer) configure(cfg *conf.Config, old map[string]*pick.Pool) (map[string]*pick.Pool, error) {
	pools := map[string]*pick.Pool{}
	for _, p := range cfg.Pools {
		if pools[p.Name] = old[p.Name]; pools[p.Name] != nil {
			continue
		}
		pools[p.Name] = pick.NewPool()
		if err := pools[p.Name].Configure(b.poolConfig(&p)); err != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, err)
		}
	}
	return pools, nil
}

func (b *balancer) poolConfig(p *conf.Pool) pick.Config {
	policy, _, err := pick.ParsePolicy(p.Balance)
	if err != nil {
		panic("cli: conf let an unknown policy pass: " + err.Error())
	}
	cfg := pick.Config{Policy: policy, PanicThreshold: p.PanicThreshold, SlowStart: p.SlowStart, OnNew: l4.Attach}
	if p.Hashes() {
		cfg.BoundedLoad = p.BoundedLoad // it may stand in [defaults], for those pools that hash
	}
	for _, s := range p.Servers {
		cfg.Servers = append(cfg.Servers, b.serverConfigs(p, s)...)
	}
	return cfg
}

// serverConfigs is a server of the file as pick takes it; a host name is one server for each of its addresses.
func (b *balancer) serverConfigs(p *conf.Pool, s conf.Server) []pick.ServerConfig {
	one := pick.ServerConfig{Name: s.Name, Addr: s.Address.String(), Weight: s.Weight, Backup: s.Backup,
		Priority: s.Priority, MaxConnections: s.MaxConnections, State: operatorState(s.State), Initial: initial(p.Check)}
	if s.Address.Host == "" {
		return []pick.ServerConfig{one}
	}
	addresses := b.names[s.Address.String()]
	if len(addresses) == 0 {
		one.Initial = pick.Down // unresolved: shown, never picked
		return []pick.ServerConfig{one}
	}
	var all []pick.ServerConfig
	for _, a := range addresses {
		one.Name, one.Addr = s.Name+"@"+a, a
		all = append(all, one)
	}
	return all
}

func operatorState(word string) pick.OperatorState {
	switch word {
	case "drain":
		return pick.Drain
	case "maint":
		return pick.Maint
	}
	return pick.Ready
}

// initial is what a server is taken for until its first check.
func initial(c *conf.Check) pick.Observed {
	if c == nil {
		return pick.Up
	}
	switch c.InitialState {
	case "up":
		return pick.Up
	case "down":
		return pick.Down
	}
	return pick.Checking
}

func (b *balancer) l4Config(cfg *conf.Config, pools map[string]*pick.Pool, onEnd func(*l4.Ended)) l4.Config {
	out := l4.Config{Shards: b.limits.shards, MaxConnections: b.limits.maxConnections(cfg), MaxPipes: b.limits.pipes,
		ShutdownTimeout: cfg.Process.ShutdownTimeout, Splice: spliceMode(cfg.Process.Splice), Log: b.log, OnEnd: onEnd}
	relays := map[string]*l4.Pool{}
	for _, p := range cfg.Pools {
		relays[p.Name] = relay(&p, pools[p.Name])
	}
	for _, l := range cfg.Listeners {
		out.Services = append(out.Services, service(&l, relays[l.Pool]))
	}
	return out
}

func spliceMode(word string) l4.Splice {
	switch word {
	case "off":
		return l4.SpliceOff
	case "always":
		return l4.SpliceAlways
	}
	return l4.SpliceAuto
}

func relay(p *conf.Pool, pool *pick.Pool) *l4.Pool {
	return &l4.Pool{Name: p.Name, Pool: pool, ConnectTimeout: p.ConnectTimeout, ConnectRetries: p.ConnectRetries,
		ResetNoServer: p.OnNoServer == "reset", Key: hashKey(p),
		Timed: p.Balance == "least_time"}
}

func hashKey(p *conf.Pool) l4.HashKey {
	switch {
	case !p.Hashes():
		return l4.KeyNone
	case p.HashKey == "source_ip_port":
		return l4.KeySourceIPPort
	}
	return l4.KeySourceIP
}

func service(l *conf.Listener, pool *l4.Pool) *l4.Service {
	s := &l4.Service{Name: l.Name, Pool: pool, MaxConnections: l.MaxConnections,
		IdleTimeout: l.IdleTimeout, HalfClosedTimeout: l.HalfClosedTimeout, NoHalfClose: !l.HalfClose,
		MaxSessionDuration: l.MaxSessionDuration, MaxSessionJitter: l.MaxSessionJitter,
		Keepalive:   l4.Keepalive{Idle: l.Keepalive.Idle, Interval: l.Keepalive.Interval, Count: l.Keepalive.Count},
		UserTimeout: l.UserTimeout, Backlog: l.Backlog, DeferAccept: l.DeferAccept, FastOpen: l.FastOpen,
		V6Only: l.V6Only, Interface: l.Interface}
	for _, a := range l.Bind {
		s.Bind = append(s.Bind, a.String())
	}
	return s
}
