package cli

import (
	"context"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sluice/health"
)

const defaultFile = "/etc/sluice/sluice.toml"

func newRun() *cobra.Command {
	file := defaultFile
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve in the foreground",
		Long: `Serve in the foreground.

SIGTERM and SIGINT stop: listeners close, sessions may go on for process.shutdown_timeout; a second one cuts them.
SIGHUP reads the configuration again, SIGUSR1 opens the log file again, SIGQUIT prints the goroutines' stacks.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(file, cmd.ErrOrStderr()) },
	}
	cmd.Flags().StringVarP(&file, "config", "c", defaultFile, "configuration `FILE`")
	return cmd
}

// run serves until a signal ends it.
func run(file string, stderr io.Writer) error {
	signals := catch()
	defer signals.release()
	cfg, warnings, err := load(file, stderr)
	if err != nil {
		return err
	}
	lim, err := limitsFor(cfg)
	if err != nil {
		return err
	}
	out, err := openLog(cfg.Log.Output)
	if err != nil {
		return err
	}
	defer out.close()
	log := newLogger(out, cfg.Log)
	b, err := build(cfg, log, lim, nil)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn("configuration", "warning", w.String())
	}
	log.Info("limits", lim.args(cfg)...)
	return b.serve(file, signals, out)
}

// serve runs the balancer and answers signals until it has ended.
func (b *balancer) serve(file string, in *signals, out *logWriter) error {
	runtime.GOMAXPROCS(b.limits.shards + 1) // one more for everything that is not a shard
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- b.server.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-b.server.Started():
	}
	if err := closeOnExec(); err != nil {
		b.log.Warn("descriptors stay open in programs that are executed", "error", err)
	}
	b.checker = health.New(b.checked)
	defer b.checker.Close()
	b.updateChecks()
	b.log.Info("serving", "config", file, "listeners", b.listening(), "pools", len(b.cfg.Pools), "version", version())
	again := time.NewTicker(resolveAgain)
	defer again.Stop()
	ramp := time.NewTimer(0)
	defer ramp.Stop()
	reload := &loader{balancer: b, first: b.cfg, file: file, out: make(chan loaded, 1)}
	for {
		select {
		case err := <-ended:
			b.log.Info("stopped")
			return err
		case s := <-in.stop:
			b.stop(s, ctx, stop)
		case <-in.reload:
			reload.begin(ctx)
		case s := <-in.other:
			b.signal(s, out)
		case l := <-reload.out:
			reload.end(ctx, l)
		case <-again.C:
			if b.unresolved() {
				reload.resolveAgain(ctx)
			}
		case now := <-ramp.C:
			ramp.Reset(b.ramps(now))
		}
	}
}

// stop begins to stop; the second time it stops at once.
func (b *balancer) stop(s os.Signal, ctx context.Context, stop func()) {
	if ctx.Err() == nil {
		b.log.Info("stopping", "signal", s.String(), "sessions", b.server.Stats().Sessions, "timeout", b.cfg.Process.ShutdownTimeout)
		stop()
		return
	}
	b.log.Warn("stopping at once", "signal", s.String())
	b.server.Close()
}

func (b *balancer) signal(s os.Signal, out *logWriter) {
	switch s {
	case unix.SIGUSR1:
		if err := out.reopen(); err != nil {
			b.log.Error("log not opened again", "error", err)
		}
	case unix.SIGUSR2:
		b.log.Warn("SIGUSR2 ignored: upgrade in place is not built; restart instead")
	case unix.SIGQUIT:
		pprof.Lookup("goroutine").WriteTo(out, 2)
	}
}

// closeOnExec marks every descriptor but the standard streams. Go and l4 open theirs with CLOEXEC; netpoll does not, and
// neither may who started us. A program that we execute must not hold a listener or an event loop of ours.
func closeOnExec() error {
	return unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// listening is every address that is listened on.
func (b *balancer) listening() []string {
	var all []string
	for _, l := range b.cfg.Listeners {
		all = append(all, b.server.Addrs(l.Name)...)
	}
	return all
}
