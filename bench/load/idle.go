package load

import "time"

// runIdle (T4) compares the memory and descriptors of the balancer with all
// sessions open, each having carried one message, with those before. A few
// sessions come and go first, so that what is allocated once is not counted.
func (r *rig) runIdle(res *Result) {
	first := &pinger{size: r.spec.Size, paced: true}
	if !first.connect(r, 64) {
		return
	}
	first.closeIdle(r)
	r.await("the end of the first sessions", func() bool { return r.open == 0 })
	r.until(r.now()+int64(500*time.Millisecond), nil)

	before := takeStock(r.spec.Pids)
	p := &pinger{size: r.spec.Size, paced: true, nextID: 64}
	if !p.connect(r, r.spec.Conns) {
		return
	}
	r.until(r.now()+int64(r.spec.Warm), nil)
	quiet := takeStock(r.spec.Pids)
	r.until(r.now()+int64(r.spec.For), nil)
	after := takeStock(r.spec.Pids)

	n := float64(r.spec.Conns)
	res.Use = use(quiet.clocks, after.clocks, quiet, after)
	res.Units, res.Seconds = n, res.Use.Wall
	res.Idle = Idle{
		Sessions: r.spec.Conns,
		RSS:      float64(after.rss-before.rss) / n,
		PSS:      float64(after.pss-before.pss) / n,
		FDs:      float64(after.fds-before.fds) / n,
		Pipes:    float64(after.pipes-before.pipes) / n,
		Wakeups:  res.Use.Balancer / res.Use.Wall,
	}
	r.stopping = true
	p.closeIdle(r)
	r.await("the end of all sessions", func() bool { return r.open == 0 })
}
