package health

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/leak"
	"sluice/internal/peer"
)

// fleet plays the servers of a Checker in a synctest bubble: time is fake, a
// probe takes what it is told to and fails where it is told to.
type fleet struct {
	begin time.Time

	mu     sync.Mutex
	broken map[string]error
	takes  time.Duration
	probes []event // in the order of their start
	busy   map[string]int
	most   int // probes at once
	faults []string
}

type event struct {
	at   time.Duration
	addr string
}

func newFleet() *fleet {
	// Not 0: timers that have expired when a bubble's goroutines look at them
	// crash the race detector (golang/go#78156).
	return &fleet{begin: time.Now(), takes: time.Microsecond, broken: map[string]error{}, busy: map[string]int{}}
}

func (f *fleet) probe(ctx context.Context, addr string) error {
	f.mu.Lock()
	f.probes = append(f.probes, event{time.Since(f.begin), addr})
	f.busy[addr]++
	if f.busy[addr] > 1 {
		f.faults = append(f.faults, "overlapping probes of "+addr)
	}
	f.most = max(f.most, len(f.busy))
	takes := f.takes
	f.mu.Unlock()
	defer f.leave(addr)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(takes):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken[addr]
}

func (f *fleet) leave(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[addr]--; f.busy[addr] == 0 {
		delete(f.busy, addr)
	}
}

func (f *fleet) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// times returns when addr was probed.
func (f *fleet) times(addr string) (at []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.probes {
		if e.addr == addr {
			at = append(at, e.at)
		}
	}
	return at
}

// targets wants n servers checked with the same settings.
func (f *fleet) targets(n int, s Settings) []Target {
	s.Probe, s.Kind = f.probe, "fleet"
	targets := make([]Target, n)
	for i := range targets {
		targets[i] = Target{Owner: i, Addr: fmt.Sprint("server", i), Settings: s}
	}
	return targets
}

// diary is a Report that keeps what it is told: "0 up", "3 down".
type diary struct {
	mu    sync.Mutex
	lines []string
	why   string
}

func (d *diary) report(t Target, up bool, _ time.Time, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprint(t.Owner, " ", map[bool]string{true: "up", false: "down"}[up]))
	d.why = why
}

func (d *diary) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.lines)
	all := strings.Join(d.lines, ", ")
	d.lines = nil
	return all
}

func (d *diary) want(t *testing.T, lines string) {
	t.Helper()
	if got := d.take(); got != lines {
		t.Errorf("reported %q, want %q", got, lines)
	}
}

func bubble(t *testing.T, test func(t *testing.T, f *fleet, c *Checker, d *diary)) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newFleet(), &diary{}
		c := New(d.report)
		test(t, f, c, d)
		c.Close()
		if len(f.faults) > 0 {
			t.Error(f.faults)
		}
	})
}

// pass lets d go by.
func pass(d time.Duration) {
	time.Sleep(d) // fake time
	synctest.Wait()
}

// HLT-05, first round included.
func TestChecksAreSpread(t *testing.T) {
	rows := []struct {
		n        int
		interval time.Duration
		jitter   float64
	}{
		{200, 2 * time.Second, 0.1}, {200, 2 * time.Second, 0}, {1000, 2 * time.Second, 0.1}, {300, 10 * time.Second, 0},
	}
	for _, row := range rows {
		bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
			const bucket = 50 * time.Millisecond
			c.Update(f.targets(row.n, Settings{Interval: row.interval, Jitter: row.jitter}))
			pass(5 * row.interval)
			counts := make([]int, 5*row.interval/bucket+1)
			for _, e := range f.probes {
				counts[e.at/bucket]++
			}
			if row.interval > firstWithin { // its first round is meant to be short
				counts = counts[firstWithin/bucket+1:]
			}
			mean := float64(row.n) * float64(bucket) / float64(row.interval)
			if most := slices.Max(counts); float64(most) > 4*mean {
				t.Errorf("%+v: %d probes in 50 ms, mean %.1f", row, most, mean)
			}
			for _, target := range f.targets(row.n, Settings{}) {
				if at := f.times(target.Addr); len(at) < 4 || at[0] > 2*time.Second {
					t.Fatalf("%+v: %s was probed at %v", row, target.Addr, at)
				}
			}
		})
	}
}

func TestFewServersAreKnownAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		f.broken["server1"] = errors.New("no")
		c.Update(f.targets(3, Settings{Interval: time.Minute}))
		if s := c.Status()[0]; s.State != Checking || s.Why != "not checked yet" {
			t.Errorf("before the first probe: %+v", s)
		}
		pass(30 * time.Millisecond)
		d.want(t, "0 up, 1 down, 2 up")
	})
}

// HLT-09 through the whole Checker, with its times: fast while it changes its
// mind, down_interval when down.
func TestRiseFallAndIntervals(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		c.Update(f.targets(1, Settings{
			Interval: 10 * time.Second, Fast: 2 * time.Second, Down: 30 * time.Second, Rise: 2, Fall: 3, Initial: Up,
		}))
		pass(15 * time.Second) // past the short first and second wait
		f.set(func() {
			f.probes = nil
			f.broken["server0"] = errors.New("refused")
		})
		pass(4 * time.Second) // two probes
		d.want(t, "")
		if s := c.Status()[0]; s.State != Up || s.Streak != 2 || s.Err == nil {
			t.Errorf("on its way down: %+v", s)
		}
		pass(2 * time.Second)
		d.want(t, "0 down")
		if want := "3 checks in a row failed: refused"; d.why != want {
			t.Errorf("why: %q, want %q", d.why, want)
		}
		f.set(func() { delete(f.broken, "server0") })
		pass(30 * time.Second)
		d.want(t, "")
		pass(2 * time.Second)
		d.want(t, "0 up")
		pass(10 * time.Second)

		at, waits := f.times("server0"), []time.Duration(nil)
		for i := range at[1:] {
			waits = append(waits, (at[i+1] - at[i]).Round(100*time.Millisecond))
		}
		if got, want := fmt.Sprint(waits), "[2s 2s 30s 2s 10s]"; got != want {
			t.Errorf("waits %s, want %s", got, want)
		}
	})
}

func TestSlowProbesDoNotOverlap(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		f.takes = 3 * time.Second
		c.Update(f.targets(2, Settings{Interval: time.Second, Timeout: 5 * time.Second}))
		pass(31 * time.Second)
		if n := len(f.times("server0")); n < 9 || n > 11 {
			t.Errorf("%d probes of 3 s in 31 s", n)
		}
		d.want(t, "0 up, 1 up")
	})
}

func TestTimeoutIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		f.takes = time.Hour
		c.Update(f.targets(1, Settings{Timeout: time.Second}))
		pass(1100 * time.Millisecond)
		d.want(t, "0 down")
		if want := "check failed: no answer within 1s: context deadline exceeded"; d.why != want {
			t.Errorf("why: %q", d.why)
		}
	})
}

func TestProbesAtOnceAreCapped(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		f.takes = time.Hour
		c.Update(f.targets(3*atOnce, Settings{Interval: time.Second, Timeout: 10 * time.Second}))
		pass(time.Minute)
		if f.most != atOnce {
			t.Errorf("%d probes at once, want the cap, %d", f.most, atOnce)
		}
	})
}

// HLT-15: an interval of 300 s does not delay what replaces it, and the old
// word stands until there is a new one.
func TestChangedSettingsTakeEffectAtOnce(t *testing.T) {
	for _, initial := range []State{Checking, Up} {
		changeSettings(t, initial)
	}
}

