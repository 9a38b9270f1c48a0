package peer

import (
	"encoding/binary"
	"fmt"
)

// pattern is one direction of a conversation: an endless sequence of 8-byte
// words, each the stream's number (24 bits) and its own index (40 bits), so
// that a byte in the wrong place, or of another stream, does not fit. A token
// stream is the same word again and again.
type pattern struct {
	stream uint64
	token  bool
	pos    int64 // bytes so far
}

func (p *pattern) word(i int64) uint64 {
	if p.token {
		return p.stream
	}
	return p.stream<<40 | uint64(i)&(1<<40-1)
}

// fill writes the next len(b) bytes of the sequence.
//
// It and check are left out of the race detector's view: they touch every byte
// of a conversation, only on the goroutine that plays, and would take most of a
// test's time.
//
//go:norace
func (p *pattern) fill(b []byte) {
	var word [8]byte
	for p.pos%8 == 0 && len(b) >= 8 {
		binary.BigEndian.PutUint64(b, p.word(p.pos/8))
		b, p.pos = b[8:], p.pos+8
	}
	for len(b) > 0 {
		binary.BigEndian.PutUint64(word[:], p.word(p.pos/8))
		n := copy(b, word[p.pos%8:])
		b, p.pos = b[n:], p.pos+int64(n)
	}
}

// check compares b with the next len(b) bytes of the sequence.
//
//go:norace
func (p *pattern) check(b []byte) error {
	var word [8]byte
	for rest := b; len(rest) > 0; {
		if p.pos%8 == 0 && len(rest) >= 8 && binary.BigEndian.Uint64(rest) == p.word(p.pos/8) {
			rest, p.pos = rest[8:], p.pos+8
			continue
		}
		binary.BigEndian.PutUint64(word[:], p.word(p.pos/8))
		want := word[p.pos%8:]
		n := min(len(want), len(rest))
		if string(rest[:n]) != string(want[:n]) {
			return p.mismatch(rest, want[:n])
		}
		rest, p.pos = rest[n:], p.pos+int64(n)
	}
	return nil
}

// mismatch says what came instead: a whole foreign word names its own stream
// and place, which tells loss, doubling and cross-talk apart.
func (p *pattern) mismatch(got, want []byte) error {
	err := fmt.Errorf("at byte %d of stream %d: got % x, want % x", p.pos, p.stream, got[:len(want)], want)
	if len(want) == 8 && !p.token {
		word := binary.BigEndian.Uint64(got)
		err = fmt.Errorf("%w (that is byte %d of stream %d)", err, word&(1<<40-1)*8, word>>40)
	}
	return err
}
