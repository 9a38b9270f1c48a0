package conf

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// A value test is what the TOML library found, and what a parser makes of it: the value, or the sentence.
type value struct {
	raw  any
	want string
}

func check[T any](t *testing.T, name string, parse parser[T], rows []value) {
	for _, row := range rows {
		got, err := parse(row.raw)
		said := fmt.Sprint(got)
		if err != nil {
			said = err.Error()
		}
		if said != row.want {
			t.Errorf("%s(%#v):\n got %s\nwant %s", name, row.raw, said, row.want)
		}
	}
}

func TestDurations(t *testing.T) {
	const ask = `, want a duration with a unit such as "5s" or "1h30m"`
	check(t, "timeout", timeout, []value{
		{"5s", "5s"}, {"1h30m", "1h30m0s"}, {"250ms", "250ms"}, {"0s", "0s"}, {"1.5s", "1.5s"}, {"87600h", "87600h0m0s"},
		{int64(5), "got 5" + ask}, {"5", `got "5"` + ask}, {"0", `got "0"` + ask}, {"", `got ""` + ask}, {"5 s", `got "5 s"` + ask},
		{"1d", `got "1d"` + ask}, {"s", `got "s"` + ask}, {1.5, "got 1.5" + ask}, {true, "got true" + ask}, {[]any{}, "got a list" + ask},
		{"-5s", `got "-5s"` + ask + ", not below zero"}, {"+5s", "5s"},
		{"999us", `got "999us", want "0s" (none) or from 1ms to 87600h`}, {"87601h", `got "87601h", want "0s" (none) or from 1ms to 87600h`},
		{"9999999999h", `got "9999999999h"` + ask},
	})
	check(t, "period", period, []value{
		{"1ms", "1ms"}, {"0s", `got "0s", want a duration from 1ms to 87600h`}, {"1", `got "1"` + ask},
	})
	check(t, "seconds", seconds(10*time.Second), []value{
		{"0s", "0s"}, {"10s", "10s"}, {"11s", `got "11s", want whole seconds from 0s to 10s`}, {"1500ms", `got "1500ms", want whole seconds from 0s to 10s`},
	})
	check(t, "someSeconds", someSeconds(10*time.Second), []value{
		{"1s", "1s"}, {"0s", `got "0s", want whole seconds from 1s to 10s`}, {"11s", `got "11s", want whole seconds from 0s to 10s`},
	})
	check(t, "userTimeout", userTimeout, []value{
		{"576h", "576h0m0s"}, {"577h", `got "577h", want "0s" (none) or from 1ms to 576h`}, {"0s", "0s"},
	})
}

func TestNumbers(t *testing.T) {
	const weight = ", want a whole number from 0 to 1000000"
	check(t, "weight", count(0, heaviest), []value{
		{int64(0), "0"}, {int64(256), "256"}, {int64(65536), "65536"}, {int64(heaviest), "1000000"},
		{int64(-1), "got -1" + weight}, {1.5, "got 1.5" + weight}, {1.0, "got 1.0" + weight}, {"3", `got "3"` + weight},
		{int64(heaviest + 1), "got 1000001" + weight}, {int64(1 << 31), "got 2147483648" + weight},
		{int64(1 << 32), "got 4294967296" + weight}, {int64(math.MaxInt64), "got 9223372036854775807" + weight},
	})
	check(t, "limit", limit, []value{
		{int64(0), "0"}, {int64(math.MaxInt32), "2147483647"}, {int64(-1), "got -1, want a whole number of at least 0"},
		{int64(math.MaxInt32 + 1), "got 2147483648, want a whole number from 0 to 2147483647"},
	})
	check(t, "share", share, []value{
		{0.5, "0.5"}, {int64(1), "1"}, {0.0, "0"}, {1.01, "got 1.01, want a share from 0 to 1"}, {-0.1, "got -0.1, want a share from 0 to 1"},
		{math.NaN(), "got NaN, want a share from 0 to 1"}, {math.Inf(1), "got +Inf, want a share from 0 to 1"}, {"0.5", `got "0.5", want a share from 0 to 1`},
	})
	check(t, "loadBound", loadBound, []value{
		{1.25, "1.25"}, {int64(0), "0"}, {int64(2), "2"}, {0.9, "got 0.9, want 0 (not bounded) or a number from 1 to 1000"},
		{math.NaN(), "got NaN, want 0 (not bounded) or a number from 1 to 1000"},
	})
	check(t, "checkPort", checkPort, []value{
		{int64(0), "0"}, {int64(65535), "65535"}, {int64(65536), "got 65536, want a whole number from 0 to 65535"}, {"80", `got "80", want a whole number from 0 to 65535`},
	})
}

