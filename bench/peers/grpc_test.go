package peers

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest"
	_ "google.golang.org/grpc/balancer/roundrobin"
	_ "google.golang.org/grpc/balancer/weightedroundrobin"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// grpcPicker has one of grpc-go's balancers make its picker, over n addresses whose
// connections are all ready.
func grpcPicker(b *testing.B, name, config string, n int) balancer.Picker {
	b.Helper()
	builder := balancer.Get(name)
	cc := &clientConn{states: make(chan balancer.State, 10_000)}
	bal := builder.Build(cc, balancer.BuildOptions{})
	b.Cleanup(bal.Close)
	var cfg serviceconfig.LoadBalancingConfig
	if p, ok := builder.(balancer.ConfigParser); ok {
		parsed, err := p.ParseConfig(json.RawMessage(config))
		if err != nil {
			b.Fatal(err)
		}
		cfg = parsed
	}
	var state resolver.State
	for i := range n {
		addr := resolver.Address{Addr: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)}
		state.Addresses = append(state.Addresses, addr)
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{addr}})
	}
	if err := bal.UpdateClientConnState(balancer.ClientConnState{ResolverState: state, BalancerConfig: cfg}); err != nil {
		b.Fatal(err)
	}
	// The picker of the last update that comes is the one over all connections.
	var picker balancer.Picker
	for {
		select {
		case s := <-cc.states:
			if s.ConnectivityState == connectivity.Ready {
				picker = s.Picker
			}
			continue
		case <-time.After(300 * time.Millisecond):
		}
		break
	}
	if picker == nil {
		b.Skip("no connection became ready")
	}
	return picker
}

// report tells a weighted picker of loads, from which it makes weights 1 to 10.
func report(b *testing.B, picker balancer.Picker, n int) {
	for range 20 * n {
		r, err := picker.Pick(balancer.PickInfo{})
		if err != nil {
			b.Fatal(err)
		}
		i := r.SubConn.(*subConn).n
		r.Done(balancer.DoneInfo{ServerLoad: &v3orcapb.OrcaLoadReport{
			RpsFractional: float64(100 * weight(i)), ApplicationUtilization: 0.5,
		}})
	}
	time.Sleep(300 * time.Millisecond) // its own timer makes the schedule
}

type clientConn struct {
	balancer.ClientConn
	states chan balancer.State
	made   int
}

func (cc *clientConn) NewSubConn(_ []resolver.Address, opts balancer.NewSubConnOptions) (balancer.SubConn, error) {
	cc.made++
	return &subConn{n: cc.made - 1, listener: opts.StateListener}, nil
}
func (cc *clientConn) UpdateState(s balancer.State)            { cc.states <- s }
func (cc *clientConn) ResolveNow(resolver.ResolveNowOptions)   {}
func (cc *clientConn) RemoveSubConn(balancer.SubConn)          {}
func (cc *clientConn) Target() string                          { return "peers" }
func (cc *clientConn) MetricsRecorder() estats.MetricsRecorder { return noMetrics{} }

type subConn struct {
	balancer.SubConn
	n        int
	listener func(balancer.SubConnState)
}

func (sc *subConn) Connect() {
	go func() {
		sc.listener(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
		sc.listener(balancer.SubConnState{ConnectivityState: connectivity.Ready})
	}()
}
func (sc *subConn) Shutdown()                          {}
func (sc *subConn) UpdateAddresses([]resolver.Address) {}
func (sc *subConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	go f(balancer.SubConnState{ConnectivityState: connectivity.Ready})
}
func (sc *subConn) GetOrBuildProducer(balancer.ProducerBuilder) (balancer.Producer, func()) {
	return nil, func() {}
}

type noMetrics struct{ estats.MetricsRecorder }

func (noMetrics) RecordInt64Count(*estats.Int64CountHandle, int64, ...string)       {}
func (noMetrics) RecordFloat64Count(*estats.Float64CountHandle, float64, ...string) {}
func (noMetrics) RecordInt64Histo(*estats.Int64HistoHandle, int64, ...string)       {}
func (noMetrics) RecordFloat64Histo(*estats.Float64HistoHandle, float64, ...string) {}
func (noMetrics) RecordInt64Gauge(*estats.Int64GaugeHandle, int64, ...string)       {}
