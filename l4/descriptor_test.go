package l4

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	peers "sluice/internal/peer"
)

// endings are the ways in which a client may leave a conversation.
var endings = [][]peers.Step{
	{peers.FIN(), peers.ExpectEnd(0)}, {peers.Close()}, {peers.RST()}, {peers.Send(80), peers.Close()},
	{peers.Send(64 << 10), peers.RST()}, {peers.Hold(2 * time.Millisecond), peers.RST()}, {peers.FIN(), peers.RST()},
}

// fickle echoes a session's token, but may leave at any time.
func fickle(c *peers.Conn) error {
	switch rand.IntN(6) {
	case 0:
		return peers.RST()(c)
	case 1:
		return peers.Close()(c)
	case 2:
		c.Raw().SetReadDeadline(time.Now().Add(time.Duration(rand.IntN(3)) * time.Millisecond))
		io.CopyN(io.Discard, c.Raw(), 100)
		return peers.RST()(c)
	}
	return peers.EchoToken()(c)
}

// gone is an error that only says that the other side has left.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ENOTCONN) || errors.Is(err, net.ErrClosed)
}

// Descriptor numbers are used again at once. Whoever reads a byte of another session's token has seen a late write to
// a number that had a new owner.
func TestNoCrossTalk(t *testing.T) {
	visits := 25
	if os.Getenv("SLUICE_LONG") != "" {
		visits = 1000
	}
	const workers = 8
	forEachPath(t, func(t *testing.T, p path) {
		server := peers.Listen(t, p.server, fickle)
		b := start(t, p, []*peers.Server{server})
		together(workers, visits, func(i int) {
			c, err := peers.TryDial(t, b.addr)
			if err != nil {
				if !gone(err) { // a reset may be here before connect returns
					t.Error(err)
				}
				return
			}
			defer c.Close()
			size := 8 * rand.Int64N(4000)
			err = c.Try(peers.Token(uint64(i)<<20|0xabc), peers.Repeat(3, peers.Send(size), peers.Expect(size)))
			if err == nil {
				err = c.Try(endings[rand.IntN(len(endings))]...)
			}
			if err != nil && !gone(err) {
				t.Errorf("session %d: %v", i, err)
			}
		})
		b.wait(workers * visits)
	})
}