func changeSettings(t *testing.T, initial State) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		targets := f.targets(500, Settings{Interval: 300 * time.Second, Initial: initial})
		c.Update(targets)
		pass(10 * time.Minute)
		d.take()
		f.set(func() {
			f.probes = nil
			f.broken["other port"] = errors.New("refused")
		})
		targets = f.targets(500, Settings{Interval: time.Second, Initial: initial})
		targets[7].Addr = "other port"
		c.Update(targets)
		if s := c.Status()[7]; s.State != Up {
			t.Errorf("a reload made a server %s", s.State)
		}
		pass(2 * time.Second)
		d.want(t, "7 down") // its first result decides, and the others stay what they were
		for _, target := range targets {
			if len(f.times(target.Addr)) == 0 {
				t.Fatalf("%s was not probed within 2 s", target.Addr)
			}
		}
	})
}

func TestUnchangedChecksGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		f.broken["server0"] = errors.New("no")
		slow := f.targets(3, Settings{Interval: 100 * time.Second})
		c.Update(slow[:2])
		pass(300 * time.Second)
		d.want(t, "0 down, 1 up")
		before := c.Status()
		for range 50 { // reloads, one a second; each of them also changes a neighbour
			slow[2].Settings.Interval += time.Second
			c.Update(slow)
			pass(time.Second)
		}
		d.want(t, "2 up")
		after := c.Status()
		for i := range before {
			if before[i].Since != after[i].Since || before[i].State != after[i].State {
				t.Errorf("before %+v, after %+v", before[i], after[i])
			}
		}
		if at := f.times("server1"); len(at) > 5 {
			t.Errorf("50 reloads in between, probed at %v", at)
		}
	})
}

// One address with one check runs once; everybody who asks is told, also who
// comes later.
func TestSharedCheck(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		targets := f.targets(3, Settings{Fall: 1})
		for i := range targets {
			targets[i].Addr = "shared"
		}
		c.Update(targets[:2])
		pass(10 * time.Second)
		d.want(t, "0 up, 1 up")
		if n := len(f.times("shared")); n > 7 {
			t.Errorf("%d probes in 10 s: not shared", n)
		}
		f.set(func() { f.broken["shared"] = errors.New("no") })
		pass(2 * time.Second)
		d.want(t, "0 down, 1 down")
		c.Update(targets)
		synctest.Wait()
		d.want(t, "2 down")
		c.Update(targets[2:])
		f.set(func() { delete(f.broken, "shared") })
		pass(5 * time.Second)
		d.want(t, "2 up")
	})
}

func TestRemovedTargetsAreNotProbed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		c.Update(f.targets(10, Settings{}))
		pass(5 * time.Second)
		c.Update(nil)
		synctest.Wait()
		f.set(func() { f.probes = nil })
		pass(time.Minute)
		if len(f.probes) > 0 || len(c.Status()) > 0 {
			t.Errorf("%d probes, status %v", len(f.probes), c.Status())
		}
	})
}

// A shortage of ours is shown and changes nothing.
func TestOurShortageIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet, c *Checker, d *diary) {
		c.Update(f.targets(1, Settings{}))
		pass(5 * time.Second)
		f.set(func() { f.broken["server0"] = fmt.Errorf("dial: %w", syscall.EMFILE) })
		pass(time.Minute)
		d.want(t, "0 up")
		if s := c.Status()[0]; s.State != Up || s.Streak != 0 || !errors.Is(s.Err, syscall.EMFILE) {
			t.Errorf("%+v", s)
		}
	})
}

// The report may ask and change: no lock is held that it could wait for.
func TestReportMayCallTheChecker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		var c *Checker
		told := 0
		targets := f.targets(2, Settings{})
		c = New(func(Target, bool, time.Time, string) {
			told++
			c.Update(targets)
			_ = c.Status()
		})
		c.Update(targets[:1])
		pass(5 * time.Second)
		c.Close()
		if told != 2 {
			t.Errorf("told %d times, want 2", told)
		}
	})
}

