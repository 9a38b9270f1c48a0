// Package conf turns sluice.toml into checked values.
//
// Load and Parse answer with a Config that needs no further looking at, or with every problem of the file
// at once, each with its line. A few rules:
//
//   - Nothing is ignored. A key is known or refused; a known key whose feature is not built yet is refused
//     as "not supported yet", unless it is set to what it is without that feature. later.go has the list.
//   - Defaults stand in one place, default.go. [defaults] is read on top of them, a listener or pool on top
//     of that, so the nearer value wins by being read last.
//   - Checking has no side effects: no name is resolved, no socket opened, no directory looked into.
//   - A Config is not changed after it was returned, so any goroutine may read it.
//
// The order to read the files in: config.go (what comes out), load.go (the way from bytes to Config), table.go
// (how a key is read), process.go, listener.go and pool.go (which keys there are), check.go and loop.go (what must
// hold between them), line.go (where each key stands: the TOML library does not tell).
package conf
