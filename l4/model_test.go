package l4

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/internal/leak"
	peers "sluice/internal/peer"
)

// A play is what one side does: it sends pieces with pauses between them, ends in its way, and reads meanwhile, with
// pauses too, to the end.
type play struct {
	sends []peers.Step
	bytes int64
	end   ending
	rests []time.Duration // before reads of 20 KB each
}

type ending int

const (
	fin ending = iota
	rst
	hangUp
)

func newPlay(random *rand.Rand) *play {
	sizes := []int64{1, 7, 1000, 8192, 32768, 40000, 70000, 300000}
	p := &play{end: []ending{fin, fin, fin, fin, rst, hangUp}[random.IntN(6)]}
	for range random.IntN(6) {
		n := sizes[random.IntN(len(sizes))]
		p.bytes += n
		p.sends = append(p.sends, peers.Send(n))
		if random.IntN(3) == 0 {
			p.sends = append(p.sends, peers.Hold(time.Duration(random.IntN(4))*time.Millisecond))
		}
	}
	for range random.IntN(4) {
		p.rests = append(p.rests, time.Duration(random.IntN(8))*time.Millisecond)
	}
	return p
}

// against plays p on c, and judges what came from the other side, which played other: if both ended cleanly all of its
// bytes and its end have to come, else a part of them, and any end.
func (p *play) against(other *play) peers.Step {
	return func(c *peers.Conn) error {
		sent := make(chan error, 1)
		go func() { sent <- p.send(c) }()
		got := p.receive(c, other)
		if err := <-sent; err != nil && p.clean(other) {
			return fmt.Errorf("sending: %w", err)
		}
		return got
	}
}

func (p *play) clean(other *play) bool { return p.end == fin && other.end == fin }

func (p *play) send(c *peers.Conn) error {
	last := []peers.Step{fin: peers.FIN(), rst: peers.RST(), hangUp: peers.Close()}[p.end]
	return c.Try(append(p.sends[:len(p.sends):len(p.sends)], last)...)
}

func (p *play) receive(c *peers.Conn, other *play) error {
	left := other.bytes
	var script []peers.Step
	for _, rest := range p.rests {
		n := min(left, 20000)
		left -= n
		script = append(script, peers.Hold(rest), peers.Expect(n))
	}
	err := c.Try(append(script, peers.Expect(left), peers.ExpectEnd(0))...)
	if err == nil || !p.clean(other) && gone(err) {
		return nil
	}
	return fmt.Errorf("receiving: %w", err)
}

// FuzzSession plays random conversations through every mode and kind of socket.
func FuzzSession(f *testing.F) {
	for seed := range uint64(120) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		leak.Check(t)
		random := rand.New(rand.NewPCG(seed, 42))
		where := []string{peers.V4, peers.V4, peers.V6, peers.Unix}
		p := path{mode: Splice(seed % 3), listen: where[random.IntN(4)], server: where[random.IntN(4)]}
		up, down := newPlay(random), newPlay(random)
		server := peers.Listen(t, p.server, down.against(up))
		b := start(t, p, []*peers.Server{server})
		c, err := peers.TryDial(t, b.addr)
		switch {
		case err == nil:
			c.Do(up.against(down))
		case up.clean(down) || !gone(err): // a reset may be here before connect returns
			t.Error(err)
		}
		e := b.wait(1)[0]
		if !up.clean(down) {
			return
		}
		server.Wait(1)
		if e.Reason != Normal || e.In != up.bytes || e.Out != down.bytes {
			t.Errorf("%v: ended with %v after %d in, %d out; want %d, %d", p, e.Reason, e.In, e.Out, up.bytes, down.bytes)
		}
	})
}
