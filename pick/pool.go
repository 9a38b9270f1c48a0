package pick

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Pool is the one who writes: it knows every server, decides which of them may
// be picked, and publishes that as a Set. Readers load the Set with one atomic
// load and never wait; old Sets go when nobody holds them. All methods are safe
// for concurrent use.
//
// Nothing is called while the lock is held, except the policy and Config.OnNew.
type Pool struct {
	set atomic.Pointer[Set]

	mu      sync.Mutex
	cfg     Config   // as last configured; Servers is not kept
	entries []*entry // in the order of the configuration
	gone    map[key]*entry
	gen     uint64
	started bool // a Configure has been taken: from now on servers are "new"

	// onRamp, if not nil, hears after the lock is let go that a slow start began:
	// a Balancer ticks by itself.
	onRamp func(step time.Duration)
}

// A key is what makes a server the same one in two configurations.
type key struct{ name, addr string }

// An entry is all that is known of one server. Guarded by Pool.mu.
type entry struct {
	*Server
	file   ServerConfig // as the last Configure had it: what differs from it was changed at run time
	weight int
	state  OperatorState

	observed Observed // Up, Checking or Down
	ejected  bool
	fresh    bool // there from the start and not heard of yet: its first "up" is no return
	since    time.Time

	usable  bool      // as last published
	removed bool      // no longer configured, kept for its sessions
	ramp    int       // percent, 100 outside of slow start
	ramped  time.Time // when the ramp began
}

// NewPool returns a Pool without servers: its Set is empty.
func NewPool() *Pool {
	p := &Pool{gone: map[key]*entry{}}
	p.set.Store(&Set{})
	return p
}

// Set returns how things are now. It is one atomic load; keep the Set for as long
// as indices into it are in use.
func (p *Pool) Set() *Set { return p.set.Load() }

// Configure replaces the whole membership, or returns everything that is wrong
// with cfg and changes nothing. Servers with the same name and address stay the
// same *Server with its sessions, health and measurements, also if they were
// removed in between while sessions were open. Weights and operator states that
// were changed at run time stay, unless cfg differs there from the Config before.
func (p *Pool) Configure(cfg Config) error {
	if err := cfg.check(); err != nil {
		return fmt.Errorf("pick: %w", err)
	}
	p.mu.Lock()
	defer p.notify()
	defer p.mu.Unlock()
	old := p.retireLocked()
	now := time.Now()
	p.entries = make([]*entry, 0, len(cfg.Servers))
	for _, sc := range cfg.Servers {
		sc.Name = sc.name()
		k := key{sc.Name, sc.Addr}
		e := old[k]
		delete(old, k)
		switch {
		case e == nil:
			e = p.newEntry(sc, cfg.OnNew, now)
		case e.removed:
			*e = *p.describe(e.Server, sc, now)
		default:
			e.renew(sc)
		}
		e.limit.Store(int64(sc.MaxConnections))
		p.entries = append(p.entries, e)
	}
	for _, e := range old {
		e.removed, e.usable = true, false
	}
	p.gone = old
	p.pruneLocked()
	p.cfg = cfg
	p.cfg.Servers = nil
	p.publishLocked(now)
	p.started = true
	return nil
}

// retireLocked returns every entry by key, members and gone ones.
func (p *Pool) retireLocked() map[key]*entry {
	old := p.gone
	for _, e := range p.entries {
		old[key{e.Name, e.Addr}] = e
	}
	p.entries = nil
	return old
}

// pruneLocked forgets removed servers whose sessions have ended.
func (p *Pool) pruneLocked() {
	for k, e := range p.gone {
		if e.Active() == 0 {
			delete(p.gone, k)
		}
	}
}

func (p *Pool) newEntry(sc ServerConfig, onNew func(*Server), now time.Time) *entry {
	s := NewServer(sc.Name, sc.Addr)
	if onNew != nil {
		onNew(s)
	}
	return p.describe(s, sc, now)
}

// describe returns the entry of a server of which nothing is known yet. One that
// was removed and comes back keeps its sessions and measurements, but nobody has
// checked it meanwhile.
func (p *Pool) describe(s *Server, sc ServerConfig, now time.Time) *entry {
	return &entry{
		Server: s, file: sc, weight: sc.Weight, state: sc.State,
		observed: sc.Initial, fresh: !p.started, since: now, ramp: 100,
	}
}

// renew takes over a new description of the same server.
func (e *entry) renew(sc ServerConfig) {
	if sc.Weight != e.file.Weight {
		e.weight = sc.Weight
	}
	if sc.State != e.file.State {
		e.state = sc.State
	}
	e.file = sc
}

