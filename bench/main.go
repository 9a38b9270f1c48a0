package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	// Cores and the death signal of children belong to a thread: all children
	// are started from this one.
	runtime.LockOSThread()
	args := os.Args[1:]
	run := drive
	if len(args) > 0 {
		switch args[0] {
		case "load":
			run, args = loadOnce, args[1:]
		case "iocopy":
			run, args = ioCopy, args[1:]
		}
	}
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
