package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"sluice/bench/load"
)

// report is the outcome of a run, and what -json writes.
type report struct {
	Time    time.Time
	Machine string
	Cells   []*cell
	ours    map[string]bool // builds of sluice, which have targets
	waited  time.Duration   // for other runs on this machine
}

func newReport(o *options, field []contender) *report {
	r := &report{Time: time.Now(), ours: map[string]bool{}}
	for _, s := range strings.Split(o.sluice, ",") {
		name, _, _ := strings.Cut(s, "=")
		r.ours[name] = name != ""
	}
	cc, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	r.Machine = fmt.Sprintf("Linux %s, %d cores, %s, %s; balancer on core %d, generator on core %d; %d rounds of %v\n%s",
		kernelRelease(), runtime.NumCPU(), cpuModel(), strings.TrimSpace(string(cc)),
		o.balancerCPU, o.loadCPU, o.rounds, o.measured, versions(o))
	return r
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(b), "model name")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, "\t :")
}

func versions(o *options) string {
	var v []string
	for _, cmd := range [][]string{{o.haproxy, "-v"}, {o.nginx, "-v"}} {
		out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		if err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			v = append(v, first)
		}
	}
	return strings.Join(append(v, runtime.Version()), "; ")
}

func (r *report) save(path string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func (r *report) failures() (n int) {
	for _, c := range r.Cells {
		for k := range c.Names {
			n += c.failed(k)
		}
	}
	return n
}

// column is a metric, the way it is printed. A figure without a ratio tells
// more about the machine than about the contender.
type column struct {
	metric
	head   string
	scale  float64
	spread bool
}

func (c *cell) columns() []column {
	const us, gb = 1e-3, 1e-9
	latency := []column{{mP50, "p50 us", us, false}, {mP99, "p99 us", us, false}, {mP999, "p99.9 us", us, false}}
	switch c.test {
	case "T2":
		return append([]column{{mRate, "conn/s", 1, true}, {mCPU, "CPU us/conn", us, false}, {mWhole, "+kernel", us, false}}, latency...)
	case "T3":
		return []column{{mRate, "GB/s", gb, true}, {mCPU, "CPU ms/GB", 1e3, false}, {mWhole, "+kernel", 1e3, false}}
	case "T4":
		return []column{{mRSS, "RSS bytes", 1, true}, {mPSS, "PSS bytes", 1, false}}
	case "T5":
		return append([]column{{mRate, "GB/s", gb, true}, {mCPU, "CPU ms/GB", 1e3, false}}, latency...)
	}
	return append([]column{{mRate, "msg/s", 1, true}, {mCPU, "CPU us/msg", us, false}, {mWhole, "+kernel", us, false}}, latency...)
}

func (c *cell) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s %s  (others used %.0f %% of the machine)\n", c.test, c.label, c.noise())
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "  contender\t")
	for _, col := range c.columns() {
		fmt.Fprintf(t, "   %s\tx best\t", col.head)
		if col.spread {
			fmt.Fprint(t, "lo-hi\t")
		}
	}
	fmt.Fprintln(t, c.tailHead())
	for k, name := range c.Names {
		fmt.Fprintf(t, "  %s\t", name)
		for _, col := range c.columns() {
			q := c.ratio(col.metric, k)
			fmt.Fprintf(t, "   %s\t%s\t", figure(median(c.values(col.metric, k))*col.scale), times(q.mid))
			if col.spread {
				fmt.Fprint(t, q.spread(), "\t")
			}
		}
		fmt.Fprintln(t, c.tail(k))
	}
	t.Flush()
	c.printErrors(w)
}

// tail is what is told in absolute figures.
func (c *cell) tailHead() string {
	if c.test == "T4" {
		return "   descriptors\tpipes\tidle CPU us/s\tfailed\t"
	}
	return "   failed\t"
}

func (c *cell) tail(k int) string {
	if c.test != "T4" {
		return fmt.Sprintf("%d\t", c.failed(k))
	}
	pick := func(of func(load.Idle) float64) float64 {
		var v []float64
		for _, r := range c.Rounds[k] {
			v = append(v, of(r.Idle))
		}
		return median(v)
	}
	return fmt.Sprintf("%.2f\t%.2f\t%.0f\t%d\t", pick(func(i load.Idle) float64 { return i.FDs }),
		pick(func(i load.Idle) float64 { return i.Pipes }), pick(func(i load.Idle) float64 { return i.Wakeups })/1e3, c.failed(k))
}

func (c *cell) printErrors(w io.Writer) {
	for k, name := range c.Names {
		for _, r := range c.Rounds[k] {
			for _, e := range r.Errors {
				fmt.Fprintf(w, "  FAILED %s: %s\n", name, e)
			}
		}
	}
}

// noise is the median disturbance in percent.
func (c *cell) noise() float64 {
	var v []float64
	for _, rounds := range c.Rounds {
		for _, r := range rounds {
			v = append(v, 100*disturbance(r))
		}
	}
	return median(v)
}

func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v >= 1e5:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func times(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func (q ratio) spread() string {
	if math.IsNaN(q.mid) {
		return "-"
	}
	return times(q.lo) + "-" + times(q.hi)
}

// printTargets holds sluice against what it must reach.
func (r *report) printTargets(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Cells {
		for k, name := range c.Names {
			if r.ours[name] {
				c.printTarget(t, k, name)
			}
		}
	}
	fmt.Fprintln(w)
	t.Flush()
	fmt.Fprintf(w, "took %v, of which %v waiting for other runs\n",
		time.Since(r.Time).Round(time.Second), r.waited.Round(time.Second))
}

func (c *cell) printTarget(w io.Writer, k int, name string) {
	fmt.Fprintf(w, "%s\t%s\t%s", name, c.test, c.label)
	line := func(what string, got, want float64, higher bool) {
		if want == 0 {
			return
		}
		sign, verdict := "<=", "ok"
		if higher {
			sign = ">="
		}
		if !(higher && got >= want || !higher && got <= want) {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "\t%s %s (%s %s) %s", what, figure(got), sign, figure(want), verdict)
	}
	line("rate", c.ratio(mRate, k).mid, c.rate, true)
	line("CPU", c.ratio(mCPU, k).mid, c.cpu, false)
	line("p50", c.ratio(mP50, k).mid, c.p50, false)
	line("p99", c.ratio(mP99, k).mid, c.p99, false)
	if c.test == "T4" {
		line("bytes", median(c.values(mRSS, k)), 512, false)
		line("descriptors", median(c.values(metric{of: func(r *load.Result) float64 { return r.Idle.FDs }}, k)), 2, false)
	}
	fmt.Fprintln(w)
}
