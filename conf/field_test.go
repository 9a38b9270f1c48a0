package conf

import (
	"net/netip"
	"os"
	"reflect"
	"testing"
	"time"
)

// Each key of every.toml has a value that no other key of its kind has near it, so a key that is read into the field of
// another shows here. Values whose feature is not built yet are read like the others before they are refused.
func TestEveryKeyGoesToItsField(t *testing.T) {
	text, err := os.ReadFile("testdata/every.toml")
	try(t, err)
	src := &source{file: "f"}
	values, ok := src.parse(text)
	if !ok {
		t.Fatal(src.errors)
	}
	got, want := src.config(values), everyConfig()
	forgetLines(reflect.ValueOf(got).Elem())
	for _, part := range []struct {
		name      string
		got, want any
	}{
		{"process", got.Process, want.Process},
		{"log", got.Log, want.Log},
		{"admin", got.Admin, want.Admin},
		{"listeners", got.Listeners[0], want.Listeners[0]},
		{"check", got.Pools[0].Check, want.Pools[0].Check},
		{"pools", got.Pools[0], want.Pools[0]},
	} {
		if !reflect.DeepEqual(part.got, part.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", part.name, part.got, part.want)
		}
	}
}

func everyConfig() Config {
	return Config{
		Process: Process{Shards: 4, MaxConnections: 1000, ShutdownTimeout: 30 * time.Second, User: "nobody", Splice: "always"},
		Log:     Log{Level: "debug", Format: "json", Output: "/var/log/sluice.log", Access: "/var/log/access.log"},
		Admin: Admin{
			Listen:    tcp("127.0.0.1:9060"),
			TokenFile: "/etc/sluice/token",
			TLS:       AdminTLS{Cert: "/c.pem", Key: "/k.pem", ClientCA: "/ca.pem"},
		},
		Listeners: []Listener{everyListener()},
		Pools:     []Pool{everyPool()},
	}
}

func tcp(s string) Address { return Address{IP: netip.MustParseAddrPort(s)} }

func everyListener() Listener {
	return Listener{
		Name: "pg", Pool: "pg",
		Bind:           []Address{tcp("0.0.0.0:5432"), tcp("[::1]:5432"), {Unix: "/run/pg.sock"}},
		MaxConnections: 100, MaxConnectionsPerIP: 10, MaxConnectionRate: 50, ConnectionBurst: 60,
		Access:        []string{"allow 10.0.0.0/8", "allow unix", "deny all"},
		AccessFile:    "/etc/sluice/rules",
		Shadow:        []string{"access", "limits"},
		ProxyProtocol: "optional", TrustedCIDRs: []string{"10.0.0.0/8", "unix"}, UntrustedProxy: "ignore",
		PrefaceTimeout: 4 * time.Second, StartTLS: "postgres",
		IdleTimeout: 30 * time.Minute, HalfClose: false, HalfClosedTimeout: 20 * time.Second,
		MaxSessionDuration: 24 * time.Hour, MaxSessionJitter: 0.2,
		BandwidthIn: 1 << 20, BandwidthOut: 1 << 16,
		Keepalive:   Keepalive{Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 4},
		UserTimeout: time.Minute, Backlog: 512, DeferAccept: time.Second, FastOpen: 16,
		V6Only: true, Interface: "eth0", Transparent: true,
		TLS: &ListenerTLS{
			Certificates: []Certificate{{"/c1.pem", "/k1.pem"}, {"/c2.pem", "/k2.pem"}},
			ClientCA:     "/ca.pem", MinVersion: "1.3", MaxHandshakes: 10,
		},
		Routes: []Route{{
			SNI: []string{"db.example.com", "*.apps.example.com"}, ALPN: []string{"postgresql"}, Pool: "pg",
			Source: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32")},
		}},
	}
}

func everyPool() Pool {
	return Pool{
		Name: "pg", Balance: "ring_hash", HashKey: "sni", BoundedLoad: 1.25,
		ConnectTimeout: 2 * time.Second, ConnectRetries: 3, MaxConnecting: 20,
		OnNoServer: "hold", MaxQueue: 100, QueueTimeout: 4 * time.Second, PanicThreshold: 0.5,
		SendProxy: "v2", ProxyTLVs: []string{"unique_id", "authority"}, Source: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
		SlowStart: 10 * time.Second, OnDown: "drain",
		TLS:   &PoolTLS{ServerName: "db", CA: "/ca.pem", Cert: "/c.pem", Key: "/k.pem", Verify: false},
		Check: everyCheck(),
		Outlier: Outlier{
			ConsecutiveFailures: 5, Window: 20 * time.Second,
			EjectionTime: 30 * time.Second, MaxEjectionTime: 10 * time.Minute, MaxEjectionPercent: 30,
		},
		Servers: []Server{{
			Name: "pg1", Address: tcp("10.0.0.11:5432"), Weight: 5, Backup: true, Priority: 1, MaxConnections: 50, State: "drain",
		}},
	}
}

func everyCheck() *Check {
	return &Check{
		Type: "postgres", Interval: 4 * time.Second, FastInterval: time.Second, DownInterval: 8 * time.Second,
		Timeout: 2 * time.Second, Rise: 3, Fall: 4, Jitter: 0.2, InitialState: "up",
		Port: 5433, Address: netip.MustParseAddr("10.0.0.9"), SendProxy: "v1",
		Send: "PING\r\n", SendHex: "00ff", Expect: "+PONG", ExpectHex: "2b", ExpectRegex: `^\+`,
		Method: "HEAD", Path: "/health", Host: "db.example.com", ExpectStatus: "200",
		User: "check", PasswordFile: "/etc/sluice/password", Database: "postgres",
		TLS: true, Role: "primary", MaxLag: 10 * time.Second, Command: []string{"/bin/check", "arg"},
	}
}

func TestBurstIsTheRateUnlessSet(t *testing.T) {
	for _, row := range []struct{ rate, burst, want int }{{5, 0, 5}, {5, 9, 9}, {0, 0, 0}} {
		l := Listener{MaxConnectionRate: row.rate, ConnectionBurst: row.burst}
		l.derive()
		equal(t, "burst", l.ConnectionBurst, row.want)
	}
}