// The old check of an owner is in the middle of a report when the new one has
// its first result.
func TestOneReportAtATime(t *testing.T) {
	leak.Check(t)
	reports, goOn := make(chan bool), make(chan struct{})
	c := New(func(_ Target, up bool, _ time.Time, _ string) {
		reports <- up
		<-goOn
	})
	defer c.Close()
	answer := func(err error) Probe {
		return func(context.Context, string) error { return err }
	}
	c.Update([]Target{{"owner", "server", Settings{Probe: answer(errors.New("no")), Kind: "fails"}}})
	if <-reports {
		t.Error("the first report is not down")
	}
	c.Update([]Target{{"owner", "server", Settings{Probe: answer(nil), Kind: "passes"}}})
	select {
	case <-reports:
		t.Error("a second report while the first had not returned")
	case <-time.After(50 * time.Millisecond): // one that comes too early comes in 10
	}
	goOn <- struct{}{}
	if !<-reports {
		t.Error("the second report is not up")
	}
	goOn <- struct{}{}
}

// For each owner one report at a time, in order, and the last one is the truth,
// while the list, the settings and the answers change all the time.
func TestReportsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		var mu sync.Mutex
		told, inside := map[any]bool{}, map[any]bool{}
		c := New(func(tg Target, up bool, _ time.Time, _ string) {
			mu.Lock()
			last, again := told[tg.Owner]
			if inside[tg.Owner] || again && last == up {
				t.Errorf("owner %v: told %v again, or twice at a time", tg.Owner, up)
			}
			told[tg.Owner], inside[tg.Owner] = up, true
			mu.Unlock()
			for range 100 { // a slow listener; a sleep would wait for ever, with another one waiting for its turn
				runtime.Gosched()
			}
			mu.Lock()
			inside[tg.Owner] = false
			mu.Unlock()
		})
		for round := range 400 {
			targets := f.targets(20, Settings{Interval: time.Duration(5+round%3) * time.Millisecond, Rise: 1, Fall: 1})
			f.set(func() { f.broken = map[string]error{fmt.Sprint("server", round%20): errors.New("no")} })
			c.Update(targets)
			time.Sleep(7 * time.Millisecond)
		}
		pass(time.Second)
		for _, s := range c.Status() {
			if told[s.Owner] != (s.State == Up) {
				t.Errorf("owner %v was told %v last, it is %s", s.Owner, told[s.Owner], s.State)
			}
		}
		c.Close()
	})
}

func TestTwoTargetsOfOneOwnerPanic(t *testing.T) {
	c := New(func(Target, bool, time.Time, string) {})
	defer c.Close()
	defer func() {
		if said := fmt.Sprint(recover()); said != "health: two targets of owner 0" {
			t.Errorf("recovered %q", said)
		}
	}()
	f := newFleet()
	targets := f.targets(2, Settings{})
	targets[1].Owner = 0
	c.Update(targets)
}

// HLT-07 and HLT-01 with real sockets: dead and alive from the start; one that
// answers and resets at once stays up for 60 checks.
func TestRealServers(t *testing.T) {
	leak.Check(t)
	resetting := peer.Listen(t, peer.V4, peer.Say("+PONG\r\n"), peer.RST())
	polite := peer.Listen(t, peer.Unix, peer.ExpectEOF(0))
	dead := peer.Refusing(t, peer.V6)
	s := Settings{Probe: TCP, Kind: "tcp", Interval: 10 * time.Millisecond, Fall: 1}
	d, first := &diary{}, make(chan struct{}, 3)
	c := New(func(tg Target, up bool, since time.Time, why string) {
		d.report(tg, up, since, why)
		first <- struct{}{}
	})
	defer c.Close()
	c.Update([]Target{{"resetting", resetting.Addr(), s}, {"polite", polite.Addr(), s}, {"dead", dead.Addr(), s}})
	for range 3 {
		<-first
	}
	resetting.Wait(60)
	polite.Wait(60)
	d.want(t, "dead down, polite up, resetting up")
}
