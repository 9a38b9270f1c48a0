package load

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// Settle makes this process what the package doc promises: one thread that
// does the work, on one core, no garbage collection, all descriptors it may have.
func Settle(cpu int) error {
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err == nil {
		lim.Cur = lim.Max
		unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	}
	if cpu < 0 {
		return nil
	}
	return pinAll(cpu)
}

// pinAll moves every thread of this process: those the runtime has started
// already would otherwise use the balancer's core.
func pinAll(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		var tid int
		fmt.Sscan(t.Name(), &tid)
		if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
			return fmt.Errorf("stay on core %d: %w", cpu, err)
		}
	}
	return nil
}

// Run measures. An error means that nothing was measured; failures of
// connections are in the Result.
func Run(spec Spec) (*Result, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	r, err := newRig(spec)
	if err != nil {
		return nil, err
	}
	defer r.dispose()
	res := &Result{}
	r.full = true
	switch spec.Kind {
	case "ping":
		r.runPing(res, &pinger{size: spec.Size, measure: true, paced: spec.Rate > 0})
	case "churn":
		r.runPing(res, &pinger{size: spec.Size, measure: true, lives: 1})
	case "down", "up":
		r.runStreams(res, spec.Kind == "up")
	case "idle":
		r.runIdle(res)
	default:
		return nil, fmt.Errorf("kind: got %q, want ping, churn, down, up or idle", spec.Kind)
	}
	res.P50, res.P99, res.P999 = r.hist.Quantile(.5), r.hist.Quantile(.99), r.hist.Quantile(.999)
	res.Failed, res.Errors = r.failed, r.errors
	return res, nil
}

func (r *rig) runPing(res *Result, p *pinger) {
	if p.lives > 0 {
		for range r.spec.Conns {
			p.dial(r)
		}
	} else if !p.connect(r, r.spec.Conns) {
		return
	}
	r.window(res, p)
	p.closeIdle(r)
	r.await("the end of all sessions", func() bool { return r.open == 0 })
}

func (r *rig) runStreams(res *Result, up bool) {
	p := &pinger{size: 1024, paced: true, nextID: 0}
	if r.spec.Pings > 0 && !p.connect(r, r.spec.Pings) {
		return
	}
	r.streams(r.spec.Conns, up)
	r.window(res, p)
	res.Messages = p.answers
	p.closeIdle(r)
	r.await("the end of all streams", func() bool { return r.open == 0 })
}

// window is the heart of a measurement: warm up, take stock, work, take stock.
func (r *rig) window(res *Result, p *pinger) {
	var pace func(int64)
	if p.paced && len(p.clients) > 0 {
		p.gap = int64(time.Second) / int64(r.spec.Rate)
		p.first = r.now()
		pace = func(now int64) { p.pace(r, now) }
	}
	r.until(r.now()+int64(r.spec.Warm), pace)
	r.full = false
	before := takeStock(r.spec.Pids)
	// Taking stock held everything up; let that pass.
	p.first, p.sent = r.now(), 0
	r.until(r.now()+int64(20*time.Millisecond), pace)
	from, start := readClocks(r.spec.Pids), r.now()
	r.measure = true
	r.until(start+int64(r.spec.For), pace)
	r.measure = false
	end, to := r.now(), readClocks(r.spec.Pids)
	after := takeStock(r.spec.Pids)
	r.stopping = true
	res.Units, res.Seconds = r.units, float64(end-start)/1e9
	res.Use = use(from, to, before, after)
}
