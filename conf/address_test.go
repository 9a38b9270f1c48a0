package conf

import (
	"strings"
	"testing"
)

func TestServerAddress(t *testing.T) {
	const brackets = `, want brackets around an IPv6 address, such as "[::1]:5432"`
	const port = ", want a port number from 1 to 65535 after the last colon"
	path := "/" + strings.Repeat("x", longestUnix-1)
	check(t, "serverAddress", serverAddress, []value{
		{"10.0.0.11:5432", "10.0.0.11:5432"}, {"[::1]:80", "[::1]:80"}, {"[fe80::1%eth0]:80", "[fe80::1%eth0]:80"},
		{"db:5432", "db:5432"}, {"db.example.com.:65535", "db.example.com.:65535"}, {"my_db-1:1", "my_db-1:1"}, {"localhost:80", "localhost:80"},
		{"unix:/run/x.sock", "unix:/run/x.sock"}, {"unix:" + path, "unix:" + path},

		{"10.0.0.11", `got "10.0.0.11", want ` + wantServer + "; the port is missing"},
		{"[::1]", `got "[::1]", want ` + wantServer + "; the port is missing"},
		{"/run/x.sock", `got "/run/x.sock", want ` + wantServer + ` (did you mean "unix:/run/x.sock"?)`},
		{"", `got "", want ` + wantServer + "; the port is missing"},
		{"::1:80", `got "::1:80"` + brackets}, {"::1", `got "::1"` + brackets}, {"2001:db8::1:5432", `got "2001:db8::1:5432"` + brackets},
		{"[::1:80", `got "[::1:80"` + brackets}, {"::1]:80", `got "::1]:80"` + brackets},
		{"[10.0.0.1]:80", `got "[10.0.0.1]:80", want ` + wantServer},
		{"[::ffff:10.0.0.1]:80", `got "[::ffff:10.0.0.1]:80", want the IPv4 address as such: "10.0.0.1:80"`},
		{"10.0.0.1:0", `got "10.0.0.1:0"` + port}, {"10.0.0.1:65536", `got "10.0.0.1:65536"` + port}, {"10.0.0.1:-1", `got "10.0.0.1:-1"` + port},
		{"10.0.0.1:postgres", `got "10.0.0.1:postgres"` + port}, {"10.0.0.1:", `got "10.0.0.1:"` + port}, {"10.0.0.1:080", `got "10.0.0.1:080"` + port},
		{"10.0.0.1:+80", `got "10.0.0.1:+80"` + port}, {"10.0.0.1: 80", `got "10.0.0.1: 80"` + port},
		{"256.1.1.1:80", `got "256.1.1.1:80", want ` + wantServer}, {"10.0.0:80", `got "10.0.0:80", want ` + wantServer},
		{":80", `got ":80", want ` + wantServer}, {"*:80", `got "*:80", want ` + wantServer}, {"a b:80", `got "a b:80", want ` + wantServer},
		{"-a:80", `got "-a:80", want ` + wantServer}, {"a..b:80", `got "a..b:80", want ` + wantServer},
		{"tcp://db:80", `got "tcp://db:80", want ` + wantServer},
		{"[fe80::1%a b]:80", `got "[fe80::1%a b]:80", want ` + wantServer},
		{"0.0.0.0:80", `got "0.0.0.0:80", want the address of one server`}, {"[ff02::1]:80", `got "[ff02::1]:80", want the address of one server`},
		{int64(80), "got 80, want " + wantServer},

		{"unix:x.sock", `got "unix:x.sock", want the absolute path of a socket, such as "unix:/run/x.sock"`},
		{"unix:", `got "unix:", want the absolute path of a socket, such as "unix:/run/x.sock"`},
		{"unix:/run/", `got "unix:/run/", want the absolute path of a socket, such as "unix:/run/x.sock"`},
		{"unix:@abstract", `got "unix:@abstract", want the absolute path of a socket, such as "unix:/run/x.sock"`},
		{"unix:/a\nb", `got "unix:/a\nb", want the absolute path of a socket, such as "unix:/run/x.sock"`},
		{"unix:" + path + "x", `got "unix:` + path[:55] + `...", want a path of at most 107 bytes, and this has 108`},
	})
}

func TestBindAddress(t *testing.T) {
	check(t, "bindAddress", bindAddress, []value{
		{"0.0.0.0:5432", "0.0.0.0:5432"}, {"[::]:5432", "[::]:5432"}, {"unix:/run/pg.sock", "unix:/run/pg.sock"},
		{":5432", `got ":5432", want ` + wantBind}, {"*:5432", `got "*:5432", want ` + wantBind},
		{"db:5432", `got "db:5432", want ` + wantBind + ", not a host name"},
	})
	check(t, "adminAddress", adminAddress, []value{{"", ""}, {"127.0.0.1:9060", "127.0.0.1:9060"}})
}

func TestAddressParts(t *testing.T) {
	for s, want := range map[string]struct {
		network string
		port    uint16
	}{
		"10.0.0.1:80": {"tcp", 80}, "db:81": {"tcp", 81}, "unix:/x": {"unix", 0},
	} {
		a, err := serverAddress(s)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, s, a.Network(), want.network)
		equal(t, s, a.PortNumber(), want.port)
		equal(t, s, a.IsZero(), false)
	}
	equal(t, "zero", Address{}.IsZero(), true)
}
