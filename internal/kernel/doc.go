// Package kernel proves the facts of the Linux kernel that sluice rests on. It has tests only: each shows one fact on
// loopback, in about ten lines, and docs/kernel.md says what follows from it. A kernel that answers otherwise is found
// here first, and not in a balancer.
//
// socket_test.go has the tools. The proofs are in listen_test.go (listening sockets), epoll_test.go, splice_test.go,
// tcp_test.go (connections) and process_test.go (descriptors, signals, limits).
package kernel
