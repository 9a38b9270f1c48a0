package l4

// Reason says why a session ended. The names are those of the access log and of the metrics.
type Reason uint8

// The reasons, in the order of a session's life.
const (
	Normal            Reason = iota // both directions ended, every byte passed on
	ClientReset                     // the client reset the connection, or vanished
	ServerReset                     // the server did
	ClientGone                      // the client reset before a server was found
	ConnectRefused                  // the last server tried refused
	ConnectTimeout                  // the last server tried did not answer within connect_timeout
	ConnectError                    // the last server tried could not be reached for another reason
	NoServer                        // the pool had no server to try
	IdleTimeout                     // no byte in either direction for idle_timeout
	HalfClosedTimeout               // quiet for half_closed_timeout after one direction had ended
	MaxDuration                     // max_session_duration
	LimitListener                   // refused: the listener's max_connections
	LimitProcess                    // refused: the process's max_connections
	ServerDown                      // the server went down and the pool closes its sessions then
	AdminKill                       // an operator ended it
	Shutdown                        // still there at shutdown_timeout
	LocalResource                   // descriptors, ports or memory of ours ran out: no server's fault
	reasonCount
)

var reasonNames = [reasonCount]string{
	"normal", "client_reset", "server_reset", "client_gone", "connect_refused", "connect_timeout", "connect_error",
	"no_server", "idle_timeout", "half_closed_timeout", "max_duration", "limit_listener", "limit_process",
	"server_down", "admin_kill", "shutdown", "local_resource",
}

func (r Reason) String() string { return reasonNames[r] }

// Reasons lists every reason by value.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}
