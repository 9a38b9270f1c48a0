package load

import "math/bits"

// Hist counts durations in nanoseconds in buckets of at most 1.6 % width: 64
// to a power of two. Not safe for concurrent use; the zero value is empty.
type Hist struct {
	n      uint64
	counts [64 * 59]uint64
}

func bucket(v uint64) int {
	if v < 64 {
		return int(v)
	}
	shift := bits.Len64(v) - 7
	return shift<<6 + int(v>>shift)
}

// middle is the value a bucket stands for.
func middle(i int) uint64 {
	if i < 128 {
		return uint64(i)
	}
	shift := i>>6 - 1
	return uint64(i-shift<<6)<<shift + 1<<shift>>1
}

// Add counts one duration; a negative one, which only a broken clock gives, is 0.
func (h *Hist) Add(ns int64) {
	h.counts[bucket(uint64(max(ns, 0)))]++
	h.n++
}

// Quantile is the duration in nanoseconds that a share q of all did not exceed; 0 if empty.
func (h *Hist) Quantile(q float64) float64 {
	if h.n == 0 {
		return 0
	}
	want := min(uint64(q*float64(h.n)), h.n-1)
	var seen uint64
	for i, c := range h.counts {
		seen += c
		if seen > want {
			return float64(middle(i))
		}
	}
	panic("load: histogram lost a value")
}
