package main

import (
	"math"
	"runtime"
	"slices"

	"sluice/bench/load"
)

// metric is one figure of a result. Failed rounds have none: NaN.
type metric struct {
	name   string
	higher bool // is better
	of     func(*load.Result) float64
}

func perUnit(r *load.Result, ns float64) float64 {
	if r.Units == 0 {
		return math.NaN()
	}
	return ns / r.Units
}

func positive(v float64) float64 {
	if v <= 0 {
		return math.NaN()
	}
	return v
}

var (
	mRate  = metric{"rate", true, func(r *load.Result) float64 { return positive(r.Rate()) }}
	mCPU   = metric{"cpu", false, func(r *load.Result) float64 { return positive(perUnit(r, r.Use.Balancer)) }}
	mWhole = metric{"whole", false, wholeCPU}
	mP50   = metric{"p50", false, func(r *load.Result) float64 { return positive(r.P50) }}
	mP99   = metric{"p99", false, func(r *load.Result) float64 { return positive(r.P99) }}
	mP999  = metric{"p99.9", false, func(r *load.Result) float64 { return positive(r.P999) }}
	mRSS   = metric{"rss", false, func(r *load.Result) float64 { return positive(r.Idle.RSS) }}
	mPSS   = metric{"pss", false, func(r *load.Result) float64 { return positive(r.Idle.PSS) }}
)

// wholeCPU has none for direct, where there is no balancer.
func wholeCPU(r *load.Result) float64 {
	return perUnit(r, positive(r.Use.Balancer)+r.Use.Kernel)
}

// median of what is a number.
func median(v []float64) float64 {
	v = slices.DeleteFunc(slices.Clone(v), math.IsNaN)
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// ratio is a contender's figure divided by the reference's of the same round:
// median, lowest and highest.
type ratio struct{ mid, lo, hi float64 }

// cell is one case: results by contender and round.
type cell struct {
	testCase `json:"-"`
	Test     string
	Label    string
	Names    []string
	Rounds   [][]*load.Result
	refs     []int
}

func newCell(c testCase, field []contender) *cell {
	x := &cell{testCase: c, Test: c.test, Label: c.label, Rounds: make([][]*load.Result, len(field))}
	for i, f := range field {
		x.Names = append(x.Names, f.name)
		if f.isReference() {
			x.refs = append(x.refs, i)
		}
	}
	return x
}

func (c *cell) values(m metric, k int) (v []float64) {
	for _, r := range c.Rounds[k] {
		v = append(v, m.of(r))
	}
	return v
}

// best is the reference that does best on a figure, -1 if there is none.
func (c *cell) best(m metric) int {
	best, value := -1, math.NaN()
	for _, k := range c.refs {
		v := median(c.values(m, k))
		if best < 0 || m.higher && v > value || !m.higher && v < value {
			best, value = k, v
		}
	}
	return best
}

func (c *cell) ratio(m metric, k int) ratio {
	ref := c.best(m)
	if ref < 0 {
		return ratio{math.NaN(), math.NaN(), math.NaN()}
	}
	mine, theirs := c.values(m, k), c.values(m, ref)
	var q []float64
	for i := range min(len(mine), len(theirs)) {
		if x := mine[i] / theirs[i]; !math.IsNaN(x) {
			q = append(q, x)
		}
	}
	if len(q) == 0 {
		return ratio{math.NaN(), math.NaN(), math.NaN()}
	}
	return ratio{median(q), slices.Min(q), slices.Max(q)}
}

// disturbance is the share of all cores that neither the contender nor the
// generator nor the kernel used.
func disturbance(r *load.Result) float64 {
	return r.Use.Others / (r.Use.Wall * 1e9 * float64(runtime.NumCPU()))
}

func (c *cell) failed(k int) (n int) {
	for _, r := range c.Rounds[k] {
		n += r.Failed
	}
	return n
}
