package health

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// Report is told each time the verdict on a Target changes, the first one
// included. It is called from the Checker's goroutines, for one Owner never
// twice at a time and in order, with no lock held that the Checker's methods
// take. It must not call Close.
type Report func(t Target, up bool, since time.Time, why string)

// atOnce caps the probes that are under way, and so their descriptors. 1,000
// servers that all time out (1 s) at an interval of 2 s still fit.
const atOnce = 512

// Checker checks Targets until it is closed. All methods are safe for
// concurrent use.
type Checker struct {
	report  Report
	slots   chan struct{}
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	checks map[identity]*check
	users  map[any]*user
	order  []any // owners, as in the last Update
	serial int   // checks started so far
}

// user is a Target and what its owner has been told. Target, check and told
// are guarded by Checker.mu.
type user struct {
	turn   sync.Mutex // held while the owner is told: one report at a time
	target Target
	check  *check // nil: not checked any more
	told   State
}

// New returns a Checker without Targets.
func New(report Report) *Checker {
	c := &Checker{
		report: report,
		slots:  make(chan struct{}, atOnce),
		checks: make(map[identity]*check),
		users:  make(map[any]*user),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// Close ends all checks and returns when they have ended: nothing is reported
// afterwards.
func (c *Checker) Close() {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.running.Wait()
}

// Update replaces the Targets. A check that stays (same address, same
// Settings) keeps its verdict and its timer. One whose Settings differ keeps
// the verdict until its first probe, which decides by itself and comes within 2 s.
func (c *Checker) Update(targets []Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	old := c.users
	c.users, c.order = make(map[any]*user, len(targets)), c.order[:0]
	var fresh []*check
	for _, t := range targets {
		t.Settings = t.Settings.withDefaults()
		ck, isNew := c.checkLocked(t)
		if isNew {
			fresh = append(fresh, ck)
		}
		if c.users[t.Owner] != nil {
			panic(fmt.Sprintf("health: two targets of owner %v", t.Owner))
		}
		c.users[t.Owner] = ck.joinLocked(old[t.Owner], t)
		c.order = append(c.order, t.Owner)
		delete(old, t.Owner)
	}
	for _, gone := range old {
		gone.check.leaveLocked(gone)
	}
	c.retireLocked()
	c.startLocked(fresh)
}

// checkLocked returns the check that t wants.
func (c *Checker) checkLocked(t Target) (ck *check, isNew bool) {
	id := identify(t.Addr, t.Settings)
	if ck := c.checks[id]; ck != nil {
		return ck, false
	}
	ck = newCheck(t)
	c.checks[id] = ck
	return ck, true
}

// retireLocked ends the checks that nobody asks for any more.
func (c *Checker) retireLocked() {
	for id, ck := range c.checks {
		if len(ck.users) == 0 {
			ck.cancel()
			delete(c.checks, id)
		}
	}
}

// firstWithin is when the first round is over at the latest. A few checks need
// less: nobody feels a probe each 10 ms, and their users wait for the result.
const (
	firstWithin  = 1900 * time.Millisecond
	firstSpacing = 10 * time.Millisecond
)

// startLocked starts checks, each at its own phase of a short first round and,
// after that, of its interval. Multiples of the golden ratio, taken modulo 1,
// fall evenly into [0, 1) however many there are, so the checks of a later
// Update fall between the older ones.
func (c *Checker) startLocked(fresh []*check) {
	const golden = 0.6180339887498949
	for _, ck := range fresh {
		c.serial++
		_, phase := math.Modf(float64(c.serial) * golden)
		interval := ck.settings.Interval
		span := min(firstWithin, time.Duration(len(fresh))*firstSpacing, interval)
		first := time.Duration(phase * float64(span))
		second := span - first + time.Duration(phase*float64(interval))
		c.running.Go(func() { ck.run(c, first, second) })
	}
}

// tell reports to an owner what it does not know yet. Whoever calls it, the
// report is of how things are now.
func (c *Checker) tell(u *user) {
	u.turn.Lock()
	defer u.turn.Unlock()
	for {
		c.mu.Lock()
		ck := u.check
		if ck == nil || ck.state == Checking || ck.state == u.told || c.ctx.Err() != nil {
			c.mu.Unlock()
			return
		}
		u.told = ck.state
		target, up, since, why := u.target, ck.state == Up, ck.since, ck.why
		c.mu.Unlock()
		c.report(target, up, since, why)
	}
}

// Status returns what is known of each Target, in the order of the last Update.
func (c *Checker) Status() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Status, 0, len(c.order))
	for _, owner := range c.order {
		u := c.users[owner]
		all = append(all, u.check.statusLocked(u.target))
	}
	return all
}
