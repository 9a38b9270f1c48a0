package conf

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// every.toml asks for all that the format has. What is refused of it must be what notYet lists, no more and no less;
// so this test needs no change when a feature is built.
func TestEveryKeyIsKnown(t *testing.T) {
	_, _, err := Load("testdata/every.toml")
	var problems Errors
	if !errors.As(err, &problems) && len(notYet) > 0 {
		t.Fatalf("got %v, want Errors", err)
	}
	refused := map[string]bool{}
	for _, p := range problems {
		if p.Text != notSupported {
			t.Errorf("unexpected: %v", p)
		}
		refused[kindOf(p.Key)] = true
	}
	for _, row := range notYet {
		if !refused[row.key] {
			t.Errorf("%s stands in notYet and was not refused", row.key)
		}
		delete(refused, row.key)
	}
	for key := range refused {
		t.Errorf("%s was refused and does not stand in notYet", key)
	}
}

// kindOf is a key of a message without the name of the listener or pool.
func kindOf(key string) string {
	key = strings.Replace(key, ".pg.", ".", 1)
	return strings.Replace(key, "defaults.outlier", "pools.outlier", 1)
}

// The file above is of use only if nothing is missing from it.
func TestEveryKeyIsInTheFile(t *testing.T) {
	text, err := os.ReadFile("testdata/every.toml")
	if err != nil {
		t.Fatal(err)
	}
	found, _ := scan(string(text))
	for _, table := range vocabulary() {
		if table.kind == "defaults" || strings.HasPrefix(table.path, "defaults") {
			continue
		}
		for _, key := range table.known {
			if path := under(strings.ReplaceAll(table.path, "[]", "[0]"), key); found.at(path) == 0 {
				t.Errorf("%s is not in testdata/every.toml", path)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	minimal, explicit := load(t, "testdata/minimal.toml"), load(t, "testdata/default.toml")
	forgetLines(reflect.ValueOf(minimal).Elem())
	forgetLines(reflect.ValueOf(explicit).Elem())
	minimal.File, explicit.File = "", ""
	emptyIsNil(reflect.ValueOf(explicit).Elem())
	if !reflect.DeepEqual(minimal, explicit) {
		t.Errorf("defaults left out:\n%+v\ndefaults written down:\n%+v", minimal, explicit)
	}
}

func TestNotYetNamesKnownKeys(t *testing.T) {
	var keys []string
	for _, table := range vocabulary() {
		for _, key := range table.known {
			keys = append(keys, under(table.kind, key))
		}
	}
	for _, row := range notYet {
		if !slices.Contains(keys, row.key) {
			t.Errorf("notYet lists %s, which nobody reads", row.key)
		}
	}
}

func TestDefaultsAreNearestWins(t *testing.T) {
	c := parse(t, `
[defaults]
idle_timeout = "5m"
user_timeout = "5s"
keepalive = { idle = "7s", count = 9 }
connect_timeout = "6s"
connect_retries = 7
[defaults.check]
interval = "3s"
fall = 8
[[listeners]]
name = "a"
bind = "127.0.0.1:1"
pool = "a"
user_timeout = "8s"
keepalive = { count = 2 }
[[pools]]
name = "a"
connect_retries = 0
check = { fall = 1 }
servers = [{ address = "10.0.0.1:80" }]
[[pools]]
name = "unchecked"
servers = [{ address = "10.0.0.1:80" }]
`)
	l, p := c.Listeners[0], c.Pools[0]
	equal(t, "idle_timeout from [defaults]", l.IdleTimeout, 5*time.Minute)
	equal(t, "user_timeout of the listener", l.UserTimeout, 8*time.Second)
	equal(t, "keepalive of all three", l.Keepalive, Keepalive{7 * time.Second, 10 * time.Second, 2})
	equal(t, "connect_timeout from [defaults]", p.ConnectTimeout, 6*time.Second)
	equal(t, "connect_retries of the pool", p.ConnectRetries, 0)
	equal(t, "check.interval from [defaults.check]", p.Check.Interval, 3*time.Second)
	equal(t, "check.fast_interval from interval", p.Check.FastInterval, 3*time.Second)
	equal(t, "check.fall of the pool", p.Check.Fall, 1)
	equal(t, "a check of a pool without [pools.check]", c.Pools[1].Check, nil)
}

// forgetLines sets every field called Line to 0.
func forgetLines(v reflect.Value) {
	eachField(v, func(name string, f reflect.Value) {
		if name == "Line" {
			f.SetInt(0)
		}
	})
}

// emptyIsNil makes an empty list what a list is that was never set.
func emptyIsNil(v reflect.Value) {
	eachField(v, func(_ string, f reflect.Value) {
		if f.Kind() == reflect.Slice && f.Len() == 0 {
			f.SetZero()
		}
	})
}

// eachField calls do for the exported fields of v and of all that v holds.
func eachField(v reflect.Value, do func(name string, f reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachField(v.Elem(), do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachField(v.Index(i), do)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				do(f.Name, v.Field(i))
				eachField(v.Field(i), do)
			}
		}
	}
}

func load(t *testing.T, path string) *Config {
	t.Helper()
	c, _, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, _, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
