package conf

import (
	"net/netip"
	"time"
)

// The structs follow the file: a table is a struct, a key is a field of the same name. Choices stay the words of
// the file. A duration of 0 means none, a limit of 0 means no limit. Line is where a table begins in the file, for
// what a later stage has to say about it.

// Config is one checked configuration. Nobody writes to it after Load, so it is safe for concurrent use.
type Config struct {
	File      string // as given to Load or Parse
	Process   Process
	Log       Log
	Admin     Admin
	Listeners []Listener // at least one, in the order of the file
	Pools     []Pool     // at least one, in the order of the file
}

// Process is what holds for the whole process.
type Process struct {
	Line int // 0: the file has no [process]

	Shards          int // 0: one for each usable CPU
	MaxConnections  int // 0: what the descriptor limit carries
	ShutdownTimeout time.Duration
	User            string
	Splice          string // auto, off, always
}

// Log is where messages and access lines go.
type Log struct {
	Level  string // debug, info, warn, error
	Format string // text, json
	Output string // stderr, stdout or a path
	Access string // off, stderr, stdout or a path
}

// Admin is the admin listener.
type Admin struct {
	Listen    Address // zero: none
	TokenFile string
	TLS       AdminTLS
}

// AdminTLS is the admin listener's side of TLS; Cert is empty when it has none.
type AdminTLS struct {
	Cert     string
	Key      string
	ClientCA string
}

// Listener is one [[listeners]] table, with [defaults] filled in.
type Listener struct {
	Line int

	Name string
	Bind []Address // at least one; each an IP address with port or a unix path
	Pool string    // name of a pool that exists; empty only with Routes

	MaxConnections      int
	MaxConnectionsPerIP int
	MaxConnectionRate   int
	ConnectionBurst     int // MaxConnectionRate unless set

	Access     []string
	AccessFile string
	Shadow     []string // of access, limits

	ProxyProtocol  string // off, optional, required
	TrustedCIDRs   []string
	UntrustedProxy string // reject, ignore
	PrefaceTimeout time.Duration
	StartTLS       string // empty, postgres

	IdleTimeout        time.Duration
	HalfClose          bool
	HalfClosedTimeout  time.Duration
	MaxSessionDuration time.Duration
	MaxSessionJitter   float64 // 0..1
	BandwidthIn        int64   // bytes a second
	BandwidthOut       int64   // bytes a second

	Keepalive   Keepalive
	UserTimeout time.Duration
	Backlog     int           // 0: somaxconn
	DeferAccept time.Duration // whole seconds
	FastOpen    int           // queue length; 0: off
	V6Only      bool
	Interface   string
	Transparent bool

	TLS    *ListenerTLS // nil: bytes pass as they are
	Routes []Route
}

// Keepalive is TCP keepalive, in whole seconds. Idle 0: off.
type Keepalive struct {
	Idle     time.Duration
	Interval time.Duration
	Count    int
}

// ListenerTLS terminates TLS at a listener.
type ListenerTLS struct {
	Certificates  []Certificate
	ClientCA      string
	MinVersion    string // 1.2, 1.3
	MaxHandshakes int
}

// Certificate names the two files of one certificate.
type Certificate struct {
	Cert string
	Key  string
}

// Route is one [[listeners.routes]] table.
type Route struct {
	Line   int
	SNI    []string
	ALPN   []string
	Source []netip.Prefix
	Pool   string
}

// Pool is one [[pools]] table, with [defaults] filled in.
type Pool struct {
	Line int

	Name        string
	Balance     string  // canonical name, see balance.go
	HashKey     string  // source_ip, source_ip_port, sni
	BoundedLoad float64 // 0: not bounded; else at least 1

	ConnectTimeout time.Duration
	ConnectRetries int // 0..15
	MaxConnecting  int // for each server

	OnNoServer     string // close, reset, hold, unlisten
	MaxQueue       int
	QueueTimeout   time.Duration
	PanicThreshold float64 // share, 0..1

	SendProxy string // off, v1, v2
	ProxyTLVs []string
	Source    []netip.Addr

	SlowStart time.Duration
	OnDown    string // keep, drain, close

	TLS     *PoolTLS // nil: plain
	Check   *Check   // nil: no active check
	Outlier Outlier  // ConsecutiveFailures 0: off
	Servers []Server // at least one, in the order of the file
}

// PoolTLS originates TLS towards the servers.
type PoolTLS struct {
	ServerName string
	CA         string
	Cert       string
	Key        string
	Verify     bool
}

// Check is a pool's active check, with [defaults.check] filled in.
type Check struct {
	Line int

	Type         string // tcp, tls, http, https, send_expect, redis, postgres, mysql, exec
	Interval     time.Duration
	FastInterval time.Duration // Interval unless set
	DownInterval time.Duration // Interval unless set
	Timeout      time.Duration
	Rise         int
	Fall         int
	Jitter       float64    // share of the interval, 0..1
	InitialState string     // checking, up, down
	Port         uint16     // 0: the server's
	Address      netip.Addr // invalid: the server's
	SendProxy    string     // off, v1, v2

	Send        string
	SendHex     string
	Expect      string
	ExpectHex   string
	ExpectRegex string

	Method       string
	Path         string
	Host         string
	ExpectStatus string

	User         string
	PasswordFile string
	Database     string
	TLS          bool
	Role         string // any, primary, replica
	MaxLag       time.Duration

	Command []string
}

// Outlier ejects servers by the word of real traffic.
type Outlier struct {
	ConsecutiveFailures int // 0: off
	Window              time.Duration
	EjectionTime        time.Duration
	MaxEjectionTime     time.Duration
	MaxEjectionPercent  int
}

// Server is one [[pools.servers]] table.
type Server struct {
	Line int

	Name           string  // the address as written unless set; unique in its pool
	Address        Address // IP address or host name with port, or a unix path
	Weight         int     // 0..1000000; 0: no new sessions
	Backup         bool
	Priority       int // lower tiers first
	MaxConnections int
	State          string // ready, drain, maint
}

// Address is where to listen or to connect to. Exactly one of IP, Unix and Host is set; an Address is comparable.
type Address struct {
	IP   netip.AddrPort
	Unix string // path of the socket
	Host string // host name that is still to be resolved, with Port
	Port uint16 // of Host only
}
