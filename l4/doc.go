// Package l4 is the data plane: TCP and unix stream connections come in, a server is picked, bytes go both ways.
//
// A Server runs one shard for each CPU. A shard is one netpoll poller that turns the shard's own epoll set; it owns
// its listening sockets, its sessions and their descriptors, and nobody else touches them. There are two doors: an
// inbox of functions to run on the shard, and atomic counters to read.
//
// The rules:
//   - On the way of a connection there is no lock, no allocation, no goroutine, no interface call but the policy's
//     Pick, and no error value: an errno, or a Reason.
//   - Nothing is read that cannot be kept. A direction holds at most one buffer of 32 KiB or one pipe, and only while
//     its receiver is full.
//   - A descriptor has one owner and is closed in one place, at the end of a batch of events. Epoll's data is a slot
//     and its generation, so an event of a past session finds nobody.
//   - Every session ends in shard.close with a Reason.
//   - What we run short of ourselves (descriptors, ports, memory) is never held against a server.
//
// Read session.go and timeout.go for the life of a session, half.go for how bytes move in one direction, shard.go and
// poller.go for the loop, then accept.go, listen.go, server.go. sys.go, addr.go, wheel.go, slab.go and pipe.go are the
// tools.
package l4
