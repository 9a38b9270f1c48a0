// Package leak tells whether a test, or a process, gave back what it took.
//
// Check(t) is the first line of a test: it notes goroutines and open
// descriptors (pipes among them) and, once everything else of the test has been
// cleaned up, waits until nothing is left beyond them. It looks at the whole
// process, so a test that uses it does not run in parallel with others.
//
// Of(pid) reads the same from /proc for another process, with its memory and
// CPU time, for tests that run the binary.
//
// Read check.go, then goroutines.go and descriptors.go; process.go stands alone.
package leak
