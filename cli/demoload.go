package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

var anyLoopbackPort = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)

// A demoServer says its number first and echoes from then on.
type demoServer struct {
	ln net.Listener
}

type demoServers []demoServer

func startDemoServers(n int) (demoServers, error) {
	var all demoServers
	for i := range n {
		cfg := net.ListenConfig{}
		cfg.SetMultipathTCP(false)
		ln, err := cfg.Listen(context.Background(), "tcp", anyLoopbackPort.String())
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, demoServer{ln})
		go serveDemo(ln, byte(i))
	}
	return all, nil
}

func (s demoServers) close() {
	for _, one := range s {
		one.ln.Close()
	}
}

func serveDemo(ln net.Listener, number byte) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			c.Write([]byte{number})
			io.Copy(c, c)
		}()
	}
}

// demoLoad is clients that connect, send, check what comes back, and connect again.
type demoLoad struct {
	addr   string
	served []atomic.Int64 // connections, by server
	errors atomic.Int64
	first  atomic.Pointer[error]
	done   chan struct{}
}

func newDemoLoad(addr string) *demoLoad {
	return &demoLoad{addr: addr, served: make([]atomic.Int64, len(demoWeights)), done: make(chan struct{})}
}

func (d *demoLoad) start(ctx context.Context) {
	var clients sync.WaitGroup
	for range demoClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := d.once(); err != nil {
					d.errors.Add(1)
					d.first.CompareAndSwap(nil, &err)
					return // the verdict is clear, and a tight loop of failures says no more
				}
			}
		})
	}
	go func() { clients.Wait(); close(d.done) }()
}

const (
	demoTimeout = 10 * time.Second
	demoSmall   = 4 << 10
	demoLarge   = 1 << 20
)

// once is one connection: mostly a small exchange, now and then a stream.
func (d *demoLoad) once() error {
	c, err := net.DialTimeout("tcp", d.addr, demoTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(demoTimeout))
	var number [1]byte
	if _, err := io.ReadFull(c, number[:]); err != nil || int(number[0]) >= len(d.served) {
		return fmt.Errorf("greeting %v: %w", number, err)
	}
	size := demoSmall
	if rand.IntN(32) == 0 {
		size = demoLarge
	}
	if err := exchange(c.(*net.TCPConn), size); err != nil {
		return err
	}
	d.served[number[0]].Add(1)
	return nil
}

// exchange sends random bytes and a FIN, and wants the same bytes and a FIN back.
func exchange(c *net.TCPConn, size int) error {
	sent := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(rand.Int()), byte(rand.Int()), byte(rand.Int()), byte(rand.Int())})
	rng.Read(sent)
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(sent)
		wrote <- errors.Join(err, c.CloseWrite())
	}()
	got, err := io.ReadAll(io.LimitReader(c, int64(size)+1))
	if err := errors.Join(err, <-wrote); err != nil {
		return err
	}
	if !bytes.Equal(got, sent) {
		return fmt.Errorf("sent %d bytes, got %d back, and they are not the same", size, len(got))
	}
	return nil
}

func (d *demoLoad) firstError() error {
	if err := d.first.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *demoLoad) line(elapsed time.Duration) demoLine {
	l := demoLine{Seconds: elapsed.Seconds(), Errors: d.errors.Load(), Weights: demoWeights}
	for i := range d.served {
		l.Connections += d.served[i].Load()
	}
	for i := range d.served {
		l.Shares = append(l.Shares, float64(d.served[i].Load())/float64(max(l.Connections, 1)))
	}
	return l
}
