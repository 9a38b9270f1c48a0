package health

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
)

// Probe asks a server once whether it is up: nil is yes. addr is "ip:port",
// "[ip]:port" or "unix:/path". A Probe ends soon after ctx does, leaves nothing
// behind and is safe for concurrent use.
type Probe func(ctx context.Context, addr string) error

// TCP is the Probe that is content with an established connection.
func TCP(ctx context.Context, addr string) error {
	conn, err := dial(ctx, addr)
	if answeredAndReset(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	if isSelf(conn) {
		return errSelf
	}
	bidFarewell(ctx, conn)
	return nil
}

// Nobody listens on an ephemeral port of this host, and the kernel has chosen
// that very port for our end: the connection is one to itself.
var errSelf = errors.New("connected to itself: nobody listens there")

func isSelf(conn net.Conn) bool {
	local, remote := conn.LocalAddr(), conn.RemoteAddr()
	return local.Network() == "tcp" && local.String() == remote.String()
}

// A dialer that sets no more options than needed: keepalive costs four system
// calls on a connection of a millisecond.
var dialer = func() *net.Dialer {
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: false}, KeepAlive: -1}
	d.SetMultipathTCP(false)
	return d
}()

func dial(ctx context.Context, addr string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return dialer.DialContext(ctx, "unix", path)
	}
	return dialer.DialContext(ctx, "tcp", addr)
}

// answeredAndReset tells a server that accepted and reset at once from one
// that is not there. Before the handshake a reset reads as ECONNREFUSED;
// ECONNRESET, or EPIPE if a FIN came before it, says that the handshake had
// been done by the time we looked.
func answeredAndReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// farewell is how long a server may take to answer our FIN with its own.
const farewell = 100 * time.Millisecond

// bidFarewell ends a connection with FIN. A close with unread bytes (a server
// that speaks first) would be a reset, and a line in the server's log for each
// probe: so what comes is read until the server's FIN. A server that keeps its
// side open for longer has got the FIN all the same.
func bidFarewell(ctx context.Context, conn net.Conn) {
	by := time.Now().Add(farewell)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(by) {
		by = deadline
	}
	if err := conn.SetReadDeadline(by); err != nil {
		return
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return // reset by the server: nothing left to be polite to
	}
	var sink [512]byte
	for read := 0; read < 64<<10; {
		n, err := conn.Read(sink[:])
		if err != nil {
			return
		}
		read += n
	}
}

// isOurs says that the probe failed for want of something of our own.
func isOurs(err error) bool {
	for _, ours := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL,
	} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return false
}
