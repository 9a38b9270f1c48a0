package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice/bench/load"
)

// drive is `bench`: outside it builds sluice and encloses, inside it runs.
func drive(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range chosen {
			fmt.Println(c.test, c.label)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if !inside() {
		if err := o.resolve(dir); err != nil {
			return err
		}
		if !o.host {
			return enclose(append(args, "-sluice="+o.sluice))
		}
	} else if err := furnish(o.congestion); err != nil {
		return err
	}
	return run(o, chosen, dir)
}

// run measures test by test. A contender is started once for all the cases of
// a test: what it keeps from one case to the next, it keeps in real life too.
func run(o *options, chosen []testCase, dir string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	field, err := o.contenders()
	if err != nil {
		return err
	}
	prefer(o.nice)
	rep := newReport(o, field)
	fmt.Println(rep.Machine)
	for len(chosen) > 0 && ctx.Err() == nil {
		n := 1
		for n < len(chosen) && chosen[n].test == chosen[0].test {
			n++
		}
		if err := runTest(ctx, o, field, chosen[:n], dir, rep); err != nil {
			return err
		}
		chosen = chosen[n:]
	}
	rep.printTargets(os.Stdout)
	if o.json != "" {
		if err := rep.save(o.json); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if n := rep.failures(); n > 0 {
		return fmt.Errorf("%d connections or bytes failed, see above", n)
	}
	return nil
}

func runTest(ctx context.Context, o *options, field []contender, group []testCase, dir string, rep *report) error {
	if group[0].test == "T3" && !strings.Contains(o.peers, direct) {
		field = append(field[:len(field):len(field)], contender{name: direct})
	}
	up, err := startAll(o, field, dir)
	defer func() { stopAll(up) }()
	if err != nil {
		return err
	}
	for _, c := range group {
		cell := newCell(c, field)
		for round := range c.rounds(o) {
			if err := runRound(ctx, o, rep, cell, up, round, dir); err != nil {
				return err
			}
		}
		rep.Cells = append(rep.Cells, cell)
		cell.print(os.Stdout)
	}
	return nil
}

// runRound lets every contender have a turn. Two runs on one machine take turns
// round by round.
func runRound(ctx context.Context, o *options, rep *report, cell *cell, up []*running, round int, dir string) (err error) {
	asked := time.Now()
	release := machineTurn()
	defer release()
	rep.waited += time.Since(asked)
	for i := range up {
		// Another one begins each round: none always runs on what one
		// particular other left behind.
		k := (i + round) % len(up)
		if cell.test == "T4" {
			// A fresh process, so that its baseline is one.
			if up[k], err = restart(o, up[k], dir); err != nil {
				return err
			}
		}
		res, err := measureCalm(ctx, o, cell.testCase, up[k])
		if err != nil {
			return fmt.Errorf("%s, %s: %w", cell.label, up[k].name, err)
		}
		cell.Rounds[k] = append(cell.Rounds[k], res)
	}
	return nil
}

func startAll(o *options, field []contender, dir string) (up []*running, err error) {
	for i, c := range field {
		r, err := start(c, layoutOf(i, o.servers), dir, o.balancerCPU)
		if err != nil {
			return up, err
		}
		up = append(up, r)
	}
	return up, nil
}

func stopAll(up []*running) {
	for _, r := range up {
		r.stop()
	}
}

func restart(o *options, r *running, dir string) (*running, error) {
	r.stop()
	again, err := start(r.contender, r.layout, dir, o.balancerCPU)
	if err != nil {
		return r, err
	}
	return again, nil
}

// measureCalm measures again when others used more than calm of the machine,
// and keeps the calmest. What others use does not depend on the contender, so
// the choice favours none.
func measureCalm(ctx context.Context, o *options, c testCase, r *running) (*load.Result, error) {
	const calm = .15
	again := o.again
	if c.test == "T4" {
		again = 0 // the process would have its memory already
	}
	best, err := measure(ctx, o, c, r)
	for tries := 0; err == nil && tries < again && best.Failed == 0 && disturbance(best) > calm; tries++ {
		res, err := measure(ctx, o, c, r)
		if err != nil {
			return nil, err
		}
		// A failure is never measured away.
		if res.Failed > 0 || disturbance(res) < disturbance(best) {
			best = res
		}
	}
	return best, err
}

// measure runs the generator once against one contender.
func measure(ctx context.Context, o *options, c testCase, r *running) (*load.Result, error) {
	spec := c.timed(o.warm, o.measured, r.name)
	spec.CPU, spec.Servers, spec.Pids, spec.Target = o.loadCPU, r.servers, r.pids, r.bind()
	if r.command == nil {
		spec.Target = r.servers[0]
	}
	limit := spec.Warm + spec.For + 20*time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"load"}, spec.Args()...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The generator's thread is never idle; interrupting it to ask it to
	// yield gains nothing.
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := startOn(o.loadCPU, cmd); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("load: %w: %s", err, words.String())
	}
	if err := r.alive(); err != nil {
		return nil, err
	}
	res := &load.Result{}
	if err := json.Unmarshal(out.Bytes(), res); err != nil {
		return nil, fmt.Errorf("load said %q: %w", out.String(), err)
	}
	return res, nil
}

func waitFor(gone chan error) bool {
	select {
	case <-gone:
		return true
	case <-time.After(3 * time.Second):
		return false
	}
}

// kernelRelease is what uname -r says.
func kernelRelease() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}
