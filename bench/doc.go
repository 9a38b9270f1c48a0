// Command bench measures sluice beside HAProxy, nginx stream and a plain Go
// relay, on the same work in one run:
//
//	go run ./bench -quick
//
// Its rules:
//
//   - Contenders are processes with equal configurations; sluice is one of them
//     and gets no other treatment.
//   - The balancer stays on one core, the generator (package load) on another.
//     Everything runs in a network namespace of its own.
//   - Contenders take turns, round by round, with a new one first in each
//     round. A ratio is formed within a round and the median over rounds is
//     shown, so what slows the machine for a while slows all.
//   - The reference is the best HAProxy, with or without splice, chosen for each
//     test and each figure.
//
// Read drive.go (the run), cases.go (the tests), contender.go (how each
// balancer is configured), stats.go and table.go (figures), enclosure.go (the
// namespace).
package main
