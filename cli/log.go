package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sluice/conf"
)

// A logWriter never blocks who writes: lines go through a bounded queue to one goroutine. When the reader of a pipe
// stops reading or a disk is slow, lines are dropped and counted, and the count is written when it goes on.
type logWriter struct {
	lines   chan []byte
	out     atomic.Pointer[os.File]
	path    string // to open again; empty for a standard stream
	dropped atomic.Int64
	done    chan struct{}
}

const (
	queuedLines = 4096
	flushWithin = time.Second // how long the end of the process waits for a slow reader
)

func openLog(output string) (*logWriter, error) {
	w := &logWriter{lines: make(chan []byte, queuedLines), done: make(chan struct{})}
	switch output {
	case "stderr", "":
		w.out.Store(os.Stderr)
	case "stdout":
		w.out.Store(os.Stdout)
	default:
		w.path = output
		if err := w.reopen(); err != nil {
			return nil, err
		}
	}
	go w.run()
	return w, nil
}

// reopen opens the file anew, after it was moved away.
func (w *logWriter) reopen() error {
	if w.path == "" {
		return nil
	}
	// O_NONBLOCK: opening a named pipe that nobody reads is an error, and not a wait that no signal ends.
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o640)
	if err != nil {
		return fmt.Errorf("log.output: %w", err)
	}
	if old := w.out.Swap(f); old != nil {
		// A line that is being written to the old one may be lost to it; closing later would leak it on a stuck disk.
		old.Close()
	}
	return nil
}

func (w *logWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- append([]byte(nil), line...):
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

func (w *logWriter) run() {
	for line := range w.lines {
		if line == nil {
			close(w.done)
			return
		}
		if n := w.dropped.Swap(0); n > 0 {
			fmt.Fprintf(w.out.Load(), "sluice: %d log lines were dropped: the log did not take them in time\n", n)
		}
		w.out.Load().Write(line) // a full disk or a closed pipe must not stop the balancer
	}
}

// close writes what is queued, as far as the reader takes it in time.
func (w *logWriter) close() {
	late := time.After(flushWithin)
	select {
	case w.lines <- nil:
	case <-late:
		return
	}
	select {
	case <-w.done:
	case <-late:
	}
}

func newLogger(w io.Writer, cfg conf.Log) *slog.Logger {
	var level slog.Level
	level.UnmarshalText([]byte(cfg.Level)) // conf knows only slog's names
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
