package load

import (
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	patience = time.Second
	os.Exit(m.Run())
}

func TestHistQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var h Hist
		var all []int64
		for range 1 + rng.IntN(2000) {
			v := int64(math.Exp(rng.Float64() * 25))
			all = append(all, v)
			h.Add(v)
		}
		slices.Sort(all)
		for _, q := range []float64{0, .5, .99, .999, 1} {
			want := float64(all[min(int(q*float64(len(all))), len(all)-1)])
			if got := h.Quantile(q); math.Abs(got-want) > want/64+1 {
				t.Fatalf("quantile %v of %d values: got %v, want %v", q, len(all), got, want)
			}
		}
	}
}

func TestHistTakesEveryDuration(t *testing.T) {
	var h Hist
	for _, v := range []int64{-1, 0, 63, 64, 127, 128, math.MaxInt64} {
		h.Add(v)
	}
	if got := h.Quantile(1); got < math.MaxInt64*.98 {
		t.Errorf("largest: got %v", got)
	}
}

func TestPatternFindsFaults(t *testing.T) {
	const n = 10000
	pos := origin(7, true) + 12345
	good := at(pos, n)
	edit := func(f func(b []byte) []byte) []byte { return f(slices.Clone(good)) }
	for _, c := range []struct {
		name        string
		b           []byte
		cheap, full bool // does it fit?
	}{
		{"right", good, true, true},
		{"first byte", edit(func(b []byte) []byte { b[0]++; return b }), false, false},
		{"last byte", edit(func(b []byte) []byte { b[n-1]++; return b }), false, false},
		{"byte in the middle", edit(func(b []byte) []byte { b[n/2]++; return b }), true, false},
		{"byte lost", edit(func(b []byte) []byte { return slices.Delete(b, n/2, n/2+1) }), false, false},
		{"page repeated", edit(func(b []byte) []byte { return slices.Insert(b, 4096, b[:4096]...) }), false, false},
		{"another session's", slices.Clone(at(origin(8, true)+12345, n)), false, false},
		{"the other direction's", slices.Clone(at(origin(7, false)+12345, n)), false, false},
	} {
		if got := fits(c.b, pos, false); got != c.cheap {
			t.Errorf("%s, cheap: fits = %v", c.name, got)
		}
		if got := fits(c.b, pos, true); got != c.full {
			t.Errorf("%s, full: fits = %v", c.name, got)
		}
	}
}

