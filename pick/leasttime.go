package pick

import "sync/atomic"

// timing is how fast a server answered lately.
type timing struct {
	connect   atomic.Uint64
	firstByte atomic.Uint64
	probe     atomic.Int64
}

const timingSize = 24
