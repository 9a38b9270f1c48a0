package cli

import (
	"context"
	"errors"
	"maps"
	"time"

	"sluice/conf"
)

// A loader reads the file and looks names up beside the loop that answers signals: a resolver that is silent, or a file
// on a disk that hangs, must not keep a stop waiting. It does one at a time. Its methods belong to the loop.
type loader struct {
	*balancer
	first *conf.Config // of the start; some of it holds for good
	file  string
	out   chan loaded
	busy  bool
	again bool // a reload was asked for while one was under way
}

// loaded is a configuration that is ready to be changed to, or what is wrong with it.
type loaded struct {
	cfg   *conf.Config
	names map[string][]string
	err   error
	begun time.Time
	asked bool // by a person, not by a name that has to be tried again
}

func (l *loader) begin(ctx context.Context) {
	switch {
	case ctx.Err() != nil: // it stops
	case l.busy:
		l.again = true
	default:
		l.busy = true
		last := maps.Clone(l.names)
		go func() { l.out <- l.read(last) }()
	}
}

func (l *loader) read(last map[string][]string) loaded {
	in := loaded{begun: time.Now(), asked: true}
	var said lineLogger = func(line string) { l.log.Error("reload", "problem", line) }
	if in.cfg, _, in.err = load(l.file, said); in.err == nil {
		in.names = l.resolve(in.cfg, last)
	}
	return in
}

// resolveAgain tries the names of the running configuration again, every resolveAgain as long as one has no address.
func (l *loader) resolveAgain(ctx context.Context) {
	if ctx.Err() != nil || l.busy {
		return
	}
	l.busy = true
	cfg, last := l.cfg, maps.Clone(l.names)
	go func() { l.out <- loaded{cfg: cfg, names: l.resolve(cfg, last)} }()
}

// end changes to what was loaded. A file with errors, or whose listeners cannot be bound, changes nothing.
func (l *loader) end(ctx context.Context, in loaded) {
	l.busy = false
	if ctx.Err() != nil {
		return
	}
	l.finish(in)
	if l.again {
		l.again = false
		l.begin(ctx)
	}
}

func (l *loader) finish(in loaded) {
	err := in.err
	if err == nil {
		err = l.change(in.cfg, in.names)
	}
	switch {
	case errors.Is(err, errSaid):
		l.log.Error("reload refused, the configuration from before stays", "config", l.file)
	case err != nil:
		l.log.Error("reload refused, the configuration from before stays", "config", l.file, "error", err)
	case in.asked:
		l.tellFixed(in.cfg)
		l.log.Info("reloaded", "config", l.file, "listeners", l.listening(), "pools", len(in.cfg.Pools),
			"max_connections", l.limits.maxConnections(in.cfg), "took", time.Since(in.begun))
	}
}

// tellFixed tells of changes that only a restart makes.
func (l *loader) tellFixed(cfg *conf.Config) {
	old := l.first
	for _, key := range []struct {
		name string
		same bool
	}{
		{"process.shards", old.Process.Shards == cfg.Process.Shards},
		{"process.splice", old.Process.Splice == cfg.Process.Splice},
		{"log.level", old.Log.Level == cfg.Log.Level},
		{"log.format", old.Log.Format == cfg.Log.Format},
		{"log.output", old.Log.Output == cfg.Log.Output},
	} {
		if !key.same {
			l.log.Warn("changes only with a restart", "key", key.name)
		}
	}
}
