// Package cli is the command line. It reads the configuration and ties the parts together: conf's values become pools
// of pick, services of l4 and targets of health; health's word goes to the pools.
//
// Read run.go for the life of the process, build.go for what becomes of a configuration, demo.go for the demonstration.
package cli
