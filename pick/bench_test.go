package pick

import (
	"fmt"
	"testing"
)

var sizes = []int{3, 10, 100, 1000}

// benchSet is a Set of n servers, weighing alike or 1 to 10.
func benchSet(tb testing.TB, policy Policy, n int, weight func(i int) int) *Set {
	tb.Helper()
	p := NewPool()
	if err := p.Configure(Config{Policy: policy, Servers: serversOf(n, weight)}); err != nil {
		tb.Fatal(err)
	}
	return p.Set()
}

func serversOf(n int, weight func(i int) int) []ServerConfig {
	servers := make([]ServerConfig, n)
	for i := range servers {
		servers[i] = ServerConfig{Addr: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Weight: weight(i)}
	}
	return servers
}

func equalWeights(int) int   { return 1 }
func smallWeights(i int) int { return 1 + i%10 }

// hugeWeights have no common divisor and a sum far beyond any table.
func hugeWeights(i int) int { return 1 + i*999_983%MaxWeight }

var weightings = []struct {
	name   string
	weight func(int) int
}{{"equal", equalWeights}, {"weighted", smallWeights}, {"huge", hugeWeights}}

// BenchmarkPick is one pick of one goroutine, without a session.
func BenchmarkPick(b *testing.B) {
	for _, p := range policies {
		for _, w := range weightings {
			for _, n := range sizes {
				b.Run(fmt.Sprintf("%s/%s/%d", p.name, w.name, n), func(b *testing.B) {
					set, st, key := benchSet(b, p.policy, n, w.weight), NewStateAt(0), uint64(0)
					st.Now = 1
					b.ReportAllocs()
					b.ResetTimer()
					for range b.N { // not b.Loop, which costs as much as a pick
						key++
						set.Pick(st, key, nil)
					}
				})
			}
		}
	}
}

// BenchmarkBalancer is the same from any goroutine: compare -cpu 1 with -cpu N.
func BenchmarkBalancer(b *testing.B) {
	for _, p := range policies {
		b.Run(p.name, func(b *testing.B) {
			balancer, err := NewBalancer(Config{Policy: p.policy, Servers: serversOf(100, smallWeights)})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				key := uint64(0)
				for pb.Next() {
					key++
					balancer.Pick(key)
				}
			})
		})
	}
}

// BenchmarkPublish is what a change costs the one who makes it: one server of
// 1,000 goes, or comes back.
func BenchmarkPublish(b *testing.B) {
	for _, p := range policies {
		for _, w := range weightings {
			b.Run(p.name+"/"+w.name, func(b *testing.B) {
				pool := NewPool()
				if err := pool.Configure(Config{Policy: p.policy, Servers: serversOf(1000, w.weight)}); err != nil {
					b.Fatal(err)
				}
				s := pool.Set().At(500)
				up := false
				for b.Loop() {
					pool.SetUp(s, up)
					up = !up
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/publish")
			})
		}
	}
}
