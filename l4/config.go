package l4

import (
	"log/slog"
	"time"

	"sluice/pick"
)

// Config is what a Server serves. It, and all it points to, is not changed after it was handed over.
type Config struct {
	Shards          int           // event loops, each with listening sockets of its own; at least 1
	MaxConnections  int           // sessions at once; beyond, new clients are refused
	MaxPipes        int           // pipes for splicing; 0: never splice, as SpliceOff
	ShutdownTimeout time.Duration // how long sessions may go on once Run's context has ended; 0: no limit
	Splice          Splice
	Services        []*Service
	Log             *slog.Logger // what an operator should read; nil: nothing is said
	OnEnd           func(*Ended) // called on a shard for every accepted connection that ended; must not block. May be nil
}

// Splice says when bytes go through a pipe. The bytes that arrive are the same.
type Splice uint8

// The splice modes.
const (
	SpliceAuto   Splice = iota // streams are spliced, small exchanges copied
	SpliceOff                  // copy everything
	SpliceAlways               // a pipe for every byte, as long as there are pipes
)

// A Service is a listener and how its sessions are treated.
type Service struct {
	Name           string
	Bind           []string // "ip:port", "[v6]:port", "unix:/path", "unix:@abstract"; port 0 takes a free one
	Pool           *Pool
	MaxConnections int // sessions at once; 0: no limit of its own

	IdleTimeout        time.Duration // quiet in both directions; 0: never
	HalfClosedTimeout  time.Duration // quiet after one direction has ended; 0: as IdleTimeout
	MaxSessionDuration time.Duration // 0: none
	MaxSessionJitter   float64       // up to this share of MaxSessionDuration is taken off, at random for each session
	NoHalfClose        bool          // the first end of a direction ends both

	Keepalive   Keepalive
	UserTimeout time.Duration // how long sent data may stay unacknowledged; 0: the kernel's answer

	Backlog     int           // connections that may wait to be accepted; 0: the kernel's maximum (somaxconn)
	DeferAccept time.Duration // accept only once the client has spoken; harms protocols in which the server speaks first
	FastOpen    int           // queue length of TCP Fast Open; 0: off
	V6Only      bool
	Interface   string // listen on this network interface alone
}

// Keepalive is when a silent peer is asked whether it is still there; Idle 0 is off. Both sides of a session are asked.
type Keepalive struct {
	Idle, Interval time.Duration
	Count          int
}

// A Pool is where a service's sessions go: the servers and the choice among them are pick's.
type Pool struct {
	Name           string
	*pick.Pool                   // its servers were prepared by Attach
	ConnectTimeout time.Duration // for each attempt; 0: the kernel's own (minutes)
	ConnectRetries int           // further attempts, each on a server not tried yet; at most 15
	ResetNoServer  bool          // a session that finds no server ends with a reset instead of a FIN
	Key            HashKey
	Timed          bool // the policy wants to know how fast servers answer
}

// HashKey is what a hashing policy sees of a client.
type HashKey uint8

// The hash keys.
const (
	KeyNone HashKey = iota // the policy does not hash
	KeySourceIP
	KeySourceIPPort
)
