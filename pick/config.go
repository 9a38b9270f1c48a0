package pick

import (
	"errors"
	"fmt"
	"time"
)

// OperatorState is what the operator wants of a server.
type OperatorState uint8

const (
	Ready OperatorState = iota // takes sessions
	Drain                      // takes no new sessions, those it has go on
	Maint                      // takes none; what becomes of those it has is the embedder's affair
)

func (o OperatorState) String() string { return nameOf([]string{"ready", "drain", "maint"}, int(o)) }

// Observed is what is known of a server: by active checks (up or down, checking
// before the first result) and by real traffic (ejected).
type Observed uint8

const (
	Up Observed = iota
	Checking
	Down
	Ejected // up as far as checks go, but taken out for failing sessions
)

func (o Observed) String() string {
	return nameOf([]string{"up", "checking", "down", "ejected"}, int(o))
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("state %d", i)
}

// A ServerConfig describes one server of a Pool. The zero value of everything but
// Addr and Weight is what most want.
type ServerConfig struct {
	Name           string // default: Addr. Servers may share an address under different names
	Addr           string
	Weight         int  // 0..MaxWeight; 0: no new sessions
	Backup         bool // stands by until every other is down, full or tried
	Priority       int  // lower tiers are used first; backups come after all of them
	MaxConnections int  // 0: no limit
	State          OperatorState

	// Initial is what is taken for true of a server that is new in the Pool, until
	// [Pool.SetUp] knows better. A pool with health checks says Checking.
	Initial Observed
}

// A Config is the whole of what a Pool should be.
type Config struct {
	Servers []ServerConfig
	Policy  Policy // nil: RoundRobin

	// PanicThreshold, 0..1: when less than this share of the servers that the
	// operator wants in use is up, health is no longer believed and all of them
	// are used. 0: never.
	PanicThreshold float64

	// SlowStart is how long a server that came new or back takes to reach its full
	// weight, linearly from a tenth of it. It does not apply to the servers of the
	// first Configure. Somebody has to call [Pool.Tick] meanwhile.
	SlowStart time.Duration

	// BoundedLoad, for the hash policies: no server gets more than this many times
	// its share of the sessions; what is over goes to the next by hash. 0: off,
	// otherwise at least 1; 1.25 is usual.
	BoundedLoad float64

	// OnNew, if not nil, is called for each Server that is made, before anybody
	// else sees it: the place to set Server.Data. It must not call the Pool.
	OnNew func(*Server)
}

// check returns everything that is wrong with a Config.
func (cfg *Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t := cfg.PanicThreshold; !(t >= 0 && t <= 1) {
		bad("panic threshold %v: want 0..1", t)
	}
	if cfg.SlowStart < 0 {
		bad("slow start %v: want 0 or more", cfg.SlowStart)
	}
	if b := cfg.BoundedLoad; b != 0 && !(b >= 1 && b <= 1000) {
		bad("bounded load %v: want 0 or 1..1000", b)
	}
	if cfg.BoundedLoad != 0 && !cfg.hashes() {
		bad("bounded load: only the hash policies have one")
	}
	seen := make(map[string]bool, len(cfg.Servers))
	for i, s := range cfg.Servers {
		name := s.name()
		if seen[name] {
			bad("server %q: the name is used twice", name)
		}
		seen[name] = true
		if err := s.check(); err != nil {
			bad("server %d, %q: %w", i, name, err)
		}
	}
	return errors.Join(errs...)
}

func (s *ServerConfig) check() error {
	switch {
	case s.Addr == "":
		return errors.New("no address")
	case s.Weight < 0 || s.Weight > MaxWeight:
		return fmt.Errorf("weight %d: want 0..%d", s.Weight, MaxWeight)
	case s.MaxConnections < 0:
		return fmt.Errorf("max connections %d: want 0 or more", s.MaxConnections)
	case s.State > Maint:
		return fmt.Errorf("operator state %d: want ready, drain or maint", s.State)
	case s.Initial > Down:
		return fmt.Errorf("initial state %v: want up, checking or down", s.Initial)
	}
	return nil
}

func (s *ServerConfig) name() string {
	if s.Name == "" {
		return s.Addr
	}
	return s.Name
}

func (cfg *Config) policy() Policy {
	if cfg.Policy == nil {
		return RoundRobin
	}
	return cfg.Policy
}

// hashes asks the policy itself, with one member: a function cannot be compared.
func (cfg *Config) hashes() bool {
	_, ok := cfg.policy()([]Member{{Server: NewServer("", ""), Weight: 1}}).(bounder)
	return ok
}
