package peers

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"testing"

	"github.com/buraksezer/consistent"
	"github.com/cloudwego/kitex/pkg/discovery"
	"github.com/cloudwego/kitex/pkg/loadbalance"
	"github.com/dgryski/go-rendezvous"
	"github.com/go-kratos/kratos/v2/registry"
	"github.com/go-kratos/kratos/v2/selector"
	"github.com/go-kratos/kratos/v2/selector/p2c"
	"github.com/go-kratos/kratos/v2/selector/wrr"
	"github.com/kkdai/maglev"
	"github.com/mroth/weightedrand/v2"
	"github.com/serialx/hashring"
	"github.com/smallnest/weighted"
	zerohash "github.com/zeromicro/go-zero/core/hash"
	"google.golang.org/grpc/balancer"

	"sluice/pick"
)

// n is how many servers everybody picks from; weights are 1 to 10 where a library
// has any.
const n = 100

func weight(i int) int { return 1 + i%10 }

func addr(i int) string { return fmt.Sprintf("10.0.%d.%d:80", i/256, i%256) }

func addrs() []string {
	as := make([]string, n)
	for i := range as {
		as[i] = addr(i)
	}
	return as
}

// keys are made before the clock starts: everybody hashes the same strings.
var keys = func() (ks [1024]string) {
	for i := range ks {
		ks[i] = fmt.Sprintf("192.168.%d.%d", i/256, i%256)
	}
	return ks
}()

func key(k int) string { return keys[k&1023] }

// A contender makes a function that makes one pick, the k-th.
type contender struct {
	kind, name string
	alone      bool // one goroutine at a time
	make       func(b *testing.B) func(k int)
}

// BenchmarkPeers has every contender pick from one goroutine and, if it may, from
// as many as there are cores at once. Times are for each pick; in parallel they are
// wall time over all picks, so that two cores that do not hinder each other halve it.
func BenchmarkPeers(b *testing.B) {
	for _, c := range contenders {
		b.Run(c.kind+"/"+c.name+"/one", func(b *testing.B) {
			pick := c.make(b)
			b.ReportAllocs()
			b.ResetTimer()
			for k := range b.N {
				pick(k)
			}
		})
		if c.alone {
			continue
		}
		b.Run(c.kind+"/"+c.name+"/all", func(b *testing.B) {
			pick := c.make(b)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for k := 0; pb.Next(); k++ {
					pick(k)
				}
			})
		})
	}
}

var contenders = []contender{
	{"round_robin", "sluice", false, ours(pick.RoundRobin, equal)},
	{"round_robin", "sluice-State", true, oursAlone(pick.RoundRobin, equal)},
	{"round_robin", "grpc-go", false, grpcContender("round_robin", `{}`, false)},
	{"round_robin", "kitex", false, kitex(loadbalance.NewWeightedRoundRobinBalancer(), equal)},

	{"weighted_round_robin", "sluice", false, ours(pick.WeightedRoundRobin, weight)},
	{"weighted_round_robin", "sluice-State", true, oursAlone(pick.WeightedRoundRobin, weight)},
	{"weighted_round_robin", "grpc-go", false, grpcContender("weighted_round_robin", `{"blackoutPeriod":"0s","weightUpdatePeriod":"0.1s"}`, true)},
	{"weighted_round_robin", "kitex", false, kitex(loadbalance.NewWeightedRoundRobinBalancer(), weight)},
	{"weighted_round_robin", "kitex-interleaved", false, kitex(loadbalance.NewInterleavedWeightedRoundRobinBalancer(), weight)},
	{"weighted_round_robin", "kratos", false, kratos(wrr.New())},
	{"weighted_round_robin", "smallnest", true, smallnest(&weighted.SW{})},
	{"weighted_round_robin", "smallnest-lvs", true, smallnest(&weighted.RRW{})},

	{"weighted_random", "sluice", false, ours(pick.WeightedRandom, weight)},
	{"weighted_random", "sluice-State", true, oursAlone(pick.WeightedRandom, weight)},
	{"weighted_random", "kitex", false, kitex(loadbalance.NewWeightedRandomBalancer(), weight)},
	{"weighted_random", "kitex-alias", false, kitex(loadbalance.NewWeightedRandomWithAliasMethodBalancer(), weight)},
	{"weighted_random", "weightedrand", false, func(b *testing.B) func(int) {
		var choices []weightedrand.Choice[int, int]
		for i := range n {
			choices = append(choices, weightedrand.NewChoice(i, weight(i)))
		}
		c, err := weightedrand.NewChooser(choices...)
		fail(b, err)
		return func(int) { c.Pick() }
	}},
	{"weighted_random", "smallnest", true, smallnest(weighted.NewRandW())},

	// With a session each, for loads are what they look at.
	{"two_choices", "sluice", false, sessions(pick.TwoChoices)},
	{"two_choices", "kratos-p2c", false, kratos(p2c.New())},
	{"two_choices", "sluice-least_conn", false, sessions(pick.LeastConn)},
	{"two_choices", "grpc-go-least_request", false, grpcContender("least_request_experimental", `{"choiceCount":2}`, false)},

	{"source_hash", "sluice", false, oursKeyed(pick.SourceHash)},
	{"source_hash", "kkdai-maglev", false, func(b *testing.B) func(int) {
		m, err := maglev.NewMaglev(addrs(), 65_537)
		fail(b, err)
		return func(k int) { m.Get(key(k)) }
	}},

	{"ring_hash", "sluice", false, oursKeyed(pick.RingHash)},
	{"ring_hash", "serialx-ketama", false, func(*testing.B) func(int) {
		r := hashring.New(addrs())
		return func(k int) { r.GetNode(key(k)) }
	}},
	{"ring_hash", "go-zero", false, func(*testing.B) func(int) {
		h := zerohash.NewConsistentHash()
		for _, a := range addrs() {
			h.Add(a)
		}
		return func(k int) { h.Get(key(k)) }
	}},
	{"ring_hash", "buraksezer-bounded", false, func(*testing.B) func(int) {
		var ms []consistent.Member
		for _, a := range addrs() {
			ms = append(ms, member(a))
		}
		c := consistent.New(ms, consistent.Config{PartitionCount: 65_537, ReplicationFactor: 20, Load: 1.25, Hasher: fnvHasher{}})
		return func(k int) { c.LocateKey([]byte(key(k))) }
	}},

	{"rendezvous", "sluice", false, oursKeyed(pick.Rendezvous)},
	{"rendezvous", "sluice-equal", false, oursKeyedWith(pick.Rendezvous, equal)},
	{"rendezvous", "dgryski", false, func(*testing.B) func(int) {
		r := rendezvous.New(addrs(), hashOf)
		return func(k int) { r.Lookup(key(k)) }
	}},
}

