package main

import (
	"encoding/json"
	"flag"
	"os"

	"sluice/bench/load"
)

// loadOnce is `bench load`: one measurement, its result as JSON on stdout. The
// driver runs it for each round; a person runs it against a balancer under perf
// or strace.
func loadOnce(args []string) error {
	f := flag.NewFlagSet("load", flag.ExitOnError)
	var spec load.Spec
	spec.Flags(f)
	f.Parse(args)
	if err := load.Settle(spec.CPU); err != nil {
		return err
	}
	res, err := load.Run(spec)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}
