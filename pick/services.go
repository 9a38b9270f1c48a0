package pick

import (
	"fmt"
	"sync"
)

// Services has one Balancer for each service name, for clients of a registry. It is
// safe for concurrent use; to find the Balancer of a known name takes no lock.
type Services struct {
	lookup func(name string) (Config, error)
	ready  sync.Map // name to *Balancer
	asking sync.Map // name to *sync.Mutex: held by who makes the Balancer of that name
}

// NewServices returns Services that learn a name's servers from a function, the
// first time that the name is asked for. However many ask at once, the function is
// called once; its answer is kept, an error or an empty list is not.
func NewServices(lookup func(name string) (Config, error)) *Services {
	return &Services{lookup: lookup}
}

// Balancer returns the Balancer of a service. It is the same one each time: Update
// changes the servers that it has.
func (s *Services) Balancer(name string) (*Balancer, error) {
	if b, ok := s.ready.Load(name); ok {
		return b.(*Balancer), nil
	}
	defer s.lock(name).Unlock()
	if b, ok := s.ready.Load(name); ok {
		return b.(*Balancer), nil
	}
	cfg, err := s.lookup(name)
	if err != nil {
		return nil, fmt.Errorf("pick: look up service %q: %w", name, err)
	}
	return s.store(name, cfg)
}

// Update takes what a registry says of a service now: nodes that stay keep their
// sessions, and whoever holds the Balancer sees the new ones with the next pick. An
// empty list or a bad Config is an error, and the servers stay as they were. A name
// that nobody has asked for is learnt.
func (s *Services) Update(name string, cfg Config) error {
	defer s.lock(name).Unlock()
	if b, ok := s.ready.Load(name); ok {
		if err := b.(*Balancer).Configure(cfg); err != nil {
			return fmt.Errorf("service %q: %w", name, err)
		}
		return nil
	}
	_, err := s.store(name, cfg)
	return err
}

// Forget drops a service; who holds its Balancer may go on with it. The next call
// of Balancer looks the name up anew.
func (s *Services) Forget(name string) {
	defer s.lock(name).Unlock()
	s.ready.Delete(name)
}

// lock serialises what is done to one name. The locks stay: there are as many as
// names that were ever asked for.
func (s *Services) lock(name string) *sync.Mutex {
	mu, _ := s.asking.LoadOrStore(name, new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex)
}

func (s *Services) store(name string, cfg Config) (*Balancer, error) {
	b, err := NewBalancer(cfg)
	if err != nil {
		return nil, fmt.Errorf("service %q: %w", name, err)
	}
	s.ready.Store(name, b)
	return b, nil
}
