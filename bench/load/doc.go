// Package load is a load generator for TCP balancers: the clients and the
// servers of a test in one process and one thread, which never sleeps.
//
// Its rules:
//
//   - One thread, raw system calls, epoll asked again and again with timeout 0.
//     A generator that sleeps makes every send of the balancer pay for waking
//     it, and that moves figures by up to three times.
//   - Every byte has a place in a pattern (pattern.go), which depends on the
//     connection and the direction. During the warm-up every byte is compared,
//     while measuring the first and last eight of every read, and always the
//     number of bytes. A wrong, missing or surplus byte is a failure.
//   - A failed connection is counted, never repeated in silence.
//   - Nothing is unbounded: a phase ends by the clock, and what hangs after it
//     is a failure.
//
// Read spec.go (what can be asked), rig.go (the loop), end.go (one socket),
// server.go, then a test each: pingpong.go (T1, T2, T6), bulk.go (T3, T5) and
// idle.go (T4). meter.go reads what the balancer consumed.
package load
