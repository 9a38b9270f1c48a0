package pick

import "time"

// Slow start. A server that comes new or back has cold caches, and a policy that
// looks at loads would give it everything at once. Its weight, and the share of
// the picks that may fall on it by load, rise linearly over Config.SlowStart from
// a tenth to all. Only the Pool knows the time: it publishes a Set for each
// percent that is reached, so picks and shards stay free of clocks.

// rampFloor is where a ramp begins, in percent: Envoy's default. Less would keep
// a server idle whose pool sees few sessions (envoyproxy/envoy#19526).
const rampFloor = 10

// rampAt is the percentage that a ramp has reached, rounded down: linear, at
// least floor, at most 100.
func rampAt(elapsed, window time.Duration, floor int) int {
	if elapsed >= window {
		return 100
	}
	return max(floor, int(float64(elapsed)/float64(window)*100))
}

// Tick moves slow starts on and reports whether one is still under way: call it
// again after [Pool.TickStep] then. It publishes a Set only if a ramp reached
// another percent.
func (p *Pool) Tick(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pruneLocked()
	ramping, moved := false, false
	for _, e := range p.entries {
		if e.ramp < 100 {
			ramp := rampAt(now.Sub(e.ramped), p.cfg.SlowStart, rampFloor)
			moved = moved || ramp != e.ramp
			ramping = ramping || ramp < 100
		}
	}
	if moved {
		p.publishLocked(now)
	}
	return ramping
}

// TickStep is how long a ramp takes for one percent, but not less than what
// publishing should be done at.
func (p *Pool) TickStep() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stepLocked()
}

func (p *Pool) stepLocked() time.Duration { return max(p.cfg.SlowStart/100, 20*time.Millisecond) }

// rampLocked begins, moves or ends the slow start of an entry that is about to be
// published as usable or not.
func (p *Pool) rampLocked(e *entry, use bool, now time.Time) {
	switch returning := !e.usable && p.started && !e.fresh; {
	case !use || !e.healthy() || p.cfg.SlowStart == 0: // in a panic there is no sparing anybody
		e.ramp = 100
	case returning:
		e.ramp, e.ramped = rampFloor, now
	case e.ramp < 100:
		e.ramp = rampAt(now.Sub(e.ramped), p.cfg.SlowStart, rampFloor)
	}
}

// notify tells onRamp if a slow start is under way. Called without the lock.
func (p *Pool) notify() {
	p.mu.Lock()
	f, step, ramping := p.onRamp, p.stepLocked(), false
	for _, e := range p.entries {
		ramping = ramping || e.ramp < 100
	}
	p.mu.Unlock()
	if f != nil && ramping {
		f(step)
	}
}
