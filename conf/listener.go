package conf

import (
	"net/netip"
	"strings"
	"time"
)

// What the kernel takes: seconds in 15 bits for keepalive, 7 bits of probes, milliseconds in 31 bits.
const (
	longestKeepalive   = 32767 * time.Second
	mostProbes         = 127
	longestUserTimeout = 24 * 24 * time.Hour
	longestDeferAccept = time.Hour
	longestDevice      = 15
)

// read returns the tables of the routes.
func (l *Listener) read(t *table) []*table {
	l.Line = t.line
	t.require("name", wantName)
	read(t, "name", &l.Name, name)
	t.require("bind", wantBind)
	read(t, "bind", &l.Bind, oneOrMore(bindAddress, wantBind))
	read(t, "pool", &l.Pool, name)
	l.readOptional(t)
	l.readTLS(t)
	return l.readRoutes(t)
}

// readOptional reads what may stand in [defaults] as well.
func (l *Listener) readOptional(t *table) {
	l.readLimits(t)
	l.readAccess(t)
	l.readPreface(t)
	l.readSession(t)
	l.readSocket(t)
}

func (l *Listener) readLimits(t *table) {
	read(t, "max_connections", &l.MaxConnections, limit)
	read(t, "max_connections_per_ip", &l.MaxConnectionsPerIP, limit)
	read(t, "max_connection_rate", &l.MaxConnectionRate, limit)
	read(t, "connection_burst", &l.ConnectionBurst, limit)
	read(t, "bandwidth_in", &l.BandwidthIn, size)
	read(t, "bandwidth_out", &l.BandwidthOut, size)
}

func (l *Listener) readAccess(t *table) {
	read(t, "access", &l.Access, list(accessRule))
	read(t, "access_file", &l.AccessFile, text)
	read(t, "shadow", &l.Shadow, list(oneOf("access", "limits")))
}

func (l *Listener) readPreface(t *table) {
	read(t, "proxy_protocol", &l.ProxyProtocol, oneOf("off", "optional", "required"))
	read(t, "trusted_cidrs", &l.TrustedCIDRs, list(cidrOrUnix))
	read(t, "untrusted_proxy", &l.UntrustedProxy, oneOf("reject", "ignore"))
	read(t, "preface_timeout", &l.PrefaceTimeout, timeout)
	read(t, "starttls", &l.StartTLS, oneOf("", "postgres"))
}

func (l *Listener) readSession(t *table) {
	read(t, "idle_timeout", &l.IdleTimeout, timeout)
	read(t, "half_close", &l.HalfClose, flag)
	read(t, "half_closed_timeout", &l.HalfClosedTimeout, timeout)
	read(t, "max_session_duration", &l.MaxSessionDuration, timeout)
	read(t, "max_session_jitter", &l.MaxSessionJitter, share)
}

func (l *Listener) readSocket(t *table) {
	l.Keepalive.read(t.sub("keepalive"))
	read(t, "user_timeout", &l.UserTimeout, userTimeout)
	read(t, "backlog", &l.Backlog, limit)
	read(t, "defer_accept", &l.DeferAccept, seconds(longestDeferAccept))
	read(t, "fast_open", &l.FastOpen, limit)
	read(t, "v6_only", &l.V6Only, flag)
	read(t, "interface", &l.Interface, device)
	read(t, "transparent", &l.Transparent, flag)
}

func (k *Keepalive) read(t *table) {
	read(t, "idle", &k.Idle, seconds(longestKeepalive))
	read(t, "interval", &k.Interval, someSeconds(longestKeepalive))
	read(t, "count", &k.Count, count(1, mostProbes))
}

func (l *Listener) readTLS(t *table) {
	tls, in := defaultListenerTLS(), t.sub("tls")
	tls.read(in)
	if t.has("tls") {
		l.TLS = &tls
		t.refuseLater("tls", aTable)
	}
}

func (c *ListenerTLS) read(t *table) {
	for _, in := range t.subs("certificates") {
		var one Certificate
		one.read(in)
		c.Certificates = append(c.Certificates, one)
	}
	read(t, "client_ca", &c.ClientCA, text)
	read(t, "min_version", &c.MinVersion, oneOf("1.2", "1.3"))
	read(t, "max_handshakes", &c.MaxHandshakes, limit)
}

func (c *Certificate) read(t *table) {
	t.require("cert", "the path of a certificate")
	read(t, "cert", &c.Cert, text)
	t.require("key", "the path of its key")
	read(t, "key", &c.Key, text)
}

func (l *Listener) readRoutes(t *table) []*table {
	routes := t.subs("routes")
	for _, in := range routes {
		var r Route
		r.read(in)
		l.Routes = append(l.Routes, r)
	}
	if t.has("routes") {
		t.refuseLater("routes", aTable)
	}
	return routes
}

// derive fills in what defaults to another key.
func (l *Listener) derive() {
	if l.ConnectionBurst == 0 {
		l.ConnectionBurst = l.MaxConnectionRate
	}
}

func (r *Route) read(t *table) {
	r.Line = t.line
	read(t, "sni", &r.SNI, list(text))
	read(t, "alpn", &r.ALPN, list(text))
	read(t, "source", &r.Source, list(cidr))
	t.require("pool", "the name of a pool")
	read(t, "pool", &r.Pool, name)
}

func userTimeout(raw any) (time.Duration, error) {
	d, err := timeout(raw)
	if err == nil && d > longestUserTimeout {
		err = wrong(raw, `"0s" (none) or from 1ms to 576h`)
	}
	return d, err
}

func device(raw any) (string, error) {
	s, err := text(raw)
	if err == nil && (len(s) > longestDevice || strings.ContainsAny(s, "/ ")) {
		err = wrong(raw, "the name of a network interface")
	}
	return s, err
}

const wantRule = `a rule such as "allow 10.0.0.0/8", "allow unix" or "deny all"`

func accessRule(raw any) (string, error) {
	s, _ := raw.(string)
	verb, whom, _ := strings.Cut(s, " ")
	if verb != "allow" && verb != "deny" {
		return "", wrong(raw, wantRule)
	}
	if _, err := cidrOrUnix(whom); err != nil && whom != "all" {
		return "", wrong(raw, wantRule)
	}
	return s, nil
}

func cidrOrUnix(raw any) (string, error) {
	s, _ := raw.(string)
	if _, err := cidr(raw); err != nil && s != "unix" {
		return "", wrong(raw, `a network such as "10.0.0.0/8", or "unix"`)
	}
	return s, nil
}

// cidr accepts a network, or an address for the network of that one address.
func cidr(raw any) (netip.Prefix, error) {
	s, _ := raw.(string)
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, wrong(raw, `a network such as "10.0.0.0/8"`)
	}
	return p, nil
}