// SetUp tells what checks found out about a server. Of a server that is not (or
// no longer) a member nothing is kept.
func (p *Pool) SetUp(s *Server, up bool) {
	p.change(s, func(e *entry, now time.Time) {
		observed := Down
		if up {
			observed = Up
		}
		if observed != e.observed {
			e.observed, e.since = observed, now
		}
	})
}

// SetEjected takes a server out for failing real sessions, or back in.
func (p *Pool) SetEjected(s *Server, ejected bool) {
	p.change(s, func(e *entry, now time.Time) {
		if ejected != e.ejected {
			e.ejected, e.since = ejected, now
		}
	})
}

// SetState sets what the operator wants of a server, until the configuration
// says something else than it did.
func (p *Pool) SetState(s *Server, state OperatorState) {
	p.change(s, func(e *entry, _ time.Time) { e.state = state })
}

// SetWeight sets the weight of a server, within 0..MaxWeight, until the
// configuration says something else than it did.
func (p *Pool) SetWeight(s *Server, weight int) {
	p.change(s, func(e *entry, _ time.Time) { e.weight = min(max(weight, 0), MaxWeight) })
}

// change applies one change to the entry of a member and publishes a Set if that
// made a difference.
func (p *Pool) change(s *Server, f func(*entry, time.Time)) {
	p.mu.Lock()
	defer p.notify()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.Server == s })
	if i < 0 {
		return
	}
	e, now := p.entries[i], time.Now()
	before := e.standing()
	f(e, now)
	if e.standing() != before {
		p.publishLocked(now)
	}
	if e.observed != Checking {
		e.fresh = false
	}
}

// wanted reports whether the operator lets a server take sessions at all.
func (e *entry) wanted() bool { return e.state == Ready && e.weight > 0 }

// healthy reports whether nothing speaks against a server.
func (e *entry) healthy() bool { return e.observed == Up && !e.ejected }

// standing is what a Set depends on: a first check that fails changes nothing.
func (e *entry) standing() (st struct {
	wanted, healthy bool
	weight          int
}) {
	st.wanted, st.healthy, st.weight = e.wanted(), e.healthy(), e.weight
	return st
}

// publishLocked decides who may be picked, and is the only place that does:
// those whom the operator wants and who are healthy, or in a panic all that are
// wanted.
func (p *Pool) publishLocked(now time.Time) {
	panicking := p.panicLocked()
	members := make([]Member, 0, len(p.entries))
	tiers := p.tieredLocked()
	usable := tiers[:0]
	for _, e := range tiers {
		use := e.wanted() && (e.healthy() || panicking)
		p.rampLocked(e, use, now)
		e.usable = use
		if use {
			usable = append(usable, e)
			members = append(members, Member{Server: e.Server, Weight: e.weight, Ramp: e.ramp})
		}
	}
	p.gen++
	set := &Set{Gen: p.gen, Panic: panicking, members: members}
	if tiers := p.pickers(usable, members); len(tiers) > 0 {
		set.first, set.lower = tiers[0].picker, tiers[1:]
		_, set.timed = set.first.(*leastTime)
	}
	p.set.Store(set)
}

// tieredLocked returns the entries in the order of their tiers.
func (p *Pool) tieredLocked() []*entry {
	es := slices.Clone(p.entries)
	slices.SortStableFunc(es, func(a, b *entry) int { return a.tier(b) })
	return es
}

// tier compares two entries by who is used first; 0: both at once.
func (e *entry) tier(other *entry) int {
	if e.file.Backup != other.file.Backup {
		if other.file.Backup {
			return -1
		}
		return 1
	}
	return cmp.Compare(e.file.Priority, other.file.Priority)
}

// pickers builds one Picker for each run of members that are of one tier.
func (p *Pool) pickers(es []*entry, members []Member) []tier {
	var tiers []tier
	for from := 0; from < len(es); {
		to := from + 1
		for to < len(es) && es[to].tier(es[from]) == 0 {
			to++
		}
		picker := p.cfg.policy()(members[from:to:to])
		if p.cfg.BoundedLoad != 0 {
			picker = picker.(bounder).bound(p.cfg.BoundedLoad)
		}
		tiers = append(tiers, tier{from, picker})
		from = to
	}
	return tiers
}

// panicLocked reports whether so few servers are up that health is not believed.
func (p *Pool) panicLocked() bool {
	wanted, healthy := 0, 0
	for _, e := range p.entries {
		if e.wanted() {
			wanted++
			if e.healthy() {
				healthy++
			}
		}
	}
	return float64(healthy) < p.cfg.PanicThreshold*float64(wanted)
}