func fail(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

func equal(int) int { return 1 }

func balancerOf(b *testing.B, policy pick.Policy, weight func(int) int) *pick.Balancer {
	cfg := pick.Config{Policy: policy}
	for i := range n {
		cfg.Servers = append(cfg.Servers, pick.ServerConfig{Addr: addr(i), Weight: weight(i)})
	}
	bal, err := pick.NewBalancer(cfg)
	fail(b, err)
	return bal
}

func ours(policy pick.Policy, weight func(int) int) func(*testing.B) func(int) {
	return func(b *testing.B) func(int) {
		bal := balancerOf(b, policy, weight)
		return func(int) { bal.Pick(0) }
	}
}

// oursAlone is what an event loop does: a State of its own, no Balancer.
func oursAlone(policy pick.Policy, weight func(int) int) func(*testing.B) func(int) {
	return func(b *testing.B) func(int) {
		pool, st := balancerOf(b, policy, weight).Pool, pick.NewState(0)
		return func(int) { pool.Set().Pick(st, 0, nil) }
	}
}

func oursKeyed(policy pick.Policy) func(*testing.B) func(int) { return oursKeyedWith(policy, weight) }

func oursKeyedWith(policy pick.Policy, weight func(int) int) func(*testing.B) func(int) {
	return func(b *testing.B) func(int) {
		bal := balancerOf(b, policy, weight)
		return func(k int) { bal.Pick(pick.HashString(key(k))) }
	}
}

func sessions(policy pick.Policy) func(*testing.B) func(int) {
	return func(b *testing.B) func(int) {
		bal := balancerOf(b, policy, weight)
		return func(int) { bal.Acquire(0).Release() }
	}
}

func grpcContender(name, config string, weighs bool) func(*testing.B) func(int) {
	return func(b *testing.B) func(int) {
		picker := grpcPicker(b, name, config, n)
		if weighs {
			report(b, picker, n)
		}
		return func(int) {
			if r, err := picker.Pick(balancer.PickInfo{}); err == nil && r.Done != nil && !weighs {
				r.Done(balancer.DoneInfo{})
			}
		}
	}
}

func kitex(lb loadbalance.Loadbalancer, weight func(int) int) func(*testing.B) func(int) {
	return func(*testing.B) func(int) {
		r := discovery.Result{Cacheable: true, CacheKey: strconv.Itoa(weight(3))}
		for i := range n {
			r.Instances = append(r.Instances, discovery.NewInstance("tcp", addr(i), weight(i), nil))
		}
		picker, ctx := lb.GetPicker(r), context.Background()
		return func(int) { picker.Next(ctx, nil) }
	}
}

func kratos(s selector.Selector) func(*testing.B) func(int) {
	return func(b *testing.B) func(int) {
		var nodes []selector.Node
		for i := range n {
			nodes = append(nodes, selector.NewNode("grpc", addr(i), &registry.ServiceInstance{
				Metadata: map[string]string{"weight": strconv.Itoa(weight(i))},
			}))
		}
		s.Apply(nodes)
		ctx := context.Background()
		return func(int) {
			_, done, err := s.Select(ctx)
			fail(b, err)
			done(ctx, selector.DoneInfo{})
		}
	}
}

func smallnest(w weighted.W) func(*testing.B) func(int) {
	return func(*testing.B) func(int) {
		w.RemoveAll()
		for i := range n {
			w.Add(i, weight(i))
		}
		return func(int) { w.Next() }
	}
}

type member string

func (m member) String() string { return string(m) }

type fnvHasher struct{}

func (fnvHasher) Sum64(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

func hashOf(s string) uint64 { return pick.HashString(s) }