func TestSpecSurvivesTheCommandLine(t *testing.T) {
	want := Spec{Kind: "down", Target: "127.0.0.1:1", Servers: []string{"127.0.0.1:2", "127.0.0.1:3"}, Conns: 4, Size: 5,
		Rate: 6, Pings: 7, Warm: 8, For: 9, CPU: 10, Pids: []int{11, 12}}
	var got Spec
	f := flag.NewFlagSet("", flag.ContinueOnError)
	got.Flags(f)
	if err := f.Parse(want.Args()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// freePort is a port that was free a moment ago.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func runShort(t *testing.T, s Spec, target func(server string) string) *Result {
	t.Helper()
	server := freePort(t)
	s.Servers = []string{server}
	s.Target = target(server)
	s.Warm, s.For, s.CPU = 50*time.Millisecond, 100*time.Millisecond, -1
	s.Pids = []int{os.Getpid()}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := openFiles(t)
	res, err := Run(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Target == server && openFiles(t) != before {
		t.Errorf("descriptors: %d before, %d after", before, openFiles(t))
	}
	return res
}

func openFiles(t *testing.T) int {
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

var kinds = []Spec{
	{Kind: "ping", Conns: 1, Size: 64},
	{Kind: "ping", Conns: 64, Size: headerLen + 1},
	{Kind: "ping", Conns: 8, Size: 300 * 1024},
	{Kind: "ping", Conns: 16, Size: 1024, Rate: 1000},
	{Kind: "churn", Conns: 32, Size: 128},
	{Kind: "down", Conns: 4, Size: 64 << 10},
	{Kind: "up", Conns: 4, Size: 64 << 10},
	{Kind: "down", Conns: 2, Size: 64 << 10, Pings: 4, Rate: 500},
	{Kind: "idle", Conns: 300, Size: 64},
}

func TestEveryKindDirect(t *testing.T) {
	for _, s := range kinds {
		res := runShort(t, s, func(server string) string { return server })
		if res.Failed > 0 || res.Units == 0 || res.Seconds < .09 {
			t.Errorf("%+v: %+v", s, res)
		}
		if s.Rate > 0 && s.Pings == 0 && math.Abs(res.Rate()-float64(s.Rate)) > float64(s.Rate)/10 {
			t.Errorf("paced at %d a second: got %v", s.Rate, res.Rate())
		}
		if s.Pings > 0 && res.Messages == 0 {
			t.Errorf("no message beside the streams: %+v", res)
		}
	}
}

// proxy relays sessions, each direction through an edit.
func proxy(t *testing.T, server string, edit func(dst io.Writer, src io.Reader)) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				s, err := net.Dial("tcp4", server)
				if err != nil {
					c.Close()
					return
				}
				go func() {
					io.Copy(s, c)
					s.(*net.TCPConn).CloseWrite()
				}()
				edit(c, s)
				c.Close()
				s.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// after passes limit bytes as they are, then the rest through f once.
func after(limit int64, f func(b []byte) []byte) func(io.Writer, io.Reader) {
	return func(dst io.Writer, src io.Reader) {
		io.CopyN(dst, src, limit)
		b := make([]byte, 512)
		n, _ := io.ReadFull(src, b)
		dst.Write(f(b[:n]))
		io.Copy(dst, src)
	}
}

func TestFaultsOfABalancerAreFound(t *testing.T) {
	faults := map[string]func(b []byte) []byte{
		"changed":  func(b []byte) []byte { b[0] ^= 1; return b },
		"lost":     func(b []byte) []byte { return b[1:] },
		"repeated": func(b []byte) []byte { return append(b, b...) },
	}
	for name, f := range faults {
		for _, s := range []Spec{{Kind: "ping", Conns: 2, Size: 1024}, {Kind: "down", Conns: 2, Size: 64 << 10}} {
			res := runShort(t, s, func(server string) string { return proxy(t, server, after(10_000, f)) })
			if res.Failed == 0 {
				t.Errorf("%s, %s: no failure", s.Kind, name)
			}
		}
	}
}

func TestCutSessionsAreFound(t *testing.T) {
	cut := func(dst io.Writer, src io.Reader) { io.CopyN(dst, src, 10_000) }
	for _, s := range []Spec{kinds[0], kinds[2]} {
		res := runShort(t, s, func(server string) string { return proxy(t, server, cut) })
		if res.Failed == 0 {
			t.Errorf("%+v: no failure", s)
		}
	}
	down := Spec{Kind: "down", Conns: 2, Size: 64 << 10}
	res := runShort(t, down, func(server string) string { return proxy(t, server, cut) })
	if res.Failed == 0 || !strings.Contains(strings.Join(res.Errors, " "), "stream") {
		t.Errorf("stream: %+v", res)
	}
}

func TestRefusedConnectIsAFailure(t *testing.T) {
	for _, s := range kinds {
		res := runShort(t, s, func(string) string { return freePort(t) })
		if res.Failed == 0 || res.Units != 0 && s.Kind != "idle" {
			t.Errorf("%+v: %+v", s, res)
		}
	}
}

func TestSpecIsChecked(t *testing.T) {
	good := Spec{Kind: "ping", Servers: []string{"127.0.0.1:1"}, Conns: 1, Size: 64}
	for name, edit := range map[string]func(*Spec){
		"no server":     func(s *Spec) { s.Servers = nil },
		"no connection": func(s *Spec) { s.Conns = 0 },
		"tiny message":  func(s *Spec) { s.Size = headerLen },
		"unpaced pings": func(s *Spec) { s.Pings = 1 },
	} {
		s := good
		edit(&s)
		if err := s.check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
