// Sluice is a Layer-4 TCP load balancer. See README.md.
package main

import (
	"os"

	"sluice/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
