package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
)

// ioCopy is `bench iocopy`, the plain baseline: what anyone writes first in Go,
// two goroutines with io.Copy for a session, servers in turn.
func ioCopy(args []string) error {
	f := flag.NewFlagSet("iocopy", flag.ExitOnError)
	bind := f.String("bind", "127.0.0.1:7000", "where to listen")
	servers := f.String("servers", "", "addresses, comma separated")
	f.Parse(args)
	pool := strings.Split(*servers, ",")
	l, err := net.Listen("tcp4", *bind)
	if err != nil {
		return err
	}
	var turn atomic.Uint64
	for {
		c, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go relay(c.(*net.TCPConn), pool[turn.Add(1)%uint64(len(pool))])
	}
}

func relay(client *net.TCPConn, address string) {
	defer client.Close()
	s, err := net.Dial("tcp4", address)
	if err != nil {
		return
	}
	defer s.Close()
	server := s.(*net.TCPConn)
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(server, client)
		server.CloseWrite()
	}()
	io.Copy(client, server)
	client.CloseWrite()
	<-done
}
