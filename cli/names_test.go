package cli

import (
	"net"
	"strings"
	"testing"

	"sluice/internal/peer"
)

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Each address of a host name is a server of its own: NAME@ADDRESS.
func TestHostName(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	p := serve(t, inFile(t, head+listener("web", at, "p")+pool("p", []string{server("web", "localhost:"+portOf(t, s1.Addr()))}, tcpCheck)))
	p.await("server=web@" + s1.Addr())
	wantAnswer(t, at, "s1")
	wantAlive(t, openMany(t, at, 3)...)
}

// A name that does not resolve is a warning. The others serve; a pool of nothing else lets its clients go at once.
func TestUnresolvableName(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at, lost := place(t), place(t)
	bad := server("bad", "does-not-exist.invalid:5432")
	file := inFile(t, head+listener("web", at, "p")+listener("lost", lost, "lost")+
		pool("p", []string{bad, server("s1", s1.Addr())}, tcpCheck)+pool("lost", []string{bad}))
	call(t, []string{"check", file}).wantExit(exitFine)
	p := serve(t, file)
	wantText(t, "messages", p.err.String(), "name does not resolve")
	wantText(t, "messages", p.err.String(), "does-not-exist.invalid:5432")
	p.await(`msg="server up"`)
	if got := census(at, 20); got["s1"] != 20 {
		t.Errorf("answers %v, want 20 of s1", got)
	}
	if _, err := ask(lost); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("got %v, want an end at once", err)
	}
	p.reload(file, head+listener("web", at, "p")+pool("p", []string{server("s1", s1.Addr()), bad}))
	wantAnswer(t, at, "s1")
}
