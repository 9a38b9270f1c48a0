package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// zoneVariable names a directory that is the resolver of a child: a file for each host, with an address a line. A host
// whose file says "silent" gets no answer.
const zoneVariable = "SLUICE_TEST_ZONE"

func resolveFrom(zone string) {
	resolveAgain = 100 * time.Millisecond
	lookupIP = func(ctx context.Context, _, host string) (all []netip.Addr, err error) {
		text, err := os.ReadFile(filepath.Join(zone, host))
		if err != nil {
			return nil, fmt.Errorf("no such host %s", host)
		}
		for _, line := range strings.Fields(string(text)) {
			if line == "silent" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			all = append(all, netip.MustParseAddr(line))
		}
		return all, nil
	}
}

// zone is a resolver; set changes what a host resolves to, "" means to nothing.
type zone struct {
	t   *testing.T
	dir string
}

func newZone(t *testing.T) (zone, twist) {
	t.Helper()
	z := zone{t, t.TempDir()}
	return z, func(c *exec.Cmd) { c.Env = append(c.Env, zoneVariable+"="+z.dir) }
}

func (z zone) set(host, addresses string) {
	z.t.Helper()
	file := filepath.Join(z.dir, host)
	if addresses == "" {
		os.Remove(file)
		return
	}
	write(z.t, file+".new", addresses)
	if err := os.Rename(file+".new", file); err != nil {
		z.t.Fatal(err)
	}
}

// A resolver that does not answer holds up neither traffic nor a stop, however many reloads wait for it.
func TestSilentResolver(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	at := place(t)
	z, resolver := newZone(t)
	z.set("db.test", "127.0.0.1")
	p := serve(t, inFile(t, one(at, "db.test:"+portOf(t, s1.Addr()))), resolver)
	session := open(t, at)
	z.set("db.test", "silent")
	for range 300 {
		p.signal(unix.SIGHUP)
		p.signal(unix.SIGUSR2)
	}
	wantAnswer(t, at, "s1")
	p.signal(unix.SIGTERM)
	wantRefused(t, at, time.Now())
	wantAlive(t, session)
	session.Close()
	p.wantExit(exitFine)
}

// A name without an address is tried again and served once it has one. The addresses that a name had last stay when it
// has none any more, also over a reload that was refused.
func TestNameComesAndGoes(t *testing.T) {
	s1 := named(t, peer.V4, "s1")
	taken := peer.Listen(t, place(t), peer.Say("xx"))
	at := place(t)
	z, resolver := newZone(t)
	good := one(at, "db.test:"+portOf(t, s1.Addr()))
	file := inFile(t, good)
	p := serve(t, file, resolver)
	if _, err := ask(at); err == nil {
		t.Error("an answer of a name that does not resolve")
	}
	z.set("db.test", "127.0.0.1\n127.0.0.1")
	awaitAnswer(t, at)
	session := open(t, at)
	z.set("db.test", "")
	p.signal(unix.SIGHUP)
	p.await("msg=reloaded")
	wantAnswer(t, at, "s1")
	write(t, file, head+listener("taken", taken.Addr(), "p")+pool("p", []string{server("s1", "127.0.0.1:1")}))
	p.refuse()
	p.reload(file, good)
	wantAnswer(t, at, "s1")
	z.set("db.test", "127.0.0.9") // nobody is there
	p.signal(unix.SIGHUP)
	p.awaitCount("msg=reloaded", 3)
	if _, err := ask(at); err == nil {
		t.Error("the address from before is still used")
	}
	wantAlive(t, session)
}

// What a reload cannot change is said, not passed over.
func TestReloadOfWhatIsFixed(t *testing.T) {
	at := place(t)
	file := inFile(t, one(at, "127.0.0.1:1"))
	p := serve(t, file)
	rest := strings.TrimPrefix(one(at, "127.0.0.1:1"), head)
	p.reload(file, "[process]\nshards = 1\nsplice = \"off\"\n[log]\nlevel = \"debug\"\nformat = \"json\"\noutput = \"stdout\"\n"+rest)
	for _, key := range []string{"process.shards", "process.splice", "log.level", "log.format", "log.output"} {
		wantText(t, "messages", p.err.String(), `msg="changes only with a restart" key=`+key)
	}
	p.reload(file, one(at, "127.0.0.1:1"))
	if n := p.err.count("only with a restart"); n != 5 {
		t.Errorf("%d warnings, want 5", n)
	}
}