func TestSizes(t *testing.T) {
	const ask = `, want a number of bytes or a size such as "64KiB", "10MiB" or "1GiB"`
	check(t, "size", size, []value{
		{int64(0), "0"}, {int64(1500), "1500"}, {"64KiB", "65536"}, {"10MiB", "10485760"}, {"1GiB", "1073741824"}, {"4294967295GiB", "4611686017353646080"},
		{"4294967296GiB", `got "4294967296GiB"` + ask}, {int64(-1), "got -1" + ask}, {"-1KiB", `got "-1KiB"` + ask}, {"64", `got "64"` + ask},
		{"64KB", `got "64KB"` + ask}, {"64k", `got "64k"` + ask}, {"KiB", `got "KiB"` + ask}, {"1.5MiB", `got "1.5MiB"` + ask}, {1.5, "got 1.5" + ask},
	})
}

func TestWords(t *testing.T) {
	check(t, "oneOf", oneOf("auto", "off", "always"), []value{
		{"off", "off"}, {"", `got "", want one of auto, off, always`}, {"Off", `got "Off", want one of auto, off, always (did you mean off?)`},
		{false, "got false, want one of auto, off, always"}, {map[string]any{}, "got a table, want one of auto, off, always"},
		{time.Time{}, "got a date, want one of auto, off, always"},
	})
	check(t, "flag", flag, []value{{true, "true"}, {"true", `got "true", want true or false`}, {int64(1), "got 1, want true or false"}})
	check(t, "text", text, []value{
		{"", ""}, {"ü", "ü"}, {"a\nb", `got "a\nb", want text without control characters`}, {"\u009b", `got "\u009b", want text without control characters`},
		{int64(1), "got 1, want text"},
	})
	check(t, "anyText", anyText, []value{{"a\nb\x00", "a\nb\x00"}, {int64(1), "got 1, want text"}})
	check(t, "output", output("stderr", "stdout"), []value{
		{"stderr", "stderr"}, {"./x.log", "./x.log"}, {"stdrr", `got "stdrr", want one of stderr, stdout (did you mean stderr?) or a path with a slash`},
	})
	long := strings.Repeat("x", 100)
	check(t, "flag", flag, []value{{long, `got "` + long[:60] + `...", want true or false`}})
}

func TestNames(t *testing.T) {
	check(t, "name", name, []value{
		{"pg-1.eu_A", "pg-1.eu_A"}, {strings.Repeat("x", 64), strings.Repeat("x", 64)}, {"", `got "", want ` + wantName}, {"a b", `got "a b", want ` + wantName},
		{"a/b", `got "a/b", want ` + wantName}, {"a@b", `got "a@b", want ` + wantName}, {"a:b", `got "a:b", want ` + wantName},
		{"a\nb", `got "a\nb", want ` + wantName}, {"\x1b[31m", `got "\x1b[31m", want ` + wantName}, {"ü", `got "ü", want ` + wantName},
		{int64(1), "got 1, want " + wantName}, {strings.Repeat("x", 65), `got "` + strings.Repeat("x", 60) + `...", want ` + wantName},
	})
	check(t, "serverName", serverName("[::1]:80"), []value{
		{"a", "a"}, {"[::1]:80", "[::1]:80"}, {"[::1]:81", `got "[::1]:81", want ` + wantName},
	})
	check(t, "device", device, []value{
		{"eth0.100", "eth0.100"}, {"", ""}, {"0123456789abcdef", `got "0123456789abcdef", want the name of a network interface`},
		{"a/b", `got "a/b", want the name of a network interface`},
	})
}

func TestNetworks(t *testing.T) {
	check(t, "cidr", cidr, []value{
		{"10.0.0.0/8", "10.0.0.0/8"}, {"192.0.2.1", "192.0.2.1/32"}, {"fe80::/10", "fe80::/10"}, {"::1", "::1/128"},
		{"10.0.0.0/33", `got "10.0.0.0/33", want a network such as "10.0.0.0/8"`}, {"unix", `got "unix", want a network such as "10.0.0.0/8"`},
	})
	check(t, "accessRule", accessRule, []value{
		{"allow 10.0.0.0/8", "allow 10.0.0.0/8"}, {"deny all", "deny all"}, {"allow unix", "allow unix"}, {"deny ::1", "deny ::1"},
		{"permit all", `got "permit all", want ` + wantRule}, {"allow", `got "allow", want ` + wantRule}, {"allow  all", `got "allow  all", want ` + wantRule},
		{int64(1), "got 1, want " + wantRule},
	})
	check(t, "list", list(cidrOrUnix), []value{
		{[]any{"unix", "10.0.0.0/8"}, "[unix 10.0.0.0/8]"}, {[]any{}, "[]"}, {"unix", `got "unix", want a list`},
		{[]any{"x"}, `got "x", want a network such as "10.0.0.0/8", or "unix"`},
	})
}

func TestNearest(t *testing.T) {
	words := []string{"max_connections", "max_connections_per_ip", "idle_timeout", "ca", "sni"}
	for s, want := range map[string]string{
		"max_con": "max_connections", "per_ip": "max_connections_per_ip", "idle_timout": "idle_timeout", "IDLE-TIMEOUT": "idle_timeout",
		"max_connection": "max_connections", "x": "", "cb": "ca", "snj": "sni", "": "", "nothing": "", strings.Repeat("a", 1000): "",
	} {
		equal(t, s, nearest(s, words), want)
	}
}
