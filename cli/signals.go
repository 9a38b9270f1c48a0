package cli

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// signals are those that a running balancer answers. What does not fit into a channel is dropped, so each kind that
// must not be lost to others has its own: a stop does not drown in a storm of reloads. One reload that waits is as
// good as ten.
type signals struct {
	stop, reload, other chan os.Signal
}

func catch() *signals {
	s := &signals{stop: make(chan os.Signal, 2), reload: make(chan os.Signal, 1), other: make(chan os.Signal, 16)}
	signal.Notify(s.stop, unix.SIGTERM, unix.SIGINT)
	signal.Notify(s.reload, unix.SIGHUP)
	signal.Notify(s.other, unix.SIGUSR1, unix.SIGUSR2, unix.SIGQUIT)
	// A reader of our log that goes away must not take us along. Not ignored, since that is inherited by what we execute.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return s
}

func (s *signals) release() {
	signal.Stop(s.stop)
	signal.Stop(s.reload)
	signal.Stop(s.other)
}
