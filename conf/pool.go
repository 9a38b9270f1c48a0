package conf

import "net/netip"

// No connect is retried more often than this: each retry may take a whole connect_timeout.
const mostRetries = 15

// Weights and priorities. Sums of a whole pool's weights stay far below 64 bits.
const heaviest = 1_000_000

// read returns the tables of the servers.
func (p *Pool) read(t *table) []*table {
	p.Line = t.line
	t.require("name", wantName)
	read(t, "name", &p.Name, name)
	p.readOptional(t)
	p.readTLS(t)
	return p.readServers(t)
}

// readOptional reads what may stand in [defaults] as well.
func (p *Pool) readOptional(t *table) {
	p.readChoice(t)
	p.readConnect(t)
	p.readShortage(t)
	p.Outlier.read(t.sub("outlier"))
}

func (p *Pool) readChoice(t *table) {
	read(t, "balance", &p.Balance, balance)
	read(t, "hash_key", &p.HashKey, oneOf("source_ip", "source_ip_port", "sni"))
	read(t, "bounded_load", &p.BoundedLoad, loadBound)
	read(t, "slow_start", &p.SlowStart, timeout)
	read(t, "panic_threshold", &p.PanicThreshold, share)
}

func (p *Pool) readConnect(t *table) {
	read(t, "connect_timeout", &p.ConnectTimeout, timeout)
	read(t, "connect_retries", &p.ConnectRetries, count(0, mostRetries))
	read(t, "max_connecting", &p.MaxConnecting, limit)
	read(t, "source", &p.Source, list(ipAddress))
	read(t, "send_proxy", &p.SendProxy, oneOf("off", "v1", "v2"))
	read(t, "proxy_tlvs", &p.ProxyTLVs, list(oneOf("unique_id", "authority")))
}

func (p *Pool) readShortage(t *table) {
	read(t, "on_no_server", &p.OnNoServer, oneOf("close", "reset", "hold", "unlisten"))
	read(t, "max_queue", &p.MaxQueue, limit)
	read(t, "queue_timeout", &p.QueueTimeout, timeout)
	read(t, "on_down", &p.OnDown, oneOf("keep", "drain", "close"))
}

func (p *Pool) readTLS(t *table) {
	tls := defaultPoolTLS()
	tls.read(t.sub("tls"))
	if t.has("tls") {
		p.TLS = &tls
		t.refuseLater("tls", aTable)
	}
}

func (c *PoolTLS) read(t *table) {
	read(t, "server_name", &c.ServerName, text)
	read(t, "ca", &c.CA, text)
	read(t, "cert", &c.Cert, text)
	read(t, "key", &c.Key, text)
	read(t, "verify", &c.Verify, flag)
}

// readCheck fills in d, what [defaults.check] says. That alone does not give the pool a check.
func (p *Pool) readCheck(t *table, d Check) {
	d.read(t.sub("check"))
	if t.has("check") {
		d.derive()
		p.Check = &d
	}
}

// derive fills in what defaults to another key.
func (c *Check) derive() {
	if c.FastInterval == 0 {
		c.FastInterval = c.Interval
	}
	if c.DownInterval == 0 {
		c.DownInterval = c.Interval
	}
}

func (c *Check) read(t *table) {
	c.Line = t.line
	read(t, "type", &c.Type, oneOf("tcp", "tls", "http", "https", "send_expect", "redis", "postgres", "mysql", "exec"))
	c.readPace(t)
	read(t, "port", &c.Port, checkPort)
	read(t, "address", &c.Address, noneOr(ipAddress))
	read(t, "send_proxy", &c.SendProxy, oneOf("off", "v1", "v2"))
	c.readTalk(t)
	c.readDatabase(t)
	read(t, "command", &c.Command, list(text))
}

