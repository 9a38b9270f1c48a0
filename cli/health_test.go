package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/peer"
)

// A server that dies leaves, and returns when it answers again; sessions with the other go on meanwhile.
func TestDeadServerLeavesAndReturns(t *testing.T) {
	where := place(t)
	s1, s2 := named(t, where, "s1"), named(t, peer.V4, "s2")
	at := place(t)
	p := serve(t, inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s1", where), server("s2", s2.Addr())}, tcpCheck)))
	p.awaitCount(`msg="server up"`, 2)
	if got := census(at, 20); got["s1"] < 5 {
		t.Errorf("answers %v, want about 10 and 10", got)
	}
	s1.Close()
	p.await(`msg="server down" pool=p server=s1`)
	if got := census(at, 20); got["s2"] != 20 {
		t.Errorf("with s1 down: answers %v, want 20 of s2", got)
	}
	named(t, where, "s1")
	p.awaitCount("msg=\"server up\" pool=p server=s1", 2)
	if got := census(at, 20); got["s1"] < 5 {
		t.Errorf("with s1 back: answers %v, want about 10 and 10", got)
	}
}

// With every server down a client is let go at once, as the pool says: closed or reset. Not after a timeout.
func TestAllDown(t *testing.T) {
	for _, how := range []string{"close", "reset"} {
		t.Run(how, func(t *testing.T) {
			dead := peer.Refusing(t, peer.V4).Addr()
			at := place(t)
			p := serve(t, inFile(t, head+listener("web", at, "p")+
				pool("p", []string{server("s1", dead)}, tcpCheck, fmt.Sprintf("on_no_server = %q", how))))
			p.await("usable=0")
			for range 5 {
				begun := time.Now()
				_, err := ask(at)
				if err == nil || how == "reset" != strings.Contains(err.Error(), "reset") {
					t.Errorf("on_no_server = %s: got %v", how, err)
				}
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
			}
		})
	}
}

// initial_state is what counts before the first check has ended: a server that does not answer checks is up, or not.
func TestInitialState(t *testing.T) {
	for _, row := range []struct {
		state  string
		served bool
	}{{"up", true}, {"down", false}} {
		t.Run(row.state, func(t *testing.T) {
			s1 := named(t, peer.V4, "s1")
			at := place(t)
			check := fmt.Sprintf("check = { type = \"tcp\", interval = \"1h\", timeout = \"1h\", rise = 3, fall = 3, initial_state = %q, address = \"192.0.2.1\" }", row.state)
			serve(t, inFile(t, head+listener("web", at, "p")+pool("p", []string{server("s1", s1.Addr())}, check)))
			if _, err := ask(at); err == nil != row.served {
				t.Errorf("initial_state = %s: got %v", row.state, err)
			}
		})
	}
}

// From the first client on nobody is lost to a dead server: a refused connect is tried on another one (HLT-07).
func TestClientsBeforeTheFirstCheck(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	serve(t, inFile(t, head+listener("web", at, "p")+
		pool("p", []string{server("dead", peer.Refusing(t, peer.V4).Addr()), server("s1", s1.Addr())}, "check = { type = \"tcp\", initial_state = \"up\" }")))
	if got := census(at, 100); got["s1"] < 50 {
		t.Errorf("answers %v, want 100 of s1", got)
	}
}

// A check that a reload adds, changes or takes away counts from then on.
func TestReloadOfChecks(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	with := func(lines ...string) string {
		return head + listener("web", at, "p") + pool("p", []string{server("s1", s1.Addr())}, lines...)
	}
	wrongPort := strings.Replace(tcpCheck, "}", ", port = 1 }", 1)
	file := inFile(t, with())
	p := serve(t, file)
	session := open(t, at)
	p.reload(file, with(wrongPort))
	p.await(`msg="server down" pool=p server=s1`)
	if _, err := ask(at); err == nil {
		t.Error("a server that is down was used")
	}
	wantAlive(t, session) // on_down = "keep" (HLT-13)
	p.reload(file, with(tcpCheck))
	p.await(`msg="server up" pool=p server=s1`)
	wantAnswer(t, at, "s1")
	p.reload(file, with(wrongPort))
	p.awaitCount(`msg="server down" pool=p server=s1`, 2)
	p.reload(file, with())
	wantAnswer(t, at, "s1")
	wantAlive(t, session)
}
