// Package peers holds pick against the pickers of other libraries, side by side in
// one run. It is a module of its own, so that their dependencies are nobody else's.
// See README.md for the command and for what it said.
package peers