func (c *Check) readPace(t *table) {
	read(t, "interval", &c.Interval, period)
	read(t, "fast_interval", &c.FastInterval, period)
	read(t, "down_interval", &c.DownInterval, period)
	read(t, "timeout", &c.Timeout, period)
	read(t, "rise", &c.Rise, count(1, most))
	read(t, "fall", &c.Fall, count(1, most))
	read(t, "jitter", &c.Jitter, share)
	read(t, "initial_state", &c.InitialState, oneOf("checking", "up", "down"))
}

// readTalk reads the keys of send_expect and http.
func (c *Check) readTalk(t *table) {
	read(t, "send", &c.Send, anyText)
	read(t, "send_hex", &c.SendHex, text)
	read(t, "expect", &c.Expect, anyText)
	read(t, "expect_hex", &c.ExpectHex, text)
	read(t, "expect_regex", &c.ExpectRegex, anyText)
	read(t, "method", &c.Method, text)
	read(t, "path", &c.Path, text)
	read(t, "host", &c.Host, text)
	read(t, "expect_status", &c.ExpectStatus, text)
}

// readDatabase reads the keys of redis, postgres and mysql.
func (c *Check) readDatabase(t *table) {
	read(t, "user", &c.User, text)
	read(t, "password_file", &c.PasswordFile, text)
	read(t, "database", &c.Database, text)
	read(t, "tls", &c.TLS, flag)
	read(t, "role", &c.Role, oneOf("any", "primary", "replica"))
	read(t, "max_lag", &c.MaxLag, timeout)
}

func (o *Outlier) read(t *table) {
	read(t, "consecutive_failures", &o.ConsecutiveFailures, limit)
	read(t, "window", &o.Window, period)
	read(t, "ejection_time", &o.EjectionTime, period)
	read(t, "max_ejection_time", &o.MaxEjectionTime, period)
	read(t, "max_ejection_percent", &o.MaxEjectionPercent, count(0, 100))
}

func (p *Pool) readServers(t *table) []*table {
	servers := t.subs("servers")
	for _, in := range servers {
		s := defaultServer()
		s.read(in)
		p.Servers = append(p.Servers, s)
	}
	if len(p.Servers) == 0 {
		t.fail("servers", "missing, want at least one [[pools.servers]]")
	}
	return servers
}

func (s *Server) read(t *table) {
	s.Line = t.line
	t.require("address", wantServer)
	read(t, "address", &s.Address, serverAddress)
	s.Name, _ = t.values["address"].(string)
	read(t, "name", &s.Name, serverName(s.Name))
	read(t, "weight", &s.Weight, count(0, heaviest))
	read(t, "backup", &s.Backup, flag)
	read(t, "priority", &s.Priority, count(0, heaviest))
	read(t, "max_connections", &s.MaxConnections, limit)
	read(t, "state", &s.State, oneOf("ready", "drain", "maint"))
}

// serverName accepts a name, or the server's own address in its place.
func serverName(address string) parser[string] {
	return func(raw any) (string, error) {
		if raw == address && address != "" {
			return address, nil
		}
		return name(raw)
	}
}

// loadBound accepts how many times its fair share a server may carry; 0 is no bound.
func loadBound(raw any) (float64, error) {
	const loosest = 1000
	f, ok := number(raw)
	if !ok || f != 0 && !(f >= 1 && f <= loosest) {
		return 0, wrong(raw, "0 (not bounded) or a number from 1 to 1000")
	}
	return f, nil
}

func checkPort(raw any) (uint16, error) {
	n, err := count(0, 65535)(raw)
	return uint16(n), err
}

func ipAddress(raw any) (netip.Addr, error) {
	s, _ := raw.(string)
	a, ok := parseIP(s)
	if !ok {
		return a, wrong(raw, "an IP address")
	}
	return a, nil
}

// noneOr accepts "" for the zero value.
func noneOr[T any](parse parser[T]) parser[T] {
	return func(raw any) (T, error) {
		var zero T
		if raw == "" {
			return zero, nil
		}
		return parse(raw)
	}
}
