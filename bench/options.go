package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

type options struct {
	tests, peers, match string
	sluice              string
	haproxy, nginx      string
	rounds, servers     int
	again               int
	warm, measured      time.Duration
	quick, host, list   bool
	json                string
	balancerCPU         int
	loadCPU             int
	nice                int
	congestion          string
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&o.tests, "tests", "", "tests to run: T1,T3 (default all)")
	f.StringVar(&o.match, "match", "", "only tests whose label matches this regular expression, e.g. '64 B|8 streams'")
	f.BoolVar(&o.quick, "quick", false, "under two minutes: fewer tests, peers and rounds")
	f.BoolVar(&o.list, "list", false, "name the tests and stop")
	f.StringVar(&o.sluice, "sluice", "", "binary of sluice, or several to compare: old=PATH,new=PATH (default: built from this module; none: without)")
	f.StringVar(&o.peers, "peers", "", "others: haproxy,haproxy-splice,haproxy-auto,nginx,go,direct (default the first four, two with -quick)")
	f.StringVar(&o.haproxy, "haproxy", "haproxy", "program of haproxy")
	f.StringVar(&o.nginx, "nginx", "nginx", "program of nginx")
	f.IntVar(&o.rounds, "rounds", 0, "rounds, each contender once in each (default 5, 3 with -quick)")
	f.DurationVar(&o.measured, "for", 0, "time measured in a round (default 1s, 400ms with -quick)")
	f.DurationVar(&o.warm, "warm", 0, "time before, when every byte is compared (default 300ms, 150ms with -quick)")
	f.IntVar(&o.again, "again", -1, "times a measurement is repeated while others use the machine (default 1, 0 with -quick)")
	f.IntVar(&o.servers, "servers", 3, "servers in the pool")
	f.StringVar(&o.json, "json", "", "write all results to this file")
	f.IntVar(&o.balancerCPU, "cpu-balancer", 0, "core of the balancer")
	f.IntVar(&o.loadCPU, "cpu-load", 1, "core of the generator")
	f.IntVar(&o.nice, "nice", -10, "weight of the run against the rest of the machine; 0: none")
	f.StringVar(&o.congestion, "congestion", "", "TCP congestion control in the namespace (default the host's)")
	f.BoolVar(&o.host, "host", false, "run on the host's loopback when no namespace can be had")
	f.Parse(args)
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	o.fill()
	return o, nil
}

func (o *options) fill() {
	pick := func(full, quick any) any {
		if o.quick {
			return quick
		}
		return full
	}
	if o.rounds == 0 {
		o.rounds = pick(5, 3).(int)
	}
	if o.again < 0 {
		o.again = pick(1, 0).(int)
	}
	if o.measured == 0 {
		o.measured = pick(time.Second, 400*time.Millisecond).(time.Duration)
	}
	if o.warm == 0 {
		o.warm = pick(300*time.Millisecond, 150*time.Millisecond).(time.Duration)
	}
	if o.peers == "" {
		o.peers = pick("haproxy,haproxy-splice,nginx,go", "haproxy,haproxy-splice").(string)
	}
}

// chosen are the tests that were asked for.
func (o *options) chosen() ([]testCase, error) {
	match, err := regexp.Compile(o.match)
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	var out []testCase
	for _, c := range cases() {
		wanted := o.tests == "" || strings.Contains(","+o.tests+",", ","+c.test+",")
		// -match names tests one by one, so it reaches those that -quick leaves out.
		if wanted && match.MatchString(c.label) && (c.quick || !o.quick || o.match != "") {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no such test: -tests %q -match %q (-list names them)", o.tests, o.match)
	}
	return out, nil
}

// contenders are sluice, however many builds of it, then the peers.
func (o *options) contenders() (out []contender, err error) {
	for _, s := range strings.Split(o.sluice, ",") {
		if name, path, ok := strings.Cut(s, "="); ok {
			out = append(out, sluice(name, path))
		}
	}
	for _, p := range strings.Split(o.peers, ",") {
		if p == "none" {
			continue
		}
		c, err := peer(p, o.haproxy, o.nginx)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no contender")
	}
	return out, nil
}

// resolve turns -sluice into name=path pairs, building what was not given. It
// runs outside the enclosure, where the module cache can still be filled.
func (o *options) resolve(dir string) error {
	if o.sluice == "none" {
		o.sluice = ""
		return nil
	}
	if o.sluice == "" {
		bin := filepath.Join(dir, "sluice")
		if out, err := exec.Command("go", "build", "-o", bin, "sluice").CombinedOutput(); err != nil {
			return fmt.Errorf("build sluice: %w\n%s(-sluice PATH takes another binary, -sluice none goes without)", err, out)
		}
		o.sluice = bin
	}
	list := strings.Split(o.sluice, ",")
	for i, s := range list {
		name, path, ok := strings.Cut(s, "=")
		if !ok {
			name, path = "sluice", s
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("sluice: %w", err)
		}
		list[i] = name + "=" + path
	}
	o.sluice = strings.Join(list, ",")
	return nil
}
