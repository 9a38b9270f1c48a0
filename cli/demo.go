package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/signal"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sluice/conf"
	"sluice/l4"
)

// The demonstration: three servers with weights 5, 1, 1, a balancer before them, clients that check every byte.
const (
	demoClients = 8
	demoPool    = "demo"
	// shareError is how far a server's share may be from its weight. A shard is exact, so what is off is the turns that
	// were under way at the end: less than one cycle for each shard and client.
	shareError = 0.02
)

var demoWeights = []int{5, 1, 1}

func newDemo() *cobra.Command {
	var span time.Duration
	asJSON := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Three servers, a balancer and a load, all in this process",
		Long: `Starts three servers with weights 5, 1 and 1, a balancer before them and clients that open connections, send data and
check that every byte comes back. Needs nothing but loopback. Exit status 0 says that every byte came back right and
that each server had its share of the connections.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if span < 0 {
				return errUsage{fmt.Errorf("--for %v: want 0 or more", span)}
			}
			ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			return demo(ctx, span, demoPrinter(cmd.OutOrStdout(), asJSON))
		},
	}
	cmd.Flags().DurationVar(&span, "for", 10*time.Second, "how long; 0s: until interrupted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line instead of text")
	return cmd
}

// demoLine is what the demonstration says once a second, and at its end.
type demoLine struct {
	Seconds     float64   `json:"seconds"`
	Final       bool      `json:"final"`
	Connections int64     `json:"connections"`       // ended so far
	Rate        float64   `json:"connections_per_s"` // since the last line; the mean at the end
	MBps        float64   `json:"mb_per_s"`          // through the balancer, both ways
	Shares      []float64 `json:"shares"`            // of all connections so far, by server
	Weights     []int     `json:"weights"`
	Errors      int64     `json:"errors"`
	Problem     string    `json:"problem,omitempty"`
}

// demo runs the demonstration and says whether all was right.
func demo(ctx context.Context, span time.Duration, say func(demoLine)) error {
	servers, err := startDemoServers(len(demoWeights))
	if err != nil {
		return err
	}
	defer servers.close()
	b, err := demoBalancer(servers)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(b.limits.shards + 1 + runtime.NumCPU()) // servers and clients live here too
	serving, stopServing := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Run(serving) }()
	last := watchDemo(ctx, span, b, newDemoLoad(b.server.Addrs(demoPool)[0]), say)
	stopServing()
	if err := <-ended; err != nil {
		return err
	}
	if last.Problem != "" {
		return fmt.Errorf("demo: %s", last.Problem)
	}
	return nil
}

// demoBalancer is the balancer of a configuration that might stand in a file, but for its ports.
func demoBalancer(servers demoServers) (*balancer, error) {
	text := fmt.Sprintf("[[listeners]]\nname = %q\nbind = \"127.0.0.1:1\"\npool = %[1]q\n[[pools]]\nname = %[1]q\nbalance = \"weighted_round_robin\"\n", demoPool)
	for i, s := range servers {
		text += fmt.Sprintf("[[pools.servers]]\nname = \"s%d\"\naddress = %q\nweight = %d\n", i+1, s.ln.Addr(), demoWeights[i])
	}
	cfg, _, err := conf.Parse("demo.toml", []byte(text))
	if err != nil {
		return nil, err
	}
	cfg.Listeners[0].Bind[0] = conf.Address{IP: anyLoopbackPort}
	lim, err := limitsFor(cfg)
	if err != nil {
		return nil, err
	}
	return build(cfg, newLogger(io.Discard, cfg.Log), lim, nil)
}

// watchDemo runs the load, says how it goes each second, and returns the last line, which it has said too.
func watchDemo(ctx context.Context, span time.Duration, b *balancer, load *demoLoad, say func(demoLine)) demoLine {
	if span > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, span)
		defer cancel()
	}
	load.start(ctx)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	begun := time.Now()
	before, at := demoLine{}, begun
	bytes := int64(0)
	for {
		select {
		case <-second.C:
		case <-load.done:
			return finishDemo(b, load, time.Since(begun), say)
		}
		now := time.Now()
		line := load.line(now.Sub(begun))
		moved := relayed(b.server.Stats())
		line.Rate = float64(line.Connections-before.Connections) / now.Sub(at).Seconds()
		line.MBps = float64(moved-bytes) / 1e6 / now.Sub(at).Seconds()
		say(line)
		before, at, bytes = line, now, moved
	}
}

func finishDemo(b *balancer, load *demoLoad, took time.Duration, say func(demoLine)) demoLine {
	line := load.line(took)
	line.Final = true
	line.Rate = float64(line.Connections) / took.Seconds()
	line.MBps = float64(relayed(b.server.Stats())) / 1e6 / took.Seconds()
	line.Problem = load.verdict(line)
	say(line)
	return line
}

func relayed(st l4.Stats) (n int64) {
	for _, s := range st.Services {
		n += s.In + s.Out
	}
	return n
}

// verdict is what is wrong, if anything.
func (d *demoLoad) verdict(line demoLine) string {
	if err := d.firstError(); err != nil {
		return err.Error()
	}
	if line.Connections == 0 {
		return "no connection was made"
	}
	total := 0
	for _, w := range demoWeights {
		total += w
	}
	for i, share := range line.Shares {
		want := float64(demoWeights[i]) / float64(total)
		slack := shareError + float64(total*runtime.NumCPU()+demoClients)/float64(line.Connections)
		if math.Abs(share-want) > slack {
			return fmt.Sprintf("server s%d had %.1f %% of the connections, want %.1f %%", i+1, 100*share, 100*want)
		}
	}
	return ""
}

// demoPrinter says lines to a person or to a program.
func demoPrinter(w io.Writer, asJSON bool) func(demoLine) {
	if asJSON {
		out := json.NewEncoder(w)
		return func(l demoLine) { out.Encode(l) }
	}
	return func(l demoLine) {
		if l.Final {
			fmt.Fprintf(w, "\n%d connections in %.1f s, %.0f a second, %.0f MB/s through the balancer\n", l.Connections, l.Seconds, l.Rate, l.MBps)
			for i, share := range l.Shares {
				fmt.Fprintf(w, "  s%d  weight %d  %5.1f %% of the connections\n", i+1, l.Weights[i], 100*share)
			}
			if l.Problem == "" {
				fmt.Fprintln(w, "every byte came back right, and the shares are right")
			}
			return
		}
		fmt.Fprintf(w, "%4.0fs  %7.0f conn/s  %7.0f MB/s  shares", l.Seconds, l.Rate, l.MBps)
		for i, share := range l.Shares {
			fmt.Fprintf(w, "  s%d %.1f%%", i+1, 100*share)
		}
		fmt.Fprintf(w, "  errors %d\n", l.Errors)
	}
}
