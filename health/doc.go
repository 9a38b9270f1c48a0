// Package health finds out which servers are up. It knows addresses and
// probes, not pools: whoever wants to know hands in Targets and a Report, and
// is told of every change.
//
//	probe --error--> verdict (rise, fall) --changed--> Report
//
// A Checker runs one check for each different address and Settings, however
// many Targets ask for it. Checks start spread out, carry jitter, never overlap
// themselves, and are capped in number at once. Update replaces the list of
// Targets while everything that stays the same goes on undisturbed.
//
// A result that says more about this machine than about the server (no
// descriptor or port left) is shown, and counts neither for nor against it.
//
// Read verdict.go, probe.go, target.go, checker.go, check.go.
package health
