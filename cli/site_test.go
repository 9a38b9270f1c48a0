package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/peer"
)

// head makes tests the same on any number of CPUs.
const head = "[process]\nshards = 2\n"

// listener and pool write their part of a configuration file. Lines are more keys.
func listener(name, bind, pool string, lines ...string) string {
	return fmt.Sprintf("[[listeners]]\nname = %q\nbind = %q\npool = %q\n%s\n", name, bind, pool, strings.Join(lines, "\n"))
}

func pool(name string, servers []string, lines ...string) string {
	text := fmt.Sprintf("[[pools]]\nname = %q\n%s\n", name, strings.Join(lines, "\n"))
	for _, s := range servers {
		text += s
	}
	return text
}

func server(name, address string, lines ...string) string {
	return fmt.Sprintf("[[pools.servers]]\nname = %q\naddress = %q\n%s\n", name, address, strings.Join(lines, "\n"))
}

const tcpCheck = "check = { type = \"tcp\", interval = \"50ms\", fast_interval = \"50ms\", timeout = \"2s\", rise = 1, fall = 1 }"

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// inFile writes a configuration into a directory of the test.
func inFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.toml")
	write(t, file, text)
	return file
}

var placesGiven atomic.Uint32

// place is an address that nobody else listens on: a loopback address of this process's own, and a port that the kernel
// does not give away.
func place(t *testing.T) string {
	t.Helper()
	for range 100 {
		n := placesGiven.Add(1)
		pid := os.Getpid()
		address := fmt.Sprintf("127.%d.%d.%d:%d", 64+pid>>16&63, pid>>8&255, pid&255, 10000+n)
		if free(address) {
			return address
		}
	}
	t.Fatal("no free place")
	return ""
}

// place6 is one on ::1, which has no neighbours: another program may have the port.
func place6(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("[::1]:%d", 10000+(uint32(os.Getpid())*31+placesGiven.Add(1)*7)%20000)
		if free(address) {
			return address
		}
	}
	t.Fatal("no free place on ::1")
	return ""
}

func free(address string) bool {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
	}
	return err == nil
}

// named is a server that says who it is, two letters, and echoes from then on.
func named(t *testing.T, where, name string) *peer.Server {
	t.Helper()
	return peer.Listen(t, where, peer.Say(name), peer.Echo())
}

// ask connects and returns who answered: a name, or an error. The connection is closed.
func ask(address string) (string, error) {
	c, err := dial(address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return hear(c)
}

func dial(address string) (net.Conn, error) {
	network, addr := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, addr = "unix", path
	}
	d := net.Dialer{Timeout: patience}
	d.SetMultipathTCP(false)
	return d.Dial(network, addr)
}

func hear(c net.Conn) (string, error) {
	var name [2]byte
	c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.ReadFull(c, name[:])
	return string(name[:]), err
}

// wantAnswer fails unless who answers at address.
func wantAnswer(t *testing.T, address, who string) {
	t.Helper()
	if got, err := ask(address); err != nil || got != who {
		t.Errorf("%s: answer %q, %v; want %s", address, got, err, who)
	}
}

// census asks n times and counts the answers; errors count as "".
func census(address string, n int) map[string]int {
	got := map[string]int{}
	for range n {
		who, err := ask(address)
		if err != nil {
			who = ""
		}
		got[who]++
	}
	return got
}

// A session is a client that was served and stays.
type session struct {
	net.Conn
	who string
}

func open(t *testing.T, address string) *session {
	t.Helper()
	c, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	who, err := hear(c)
	if err != nil {
		t.Fatalf("no server answers at %s: %v", address, err)
	}
	return &session{c, who}
}

func openMany(t *testing.T, address string, n int) []*session {
	t.Helper()
	var all []*session
	for range n {
		all = append(all, open(t, address))
	}
	return all
}

// echo sends something and wants it back.
func (s *session) echo() error {
	want := []byte("do you still hear me?")
	got := make([]byte, len(want))
	s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Write(want); err != nil {
		return err
	}
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("sent %q, got %q back", want, got)
	}
	return nil
}

func wantAlive(t *testing.T, sessions ...*session) {
	t.Helper()
	for _, s := range sessions {
		if err := s.echo(); err != nil {
			t.Errorf("session with %s does not go on: %v", s.who, err)
		}
	}
}

// wantEnd wants the session to be over within d, by FIN or reset.
func (s *session) wantEnd(t *testing.T, d time.Duration) {
	t.Helper()
	s.SetReadDeadline(time.Now().Add(d))
	n, err := s.Read(make([]byte, 1))
	if nerr, ok := err.(net.Error); n > 0 || ok && nerr.Timeout() {
		t.Errorf("session with %s goes on for more than %v", s.who, d)
	}
}
