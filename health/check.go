package health

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// check is one address that is probed again and again, for one user or many.
type check struct {
	// constant
	addr     string
	settings Settings
	ctx      context.Context // ends with the last user
	cancel   context.CancelFunc
	wake     chan struct{} // somebody has joined

	// guarded by Checker.mu
	users    map[*user]struct{}
	verdict  verdict
	state    State
	since    time.Time
	why      string
	checked  time.Time
	err      error
	duration time.Duration
}

func newCheck(t Target) *check {
	ck := &check{
		addr:     t.Addr,
		settings: t.Settings,
		wake:     make(chan struct{}, 1),
		users:    make(map[*user]struct{}),
		verdict:  verdict{up: t.Settings.Initial == Up, open: t.Settings.Initial == Checking},
		state:    t.Settings.Initial,
		since:    time.Now(),
		why:      "not checked yet",
	}
	ck.ctx, ck.cancel = context.WithCancel(context.Background())
	return ck
}

// joinLocked makes the target's user (u if there is one already) one of this
// check's. A check that has no verdict yet takes over the one that u had.
func (ck *check) joinLocked(u *user, t Target) *user {
	if u == nil {
		u = &user{told: t.Settings.Initial}
	}
	if was := u.check; was != nil && was != ck {
		if ck.checked.IsZero() && was.state != Checking {
			ck.state, ck.since, ck.why = was.state, was.since, was.why
			ck.verdict = verdict{up: was.state == Up, open: true}
		}
		was.leaveLocked(u)
	}
	u.target, u.check = t, ck
	ck.users[u] = struct{}{}
	select {
	case ck.wake <- struct{}{}:
	default:
	}
	return u
}

func (ck *check) leaveLocked(u *user) {
	delete(ck.users, u)
	u.check = nil
}

// run probes until the check has no users or the Checker is closed. The first
// two waits are given, the second as an upper limit.
func (ck *check) run(c *Checker, first, second time.Duration) {
	ctx, cancel := context.WithCancel(ck.ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	timer := time.NewTimer(onGrid(first))
	defer timer.Stop()
	for limit := second; ; {
		select {
		case <-ctx.Done():
			return
		case <-ck.wake:
		case <-timer.C:
			wait := ck.once(ctx, c)
			timer.Reset(onGrid(min(wait, limit)))
			limit = math.MaxInt64
		}
		ck.tellAll(c)
	}
}

// onGrid shortens a long wait by up to grid, so that checks which are due at
// about the same time wake the process once: a quarter of the CPU time of many
// checks.
func onGrid(wait time.Duration) time.Duration {
	if wait < 10*grid {
		return wait
	}
	now := time.Now()
	return now.Add(wait).Truncate(grid).Sub(now)
}

const grid = 50 * time.Millisecond

// breath is the least time between two probes of a check, also where one takes
// longer than the interval.
const breath = time.Millisecond

// once probes, takes the result in and returns how long to wait for the next.
func (ck *check) once(ctx context.Context, c *Checker) time.Duration {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	start := time.Now()
	err := ck.probe(ctx)
	<-c.slots
	if ctx.Err() != nil {
		return 0 // cut short by us: says nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ck.noteLocked(err, start, time.Now())
	return max(breath, ck.waitLocked()-time.Since(start))
}

func (ck *check) probe(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, ck.settings.Timeout)
	defer cancel()
	err := ck.settings.Probe(limited, ck.addr)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", ck.settings.Timeout, err)
	}
	return err
}

// noteLocked takes one result in.
func (ck *check) noteLocked(err error, start, end time.Time) {
	ck.err, ck.checked, ck.duration = err, end, end.Sub(start)
	if isOurs(err) {
		return
	}
	inRow := ck.verdict.streak + 1
	if ck.verdict.open {
		inRow = 1
	}
	if !ck.verdict.observe(err == nil, ck.settings.Rise, ck.settings.Fall) {
		return
	}
	if state := stateOf(err); state != ck.state {
		ck.state, ck.since, ck.why = state, end, because(inRow, err)
	}
}

func stateOf(err error) State {
	if err == nil {
		return Up
	}
	return Down
}

func because(inRow int, err error) string {
	checks := "check"
	if inRow > 1 {
		checks = fmt.Sprintf("%d checks in a row", inRow)
	}
	if err == nil {
		return checks + " passed"
	}
	return fmt.Sprintf("%s failed: %v", checks, err)
}

// waitLocked is the time from one probe's start to the next one's.
func (ck *check) waitLocked() time.Duration {
	s := &ck.settings
	wait := s.Interval
	switch {
	case ck.verdict.streak > 0:
		wait = s.Fast
	case ck.state == Down:
		wait = s.Down
	}
	return time.Duration(float64(wait) * (1 + s.Jitter*(2*rand.Float64()-1)))
}

func (ck *check) tellAll(c *Checker) {
	c.mu.Lock()
	users := make([]*user, 0, len(ck.users))
	for u := range ck.users {
		users = append(users, u)
	}
	c.mu.Unlock()
	for _, u := range users {
		c.tell(u)
	}
}

func (ck *check) statusLocked(t Target) Status {
	return Status{
		Target: t, State: ck.state, Since: ck.since, Why: ck.why,
		Checked: ck.checked, Err: ck.err, Duration: ck.duration, Streak: ck.verdict.streak,
	}
}
