package conf

import (
	"fmt"
	"strings"
	"testing"
)

// A message test is a file and all that is said of it, word for word.
type message struct {
	name string
	text string
	want []string // errors; none: the file is accepted
	warn []string
}

func (m message) test(t *testing.T) {
	_, warnings, err := Parse("f", []byte(m.text))
	got := []string{}
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	same(t, "error", got, m.want)
	said := []string{}
	for _, w := range warnings {
		said = append(said, w.String())
	}
	same(t, "warning", said, m.warn)
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := at(got, i), at(want, i)
		if g != w {
			t.Errorf("%s %d:\n got %s\nwant %s", what, i, g, w)
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(nothing)"
}

func run(t *testing.T, rows []message) {
	for _, row := range rows {
		t.Run(row.name, row.test)
	}
}

// file is a file that is accepted, with lines added to its listener (from line 5 on), pool or server.
func file(listener, pool, server string) string {
	return `[[listeners]]
name = "l"
bind = "127.0.0.1:80"
pool = "p"
` + listener + `
[[pools]]
name = "p"
` + pool + `
[[pools.servers]]
address = "10.0.0.1:80"
` + server + `
`
}

func inListener(lines string) string { return file(lines, "", "") }
func inPool(lines string) string     { return file("", lines, "") }
func inServer(lines string) string   { return file("", "", lines) }

const (
	balances = "one of round_robin, weighted_round_robin, interleaved_wrr, random, weighted_random, two_choices, " +
		"least_conn, least_time, source_hash, ring_hash, rendezvous, first"
	aDuration = `a duration with a unit such as "5s" or "1h30m"`
)

func TestAccepted(t *testing.T) {
	run(t, []message{
		{name: "as it is", text: file("", "", "")},
		{name: "CRLF", text: strings.ReplaceAll(file("", "", ""), "\n", "\r\n")},
		{name: "tabs", text: strings.ReplaceAll(file("", "", ""), " = ", "\t=\t")},
		{name: "no line end at the end", text: strings.TrimSpace(file("", "", ""))},
		{name: "a pool in maintenance", text: inServer(`state = "maint"`)},
		{name: "a name like a table", text: strings.ReplaceAll(file("", "", ""), `"p"`, `"listeners.l"`)},
		{name: "all in one line", text: `listeners = [{name="l", bind="127.0.0.1:80", pool="p"}]` + "\n" +
			`pools = [{name="p", servers=[{address="10.0.0.1:80"}]}]`},
	})
}

func TestUnknownKeys(t *testing.T) {
	run(t, []message{
		{name: "misspelt", text: inListener("max_con = 10"),
			want: []string{"f:5: listeners.l.max_con: unknown key (did you mean max_connections?)"}},
		{name: "misspelt table", text: file("", "", "") + "[[listenr]]",
			want: []string{"f:12: listenr: unknown key (did you mean listeners?)"}},
		{name: "wrong table", text: inPool(`idle_timeout = "5s"`),
			want: []string{"f:8: pools.p.idle_timeout: unknown key: it belongs in [[listeners]]"}},
		{name: "wrong table, of a check", text: inServer("fall = 5"),
			want: []string{"f:11: pools.p.servers[0].fall: unknown key: it belongs in [pools.check]"}},
		{name: "at the top", text: "shards = 1\n" + file("", "", ""),
			want: []string{"f:1: shards: unknown key: it belongs in [process]"}},
		{name: "a table in a table", text: "[process.log]\n" + file("", "", ""),
			want: []string{"f:1: process.log: unknown key: it belongs in the top level of the file"}},
		{name: "wrong case", text: inListener(`Idle_Timeout = "5s"`),
			want: []string{"f:5: listeners.l.Idle_Timeout: unknown key (did you mean idle_timeout?)"}},
		{name: "dashes", text: inListener(`idle-timeout = "5s"`),
			want: []string{"f:5: listeners.l.idle-timeout: unknown key (did you mean idle_timeout?)"}},
		{name: "nothing like it", text: inPool("[pools.outlier]\nqqqqqq = 1"),
			want: []string{"f:9: pools.p.outlier.qqqqqq: unknown key: want one of consecutive_failures, window, ejection_time, max_ejection_time, max_ejection_percent"}},
		{name: "control characters", text: inListener(`"a\nb\u001b[31m" = 1`),
			want: []string{`f:5: listeners.l."a\nb\x1b[31m": unknown key: want one of ` + strings.Join(listenerKeys(), ", ")}},
		{name: "in defaults", text: file("", "", "") + "[defaults]\nweight = 1\nidle_timout = \"1s\"",
			want: []string{
				"f:13: defaults.weight: unknown key: it belongs in [[pools.servers]]",
				"f:14: defaults.idle_timout: unknown key (did you mean idle_timeout?)"}},
		{name: "deep", text: inListener(`keepalive = { idle = "5s", Count = 1 }`),
			want: []string{"f:5: listeners.l.keepalive.Count: unknown key (did you mean count?)"}},
		{name: "all at once, by line", text: file("a1 = 1\nbackog = 1", "bind = 1", "x = 1\nwheight = 3"),
			want: []string{
				"f:5: listeners.l.a1: unknown key: want one of " + strings.Join(listenerKeys(), ", "),
				"f:6: listeners.l.backog: unknown key (did you mean backlog?)",
				"f:9: pools.p.bind: unknown key: it belongs in [[listeners]]",
				"f:12: pools.p.servers[0].x: unknown key: want one of address, name, weight, backup, priority, max_connections, state",
				"f:13: pools.p.servers[0].wheight: unknown key (did you mean weight?)"}},
	})
}

func listenerKeys() []string {
	for _, table := range vocabulary() {
		if table.title() == "[[listeners]]" {
			return table.known
		}
	}
	return nil
}

func TestDuplicates(t *testing.T) {
	listener := "[[listeners]]\nname = \"l\"\nbind = \"127.0.0.1:81\"\npool = \"p\"\n"
	pool := "[[pools]]\nname = \"p\"\nservers = [{ address = \"10.0.0.2:80\" }]\n"
	run(t, []message{
		{name: "listeners", text: file("", "", "") + listener,
			want: []string{`f:13: listeners.l.name: "l" is the name of the listener at line 2 already`}},
		{name: "pools", text: file("", "", "") + pool,
			want: []string{`f:13: pools.p.name: "p" is the name of the pool at line 7 already`}},
		{name: "three", text: file("", "", "") + pool + pool,
			want: []string{
				`f:13: pools.p.name: "p" is the name of the pool at line 7 already`,
				`f:16: pools.p.name: "p" is the name of the pool at line 7 already`}},
		{name: "servers", text: inServer("name = \"a\"\n[[pools.servers]]\nname = \"a\"\naddress = \"10.0.0.2:80\""),
			want: []string{`f:13: pools.p.servers.a.name: "a" is the name of the server at line 11 already`}},
		{name: "servers without a name", text: inServer("[[pools.servers]]\naddress = \"10.0.0.1:80\""),
			want: []string{`f:11: pools.p.servers[1].name: "10.0.0.1:80" is the name of the server at line 9 already`}},
		{name: "servers of one address under two names", text: inServer("[[pools.servers]]\nname = \"b\"\naddress = \"10.0.0.1:80\"")},
		{name: "one name in two kinds", text: strings.ReplaceAll(file("", "", ""), `"l"`, `"p"`)},
		{name: "table", text: "[log]\nlevel = \"info\"\n[process]\n[log]\n",
			want: []string{"f:4: Key 'log' has already been defined (at line 1)"}},
		{name: "key", text: "[log]\nlevel = \"info\"\nlevel = \"warn\"",
			want: []string{"f:3: Key 'log.level' has already been defined (at line 2)"}},
		{name: "table after its parts", text: inListener("keepalive.idle = \"5s\"\nkeepalive = { count = 1 }"),
			want: []string{"f:6: Key 'listeners.keepalive' has already been defined (at line 5)"}},
		{name: "table after its parts, which the library lets pass", text: "log.level = \"warn\"\nlog = 1\n" + file("", "", ""),
			want: []string{"f:2: log: defined at line 1 already"}},
	})
}

func TestReferences(t *testing.T) {
	spare := "[[pools]]\nname = \"spare\"\nservers = [{ address = \"10.0.0.2:80\" }]\n"
	run(t, []message{
		{name: "dangling", text: strings.Replace(file("", "", ""), `pool = "p"`, `pool = "q"`, 1),
			want: []string{`f:4: listeners.l.pool: there is no pool named "q"`},
			warn: []string{"f:7: pools.p.name: no listener uses this pool"}},
		{name: "dangling, near", text: strings.Replace(file("", "", "")+spare, `pool = "p"`, `pool = "spar"`, 1),
			want: []string{`f:4: listeners.l.pool: there is no pool named "spar" (did you mean spare?)`},
			warn: []string{"f:7: pools.p.name: no listener uses this pool", "f:13: pools.spare.name: no listener uses this pool"}},
		{name: "unused", text: file("", "", "") + spare,
			warn: []string{"f:13: pools.spare.name: no listener uses this pool"}},
		{name: "other case", text: strings.Replace(file("", "", ""), `pool = "p"`, `pool = "P"`, 1),
			want: []string{`f:4: listeners.l.pool: there is no pool named "P" (did you mean p?)`},
			warn: []string{"f:7: pools.p.name: no listener uses this pool"}},
	})
}

func TestMissing(t *testing.T) {
	run(t, []message{
		{name: "everything", text: "", want: []string{
			"f: listeners: missing, want at least one [[listeners]]",
			"f: pools: missing, want at least one [[pools]]"}},
		{name: "empty lists", text: "listeners = []\npools = []", want: []string{
			"f:1: listeners: missing, want at least one [[listeners]]",
			"f:2: pools: missing, want at least one [[pools]]"}},
		{name: "not lists", text: "[listeners]\nname = \"l\"\n[pools]\n", want: []string{
			"f:1: listeners: got a table, want one or more [[listeners]] tables",
			"f:3: pools: got a table, want one or more [[pools]] tables"}},
		{name: "lists of something else", text: "listeners = [1]\npools = [\"p\"]\n", want: []string{
			"f:1: listeners: got a list, want one or more [[listeners]] tables",
			"f:2: pools: got a list, want one or more [[pools]] tables"}},
		{name: "a value for a table", text: file("", "", "") + "[[log]]\n", want: []string{
			"f:12: log: got a list, want a table"}},
		{name: "required keys", text: "[[listeners]]\n[[pools]]\n[[pools.servers]]\n", want: []string{
			"f:1: listeners[0].name: missing, want " + wantName,
			"f:1: listeners[0].bind: missing, want " + wantBind,
			"f:1: listeners[0].pool: missing, want the name of a pool",
			"f:2: pools[0].name: missing, want " + wantName,
			"f:3: pools[0].servers[0].address: missing, want " + wantServer}},
		{name: "servers", text: "[[listeners]]\nname = \"l\"\nbind = \"127.0.0.1:80\"\npool = \"p\"\n[[pools]]\nname = \"p\"\n",
			want: []string{"f:5: pools.p.servers: missing, want at least one [[pools.servers]]"}},
		{name: "bind", text: strings.Replace(file("", "", ""), `"127.0.0.1:80"`, "[]", 1),
			want: []string{"f:3: listeners.l.bind: got an empty list, want " + wantBind}},
	})
}

func TestNotSupportedYet(t *testing.T) {
	run(t, []message{
		{name: "a key", text: inListener("bandwidth_in = 1"), want: []string{"f:5: listeners.l.bandwidth_in: not supported yet"}},
		{name: "off", text: inListener("bandwidth_in = 0\nproxy_protocol = \"off\"\naccess = []")},
		{name: "wrong as well", text: inListener("bandwidth_in = -1"),
			want: []string{`f:5: listeners.l.bandwidth_in: got -1, want a number of bytes or a size such as "64KiB", "10MiB" or "1GiB"`}},
		{name: "a word", text: inPool(`on_no_server = "hold"`), want: []string{"f:8: pools.p.on_no_server: not supported yet"}},
		{name: "another word", text: inPool(`on_no_server = "reset"`)},
		{name: "a table", text: inPool("[pools.tls]"), want: []string{"f:8: pools.p.tls: not supported yet"}},
		{name: "a check", text: inPool("[pools.check]\ntype = \"redis\""), want: []string{"f:9: pools.p.check.type: not supported yet"}},
		{name: "in defaults, once", text: file("", "", "") + "[defaults]\nmax_connecting = 3",
			want: []string{"f:13: defaults.max_connecting: not supported yet"}},
		{name: "admin", text: file("", "", "") + "[admin]\nlisten = \"127.0.0.1:9060\"",
			want: []string{"f:13: admin.listen: not supported yet"}},
	})
}

func TestBinds(t *testing.T) {
	second := func(bind, more string) string {
		return file("", "", "") + "[[listeners]]\nname = \"m\"\npool = \"p\"\nbind = " + bind + "\n" + more
	}
	run(t, []message{
		{name: "twice", text: second(`"127.0.0.1:80"`, ""),
			want: []string{"f:15: listeners.m.bind: 127.0.0.1:80 is bound at line 3 already"}},
		{name: "twice in one list", text: second(`["127.0.0.1:81", "127.0.0.1:81"]`, ""),
			want: []string{"f:15: listeners.m.bind: 127.0.0.1:81 is bound at line 15 already"}},
		{name: "twice, spelt otherwise", text: second(`["[::1]:81", "[0:0::0:1]:81"]`, ""),
			want: []string{"f:15: listeners.m.bind: [::1]:81 is bound at line 15 already"}},
		{name: "one path twice", text: second(`["unix:/run/a.sock", "unix:/run/x/..//a.sock"]`, ""),
			want: []string{"f:15: listeners.m.bind: unix:/run/a.sock is bound at line 15 already"}},
		{name: "on an interface too", text: second(`"127.0.0.1:80"`, `interface = "eth1"`),
			want: []string{"f:15: listeners.m.bind: 127.0.0.1:80 is bound at line 3 already"}},
		{name: "overlapping", text: second(`"0.0.0.0:80"`, ""),
			want: []string{"f:15: listeners.m.bind: 0.0.0.0:80 and 127.0.0.1:80, bound at line 3, overlap"}},
		{name: "dual stack over both", text: second(`["0.0.0.0:81", "[::]:81"]`, ""),
			want: []string{"f:15: listeners.m.bind: [::]:81 and 0.0.0.0:81, bound at line 15, overlap"}},
		{name: "each stack by itself", text: second(`["0.0.0.0:81", "[::]:81"]`, "v6_only = true")},
		{name: "a host name", text: second(`"localhost:81"`, ""),
			want: []string{`f:15: listeners.m.bind: got "localhost:81", want ` + wantBind + ", not a host name"}},
		{name: "elements by line", text: second("[\n  \"127.0.0.1:81\",\n  \"127.0.0.1:0\",\n  \"::1:82\",\n]", ""),
			want: []string{
				`f:17: listeners.m.bind[1]: got "127.0.0.1:0", want a port number from 1 to 65535 after the last colon`,
				`f:18: listeners.m.bind[2]: got "::1:82", want brackets around an IPv6 address, such as "[::1]:5432"`}},
	})
}

func TestLoops(t *testing.T) {
	one := func(bind, more, server string) string {
		text := strings.Replace(file(more, "", ""), "127.0.0.1:80", bind, 1)
		return strings.Replace(text, "10.0.0.1:80", server, 1)
	}
	loop := func(server string) []string {
		return []string{"f:10: pools.p.servers[0].address: " + server + " is where the listener l at line 1 listens: a loop"}
	}
	run(t, []message{
		{name: "itself", text: one("10.1.1.1:80", "", "10.1.1.1:80"), want: loop("10.1.1.1:80")},
		{name: "unix", text: one("unix:/run/a", "", "unix:/run/a"), want: loop("unix:/run/a")},
		{name: "by 0.0.0.0", text: one("0.0.0.0:80", "", "127.0.0.1:80"), want: loop("127.0.0.1:80")},
		{name: "by 0.0.0.0 and localhost", text: one("0.0.0.0:80", "", "localhost:80"), want: loop("localhost:80")},
		{name: "by 127.0.0.1 and localhost", text: one("127.0.0.1:80", "", "LOCALHOST:80"), want: loop("LOCALHOST:80")},
		{name: "by 127.0.0.2", text: one("127.0.0.1:80", "", "127.0.0.2:80")},
		{name: "by [::]", text: one("[::]:80", "", "[::1]:80"), want: loop("[::1]:80")},
		{name: "by [::] and IPv4", text: one("[::]:80", "", "127.0.0.1:80"), want: loop("127.0.0.1:80")},
		{name: "by [::] without IPv4", text: one("[::]:80", "v6_only = true", "127.0.0.1:80")},
		{name: "by 0.0.0.0 without IPv6", text: one("0.0.0.0:80", "", "[::1]:80")},
		{name: "another port", text: one("0.0.0.0:80", "", "127.0.0.1:81")},
		{name: "another unix path", text: one("unix:/run/a", "", "unix:/run/b")},
		{name: "another host", text: one("0.0.0.0:80", "", "10.0.0.1:80")},
		{name: "in two hops", text: chain("127.0.0.1:2", "127.0.0.1:1"), want: []string{
			"f:6: pools.a.servers[0].address: 127.0.0.1:2 is where the listener b at line 8 listens, whose servers lead back to a: a loop",
			"f:13: pools.b.servers[0].address: 127.0.0.1:1 is where the listener a at line 1 listens, whose servers lead back to b: a loop"}},
		{name: "a chain without a loop", text: chain("127.0.0.1:2", "127.0.0.1:3")},
	})
}

// chain is a listener a on port 1 and b on port 2, of one server each.
func chain(a, b string) string {
	text := ""
	for _, x := range [][3]string{{"a", "1", a}, {"b", "2", b}} {
		text += fmt.Sprintf("[[listeners]]\nname = %q\nbind = \"127.0.0.1:%s\"\npool = %q\n", x[0], x[1], x[0])
		text += fmt.Sprintf("[[pools]]\nservers = [{ address = %q }]\nname = %q\n", x[2], x[0])
	}
	return text
}

func TestWarnings(t *testing.T) {
	flood := func(port, who string) []string {
		return []string{"f:8: pools.p.check: a tcp check on port " + port + " makes " + who + " log an aborted connection each time"}
	}
	run(t, []message{
		{name: "PostgreSQL", text: inPool("check = { port = 5432 }"), warn: flood("5432", "PostgreSQL")},
		{name: "MySQL", text: strings.Replace(inPool("check = {}"), "10.0.0.1:80", "10.0.0.1:3306", 1), warn: flood("3306", "MySQL")},
		{name: "port of the check", text: strings.Replace(inPool("check = { port = 80 }"), "10.0.0.1:80", "10.0.0.1:3306", 1)},
		{name: "no check", text: strings.Replace(file("", "", ""), "10.0.0.1:80", "10.0.0.1:3306", 1)},
		{name: "hash_key without a hash", text: inPool(`hash_key = "source_ip"`),
			warn: []string{`f:8: pools.p.hash_key: has no effect with balance = "round_robin"`}},
		{name: "hash_key with a hash", text: inPool("hash_key = \"source_ip_port\"\nbalance = \"rendezvous\"\nbounded_load = 1.25")},
	})
}

func TestBalance(t *testing.T) {
	run(t, []message{
		{name: "near", text: inPool(`balance = "leastcon"`),
			want: []string{`f:8: pools.p.balance: got "leastcon", want ` + balances + ` (did you mean least_conn?)`}},
		{name: "not text", text: inPool(`balance = 1`), want: []string{`f:8: pools.p.balance: got 1, want ` + balances}},
		{name: "not near", text: inPool(`balance = "fastest"`), want: []string{`f:8: pools.p.balance: got "fastest", want ` + balances}},
	})
	for word, want := range map[string]string{
		"round_robin": "round_robin", "roundrobin": "round_robin", "static-rr": "weighted_round_robin", "smooth_wrr": "weighted_round_robin",
		"leastconn": "least_conn", "least-conn": "least_conn", "least_conn": "least_conn", "source": "source_hash", "random": "random",
		"first": "first", "hash": "source_hash", "ip_hash": "source_hash", "least_time": "least_time", "two_choices": "two_choices",
	} {
		c := parse(t, inPool(`balance = "`+word+`"`))
		equal(t, word, c.Pools[0].Balance, want)
	}
}

func TestDescriptors(t *testing.T) {
	c := parse(t, "[process]\nmax_connections = 501\n"+inListener("max_connections = 600"))
	var got []string
	for _, w := range c.CheckDescriptors(1000) {
		got = append(got, w.String())
	}
	same(t, "warning", got, []string{
		"f:1: process.max_connections: got 501, but 1000 descriptors carry 500 sessions at most",
		"f:3: listeners.l.max_connections: got 600, but 1000 descriptors carry 500 sessions at most"})
	if more := c.CheckDescriptors(1200); len(more) > 0 {
		t.Errorf("1200 descriptors carry 600 sessions, and there is %v", more)
	}
}
