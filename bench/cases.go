package main

import (
	"fmt"
	"time"

	"sluice/bench/load"
)

// testCase is one row of the table of tests: a measurement that every
// contender makes in every round.
type testCase struct {
	test  string // T1 to T6
	label string
	spec  load.Spec
	quick bool // part of -quick
	// Targets of sluice, as ratios to the best HAProxy; 0: none. T4 has
	// absolute ones.
	rate, cpu, p50, p99 float64
}

const (
	kib = 1 << 10
	// A stream is moved in chunks of this size; smaller beside small messages,
	// so that the generator itself adds little to their latency.
	chunk      = 128 * kib
	smallChunk = 64 * kib
)

func cases() []testCase {
	all := pingCases()
	for _, n := range []int{32, 256} {
		all = append(all, testCase{test: "T2", label: fmt.Sprintf("connect, 128 B, close; %d at once", n),
			spec: load.Spec{Kind: "churn", Conns: n, Size: 128}, quick: n == 32, rate: 1.15, cpu: .88})
	}
	for _, kind := range []string{"down", "up"} {
		for _, n := range []int{1, 8, 32} {
			c := testCase{test: "T3", label: fmt.Sprintf("bulk %s, %d streams", kind, n),
				spec: load.Spec{Kind: kind, Conns: n, Size: chunk}, quick: n == 1 || n == 8 && kind == "down", rate: 1.7, cpu: .55}
			if n == 1 {
				c.label, c.rate, c.cpu = "bulk "+kind+", 1 stream", 1.3, .85
			}
			all = append(all, c)
		}
	}
	return append(all,
		testCase{test: "T4", label: "6500 idle sessions", spec: load.Spec{Kind: "idle", Conns: 6500, Size: 64}, quick: true},
		testCase{test: "T5", label: "1 KiB at 2000/s beside 8 streams", quick: true, rate: 1.3, p99: .6,
			spec: load.Spec{Kind: "down", Conns: 8, Size: smallChunk, Pings: 16, Rate: 2000}},
		testCase{test: "T6", label: "1 KiB at 1000/s, 16 connections", quick: true, cpu: 1.15,
			spec: load.Spec{Kind: "ping", Conns: 16, Size: kib, Rate: 1000}})
}

func pingCases() (all []testCase) {
	for _, size := range []int{64, kib, 16 * kib, 32 * kib, 64 * kib} {
		for _, n := range []int{1, 64, 512} {
			c := testCase{test: "T1", spec: load.Spec{Kind: "ping", Conns: n, Size: size}}
			c.label = fmt.Sprintf("ping-pong %s, %d connections", bytesText(size), n)
			if n == 1 {
				c.label = fmt.Sprintf("ping-pong %s, 1 connection", bytesText(size))
			}
			switch {
			case size > kib:
				c.cpu, c.quick = 1, n == 64 && size < 64*kib
			case n == 1:
				c.rate, c.p50, c.quick = 1.5, .75, size == 64
			default:
				c.rate, c.cpu, c.quick = 1.2, .82, n == 64 || size == 64
			}
			all = append(all, c)
		}
	}
	return all
}

func bytesText(n int) string {
	if n%kib == 0 {
		return fmt.Sprintf("%d KiB", n/kib)
	}
	return fmt.Sprintf("%d B", n)
}

// timed gives a case its times. Sessions of T4 rest first: balancers free
// memory some time after a session's last byte. The plain Go relay has six
// descriptors for a session, so it gets as many sessions as a process carries.
func (c testCase) timed(warm, measured time.Duration, contender string) load.Spec {
	s := c.spec
	s.Warm, s.For = warm, measured
	if c.test == "T4" {
		s.Warm, s.For = time.Second, time.Second
		if contender == "go" {
			s.Conns = 3000
		}
	}
	return s
}

// rounds of a case. Memory hardly varies, and T4 takes long.
func (c testCase) rounds(o *options) int {
	if c.test != "T4" {
		return o.rounds
	}
	if o.quick {
		return 1
	}
	return min(o.rounds, 3)
}
