package pick

import (
	"slices"
	"testing"
)

// FuzzPool drives a Pool and a slow model of it with the same random operations,
// two bytes each, and compares who may be picked, in which tier, and every count.
func FuzzPool(f *testing.F) {
	f.Add(byte(0), []byte("\x00\x01\x10\x02\x20\x13\x30\x04\x40\x25\x50\x06\x60\x37\x70\x08"))
	f.Add(byte(6), []byte("abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add(byte(8), []byte{0x01, 0x00, 0x11, 0x11, 0x21, 0x22, 0x31, 0x33, 0x41, 0x44, 0x51, 0x55, 0x61, 0x66})
	f.Fuzz(func(t *testing.T, policy byte, ops []byte) {
		if len(ops) > 400 {
			return // small stories find as much
		}
		f := &fuzzed{t: t, cfg: Config{Policy: policies[int(policy)%len(policies)].policy}, pool: NewPool(), st: NewStateAt(uint64(policy) << 56)}
		if policy&0x80 != 0 && f.cfg.hashes() {
			f.cfg.BoundedLoad = 1.25
		}
		if policy&0x40 != 0 {
			f.cfg.PanicThreshold = 0.5
		}
		f.configure(0xff)
		for k := 0; k+1 < len(ops); k += 2 {
			f.step(ops[k], ops[k+1])
			f.compare()
		}
		f.drain()
	})
}

// fuzzed is a Pool with its model: what a person would keep on paper.
type fuzzed struct {
	t    *testing.T
	cfg  Config
	pool *Pool
	st   *State
	all  [8]*modelServer
	open []*Server // a slot for each
}

type modelServer struct {
	s           ServerConfig
	server      *Server
	member      bool
	weight      int
	state       OperatorState
	up, ejected bool
	sessions    int64
}

// configure makes the servers of mask the members. Who leaves is forgotten by the
// model but for the identity while there are sessions.
func (f *fuzzed) configure(mask byte) {
	f.cfg.Servers = nil
	for i := range f.all {
		m := f.all[i]
		if m == nil {
			m = &modelServer{s: ServerConfig{
				Name: letter(i), Addr: "same", Weight: 1 + i%3, MaxConnections: i % 4, Priority: i / 5, Backup: i == 7,
			}}
			f.all[i] = m
		}
		joins := mask>>i&1 != 0
		if joins {
			f.cfg.Servers = append(f.cfg.Servers, m.s)
		}
		if joins && !m.member {
			m.weight, m.state, m.up, m.ejected = m.s.Weight, Ready, true, false
		}
		if !joins && m.member && m.sessions == 0 {
			m.server = nil
		}
		m.member = joins
	}
	configure(f.t, f.pool, f.cfg)
	for _, s := range f.pool.Servers() {
		m := f.all[s.Name[0]-'a']
		if m.server != nil && m.server != s.Server {
			f.t.Fatalf("%s is another Server than before", s.Name)
		}
		m.server = s.Server
	}
}

func (f *fuzzed) step(op, arg byte) {
	if op%8 == 0 {
		f.configure(arg)
		return
	}
	m := f.all[arg%8]
	if m.server == nil {
		m.server = NewServer("stranger", "") // changes of it must change nothing
		defer func() { m.server = nil }()
	}
	switch op % 8 {
	case 1:
		f.pool.SetUp(m.server, arg&8 != 0)
		m.up = arg&8 != 0
	case 2:
		f.pool.SetEjected(m.server, arg&8 != 0)
		m.ejected = arg&8 != 0
	case 3:
		m.state = OperatorState(arg / 8 % 3)
		f.pool.SetState(m.server, m.state)
	case 4:
		m.weight = int(arg/8) % 5
		f.pool.SetWeight(m.server, m.weight)
	case 5:
		f.release(int(arg))
	default:
		f.acquire(uint64(arg))
	}
}

// acquire opens a session as a client with two tries would.
func (f *fuzzed) acquire(key uint64) {
	set := f.pool.Set()
	var tried []int
	for range 2 {
		i := set.Acquire(f.st, key, tried)
		f.check(set, i, tried)
		if i < 0 {
			return
		}
		f.open = append(f.open, set.At(i))
		f.all[set.At(i).Name[0]-'a'].sessions++
		tried = append(tried, i)
	}
}

// check holds a pick to the rules: in the best tier that has somebody who is
// neither tried nor full, and -1 only if there is none.
func (f *fuzzed) check(set *Set, got int, tried []int) {
	var free []*modelServer
	for i := range set.Len() {
		m := f.all[set.At(i).Name[0]-'a']
		full := m.s.MaxConnections != 0 && m.sessions >= int64(m.s.MaxConnections)
		if !full && !slices.Contains(tried, i) {
			free = append(free, m)
		}
	}
	if got < 0 != (len(free) == 0) {
		f.t.Fatalf("tried %v: got %d, but %d servers are free", tried, got, len(free))
	}
	if got >= 0 {
		m := f.all[set.At(got).Name[0]-'a']
		if !slices.Contains(free, m) || m.rank() != free[0].rank() {
			f.t.Fatalf("tried %v: got %s of tier %d, the best is %d", tried, m.s.Name, m.rank(), free[0].rank())
		}
	}
}

func (m *modelServer) rank() int {
	if m.s.Backup {
		return 1000
	}
	return m.s.Priority
}

func (f *fuzzed) release(k int) {
	if len(f.open) == 0 {
		return
	}
	k %= len(f.open)
	s := f.open[k]
	f.open = slices.Delete(f.open, k, k+1)
	s.Release()
	m := f.all[s.Name[0]-'a']
	if m.sessions--; m.sessions == 0 && !m.member {
		m.server = nil
		f.pool.Servers() // forgets it, as the next Configure would
	}
}

// compare holds the published Set to the model.
func (f *fuzzed) compare() {
	wanted, healthy := 0, 0
	for _, m := range f.all {
		if m.member && m.state == Ready && m.weight > 0 {
			wanted++
			if m.up && !m.ejected {
				healthy++
			}
		}
	}
	panicking := float64(healthy) < f.cfg.PanicThreshold*float64(wanted)
	set, want := f.pool.Set(), 0
	if set.Panic != panicking {
		f.t.Fatalf("%d of %d healthy: panic %v", healthy, wanted, set.Panic)
	}
	for _, m := range f.all {
		if m.member && m.state == Ready && m.weight > 0 && (panicking || m.up && !m.ejected) {
			want++
		}
	}
	if set.Len() != want {
		f.t.Fatalf("%d servers in the Set, want %d", set.Len(), want)
	}
	for i := range set.Len() {
		m := f.all[set.At(i).Name[0]-'a']
		if set.At(i) != m.server || set.Member(i).Weight != m.weight || m.sessions != m.server.Active() {
			f.t.Fatalf("%s: weight %d, %d sessions; want %d, %d", m.s.Name, set.Member(i).Weight, m.server.Active(), m.weight, m.sessions)
		}
		if i > 0 && m.rank() < f.all[set.At(i - 1).Name[0]-'a'].rank() {
			f.t.Fatalf("%s stands behind a lower tier", m.s.Name)
		}
	}
}

// drain ends all sessions; nobody may be left with one.
func (f *fuzzed) drain() {
	for len(f.open) > 0 {
		f.release(0)
	}
	for _, s := range f.pool.Servers() {
		if s.Sessions != 0 || s.Removed {
			f.t.Fatalf("%s at the end: %+v", s.Name, s)
		}
	}
}
