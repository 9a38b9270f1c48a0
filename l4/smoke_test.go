package l4

import (
	"bytes"
	"context"
	"io"
	"math/rand"
	"net"
	"testing"
	"time"

	"sluice/pick"
)

func TestSmoke(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	p := pick.NewPool()
	if err := p.Configure(pick.Config{Servers: []pick.ServerConfig{{Addr: ln.Addr().String(), Weight: 1}}, OnNew: Attach}); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Splice{SpliceAuto, SpliceOff, SpliceAlways} {
		s, err := New(Config{Shards: 2, MaxConnections: 100, MaxPipes: 64, Splice: mode, OnEnd: func(e *Ended) { t.Logf("%+v", *e) },
			Services: []*Service{{Name: "a", Bind: []string{"127.0.0.1:0"}, Pool: &Pool{Name: "p", Pool: p, ConnectTimeout: time.Second, ConnectRetries: 2}, IdleTimeout: time.Minute}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		data := make([]byte, 50<<20)
		rand.Read(data)
		for range 3 {
			c, err := net.Dial("tcp", s.Addrs("a")[0])
			if err != nil {
				t.Fatal(err)
			}
			go func() { c.Write(data); c.(*net.TCPConn).CloseWrite() }()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatal(err, len(got))
			}
			c.Close()
		}
		t.Logf("%+v", s.Stats())
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
