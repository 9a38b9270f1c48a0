package health

import (
	"cmp"
	"time"
)

// Settings say how a server is checked; 0 in a field stands for the default.
// They are compared as a whole, but for Probe, for which Kind stands: two
// Settings of the same Kind have the same Probe.
type Settings struct {
	Probe Probe
	Kind  string // the probe and all that it was made from, "tcp"

	Interval time.Duration // 2s
	Fast     time.Duration // while it changes its mind; Interval
	Down     time.Duration // while it is down; Interval
	Timeout  time.Duration // of one probe, 1s; may be above Interval
	Rise     int           // good results in a row that make it up, 2
	Fall     int           // bad results in a row that make it down, 3
	Jitter   float64       // each wait is longer or shorter by up to this share
	Initial  State         // Checking: the first result decides
}

// withDefaults gives what is not set the meaning it has in a configuration.
func (s Settings) withDefaults() Settings {
	s.Interval = cmp.Or(s.Interval, 2*time.Second)
	s.Timeout = cmp.Or(s.Timeout, time.Second)
	s.Rise, s.Fall = cmp.Or(s.Rise, 2), cmp.Or(s.Fall, 3)
	s.Fast, s.Down = cmp.Or(s.Fast, s.Interval), cmp.Or(s.Down, s.Interval)
	return s
}

// Target is somebody's wish to know whether an address is up.
type Target struct {
	Owner    any    // comes back in reports; comparable, and one Target for each
	Addr     string // as Probe takes it
	Settings Settings
}

// identity is what makes two checks the same one.
type identity struct {
	addr     string
	settings struct {
		kind                          string
		interval, fast, down, timeout time.Duration
		rise, fall                    int
		jitter                        float64
		initial                       State
	}
}

func identify(addr string, s Settings) identity {
	id := identity{addr: addr}
	id.settings.kind = s.Kind
	id.settings.interval, id.settings.fast, id.settings.down = s.Interval, s.Fast, s.Down
	id.settings.timeout = s.Timeout
	id.settings.rise, id.settings.fall = s.Rise, s.Fall
	id.settings.jitter, id.settings.initial = s.Jitter, s.Initial
	return id
}

// Status is what is known of one Target.
type Status struct {
	Target
	State    State
	Since    time.Time // of State
	Why      string    // State is as it is
	Checked  time.Time // when the last probe ended; zero: none has
	Err      error     // of the last probe
	Duration time.Duration
	Streak   int // results in a row that speak against State
}
