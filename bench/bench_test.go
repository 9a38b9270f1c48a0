package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/bench/load"
)

// The test binary is the program too: the driver runs itself, inside the
// namespace, as generator and as Go relay.
func TestMain(m *testing.M) {
	if os.Getenv("BENCH_IS_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func bench(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "BENCH_IS_MAIN=1")
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "namespace of our own") {
		t.Skipf("no network namespaces here: %s", out)
	}
	return string(out), err
}

func TestRunOfTheGoRelay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	out, err := bench(t, "-sluice=none", "-peers=go,direct", "-tests=T1,T2,T3,T5,T6", "-match=64 B, 64|32 at once|8 streams|/s,",
		"-rounds=1", "-for=50ms", "-warm=50ms", "-nice=0", "-json="+file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(b, &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Cells) != 6 {
		t.Fatalf("%d cells\n%s", len(rep.Cells), out)
	}
	for _, c := range rep.Cells {
		for k, rounds := range c.Rounds {
			if len(rounds) != 1 || rounds[0].Units == 0 || rounds[0].Failed > 0 {
				t.Errorf("%s, %s: %+v", c.Label, c.Names[k], rounds)
			}
			if c.Names[k] == "go" && rounds[0].Use.Balancer == 0 {
				t.Errorf("%s: the relay used no CPU", c.Label)
			}
		}
	}
}

func TestWordsForWrongUse(t *testing.T) {
	for _, c := range [][]string{
		{"unknown peer", "peers: got", "-sluice=none", "-peers=ha"},
		{"no test", "no such test", "-tests=T99"},
		{"no binary", "no such file", "-sluice=/nonexistent", "-peers=go"},
		{"argument", "unexpected argument", "T1"},
		{"balancer that ends at once", "has ended", "-sluice=/bin/true", "-peers=none", "-tests=T6"},
	} {
		out, err := bench(t, c[2:]...)
		if err == nil || !strings.Contains(out, c[1]) {
			t.Errorf("%s: got %v %q, want %q", c[0], err, out, c[1])
		}
	}
}

func TestMedian(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{nan, 7}, 7}, {nil, nan}} {
		if got := median(c.in); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v: got %v, want %v", c.in, got, c.want)
		}
	}
}

// madeUp is a cell with rates and CPU times by contender and round.
func madeUp(names []string, rates, cpus [][]float64) *cell {
	var field []contender
	for _, n := range names {
		field = append(field, contender{name: n})
	}
	c := newCell(testCase{test: "T1", label: "made up", rate: 1.2, cpu: .8}, field)
	for k := range names {
		for i := range rates[k] {
			c.Rounds[k] = append(c.Rounds[k], &load.Result{Units: rates[k][i], Seconds: 1,
				Use: load.Use{Balancer: cpus[k][i] * rates[k][i], Wall: 1}})
		}
	}
	return c
}

func TestRatiosAreWithinARoundAndToTheBest(t *testing.T) {
	// The machine is twice as slow in round 1. haproxy-splice is faster,
	// haproxy uses less CPU.
	c := madeUp([]string{"sluice", "haproxy", "haproxy-splice"},
		[][]float64{{150, 75, 160}, {90, 45, 80}, {100, 50, 100}},
		[][]float64{{6, 12, 6}, {10, 20, 10}, {12, 24, 12}})
	if got := c.ratio(mRate, 0); got != (ratio{1.5, 1.5, 1.6}) {
		t.Errorf("rate: %+v", got)
	}
	if got := c.ratio(mCPU, 0); math.Abs(got.mid-.6) > 1e-9 {
		t.Errorf("cpu: %+v", got)
	}
	if got := c.ratio(mP50, 0); !math.IsNaN(got.mid) {
		t.Errorf("latency that was not measured: %+v", got)
	}
}

func TestTargetsAreJudged(t *testing.T) {
	c := madeUp([]string{"sluice", "haproxy"}, [][]float64{{115}, {100}}, [][]float64{{5}, {10}})
	r := &report{Cells: []*cell{c}, ours: map[string]bool{"sluice": true}}
	var b strings.Builder
	r.printTargets(&b)
	want := "sluice  T1  made up  rate 1.15 (>= 1.20) MISSED  CPU 0.50 (<= 0.80) ok"
	if !strings.Contains(b.String(), "\n"+want+"\n") {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestQuickIsQuick(t *testing.T) {
	o := &options{quick: true}
	o.fill()
	chosen, err := o.chosen()
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	for _, c := range chosen {
		s := c.timed(o.warm, o.measured, "")
		// Three contenders, and a third of a second to start, connect and end.
		sum += time.Duration(3*c.rounds(o)) * (s.Warm + s.For + 330*time.Millisecond)
	}
	if sum > 110*time.Second {
		t.Errorf("quick takes %v", sum)
	}
}
