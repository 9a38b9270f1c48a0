package pick

import "time"

// A Status is what a Pool knows of one server at one moment.
type Status struct {
	*Server
	Weight    int     // as configured or changed at run time
	Effective float64 // what of it counts now: 0 if not usable, less than Weight in slow start
	Operator  OperatorState
	Observed  Observed
	Since     time.Time // when Observed became so
	Sessions  int64
	Limit     int64
	Backup    bool
	Priority  int
	Usable    bool // in the Set
	Removed   bool // no longer configured, sessions still open
}

// Servers returns all servers in the order of the configuration, and behind them
// those that were removed while they have sessions.
func (p *Pool) Servers() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pruneLocked()
	all := make([]Status, 0, len(p.entries)+len(p.gone))
	for _, e := range p.entries {
		all = append(all, e.status())
	}
	for _, e := range p.gone {
		s := e.status()
		s.Removed = true
		all = append(all, s)
	}
	return all
}

func (e *entry) status() Status {
	s := Status{
		Server: e.Server, Weight: e.weight, Operator: e.state, Observed: e.observed, Since: e.since,
		Sessions: e.Active(), Limit: e.Limit(), Backup: e.file.Backup, Priority: e.file.Priority, Usable: e.usable,
	}
	if e.ejected && e.observed == Up {
		s.Observed = Ejected
	}
	if e.usable {
		s.Effective = float64(e.weight) * float64(e.ramp) / 100
	}
	return s
}
