package load

import "bytes"

// The pattern every stream is cut from: pseudo-random, so that bytes that were
// dropped, doubled or taken from another session do not fit. Its period is a
// prime, so no power-of-two slip of a buffer looks right.
const (
	period   = 1048573
	maxChunk = 256 << 10
)

var pattern = makePattern()

func makePattern() []byte {
	p := make([]byte, period+maxChunk)
	x := uint64(88172645463325252)
	for i := range period {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x >> 24)
	}
	copy(p[period:], p)
	return p
}

// origin is where the stream of a connection begins in the pattern. The two
// directions differ, so that a mirrored byte is wrong as well.
func origin(id uint32, up bool) uint64 {
	o := uint64(id) * 104729 % period
	if !up {
		o = (o + period/2) % period
	}
	return o
}

// at is the n bytes (at most maxChunk) of the pattern at a stream position.
func at(pos uint64, n int) []byte {
	i := pos % period
	return pattern[i : i+uint64(n)]
}

// fits compares received bytes with the pattern: all of them, or the first and
// last eight, which finds a loss or a shift at a hundredth of the cost.
func fits(b []byte, pos uint64, full bool) bool {
	if full || len(b) <= 16 {
		return bytes.Equal(b, at(pos, len(b)))
	}
	tail := len(b) - 8
	return bytes.Equal(b[:8], at(pos, 8)) && bytes.Equal(b[tail:], at(pos+uint64(tail), 8))
}
