package load

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Spec asks for one measurement of one balancer.
type Spec struct {
	Kind    string        // ping, churn, down, up, idle
	Target  string        // where clients connect: the balancer, or a server itself
	Servers []string      // where this process serves
	Conns   int           // clients at once: connections or, for down and up, streams
	Size    int           // bytes of a message, or of one send or read of a stream
	Rate    int           // ping: messages a second over all connections, sent by the clock; 0: as fast as answers come
	Pings   int           // down, up: connections that ping beside the streams at Rate
	Warm    time.Duration // compares every byte, is not measured
	For     time.Duration // measured
	CPU     int           // core to stay on; -1: any
	Pids    []int         // processes of the balancer
}

// Result is what one measurement found.
type Result struct {
	Units    float64 // messages, connections or bytes while measuring
	Seconds  float64
	P50      float64 // ns, of messages or connections
	P99      float64
	P999     float64
	Messages float64 // down, up with Pings: messages answered
	Failed   int
	Errors   []string // the first few failures in words
	Use      Use      // what was consumed while measuring
	Idle     Idle     // idle only
}

// Rate is units a second.
func (r *Result) Rate() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return r.Units / r.Seconds
}

// Idle is what a number of quiet sessions cost, above the state before them.
type Idle struct {
	Sessions int
	RSS, PSS float64 // bytes for each session
	FDs      float64 // descriptors for each session
	Pipes    float64 // pipe ends for each session
	Wakeups  float64 // CPU ns a second while all are idle
}

// Flags ties a Spec to command line flags.
func (s *Spec) Flags(f *flag.FlagSet) {
	f.StringVar(&s.Kind, "kind", "ping", "ping, churn, down, up or idle")
	f.StringVar(&s.Target, "target", "127.0.0.1:7000", "address of the balancer")
	f.Func("servers", "addresses to serve on, comma separated", func(v string) error {
		s.Servers = strings.Split(v, ",")
		return nil
	})
	f.IntVar(&s.Conns, "conns", 64, "connections or streams at once")
	f.IntVar(&s.Size, "size", 64, "bytes of a message or of a chunk of a stream")
	f.IntVar(&s.Rate, "rate", 0, "messages a second, 0 for as many as come back")
	f.IntVar(&s.Pings, "pings", 0, "paced connections beside the streams of down and up")
	f.DurationVar(&s.Warm, "warm", 200*time.Millisecond, "warm-up, every byte compared")
	f.DurationVar(&s.For, "for", time.Second, "time measured")
	f.IntVar(&s.CPU, "cpu", -1, "core to stay on, -1 for any")
	f.Func("pids", "processes of the balancer, comma separated", func(v string) error {
		for _, p := range strings.Split(v, ",") {
			n, err := strconv.Atoi(p)
			if err != nil {
				return err
			}
			s.Pids = append(s.Pids, n)
		}
		return nil
	})
}

// Args is the command line that Flags reads the same Spec from.
func (s *Spec) Args() []string {
	a := []string{"-kind=" + s.Kind, "-target=" + s.Target, "-servers=" + strings.Join(s.Servers, ","),
		fmt.Sprint("-conns=", s.Conns), fmt.Sprint("-size=", s.Size), fmt.Sprint("-rate=", s.Rate),
		fmt.Sprint("-pings=", s.Pings), "-warm=" + s.Warm.String(), "-for=" + s.For.String(), fmt.Sprint("-cpu=", s.CPU)}
	if len(s.Pids) > 0 {
		pids := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Pids), " ", ","), "[]")
		a = append(a, "-pids="+pids)
	}
	return a
}

func (s *Spec) check() error {
	switch {
	case len(s.Servers) == 0:
		return fmt.Errorf("no server address")
	case s.Conns < 1:
		return fmt.Errorf("conns: got %d, want at least 1", s.Conns)
	case s.Size <= headerLen || s.Size > 1<<30:
		return fmt.Errorf("size: got %d, want %d to 1 GiB", s.Size, headerLen+1)
	case s.Pings > 0 && s.Rate <= 0:
		return fmt.Errorf("pings need a rate")
	}
	return nil
}
