package l4

import "math/bits"

// The timer wheel of a shard. A session lies in at most one bucket, at the time when it wants to be looked at next,
// and that look is lazy: moving bytes only notes the time in the session, and when the wheel reaches it the session
// works out whether it is really due or lies down again for later. So a timeout costs nothing for each byte, and a
// session no allocation. A deadline beyond one lap is looked at once a lap.
const (
	tickShift = 25 // a tick is 2^25 ns = 33.6 ms
	tick      = 1 << tickShift
	buckets   = 1024      // a lap is 34 s
	nowhere   = int32(-1) // no bucket, no session
)

type wheel struct {
	head   [buckets]int32       // first session of each bucket
	filled [buckets / 64]uint64 // which buckets have any
	turned int64                // the last tick that was looked at
}

// links is the part of a session that the wheel owns.
type links struct {
	next, prev, bucket int32
}

func (w *wheel) init(now int64) {
	for i := range w.head {
		w.head[i] = nowhere
	}
	w.turned = now >> tickShift
}

// put lays a session down to be looked at once `at` has passed, taking it from where it lay.
func (w *wheel) put(sl *slab, slot uint32, at int64) {
	s := sl.at(slot)
	w.remove(sl, slot)
	t := min(max(at>>tickShift+1, w.turned+1), w.turned+buckets-1)
	b := int32(t % buckets)
	s.links = links{next: w.head[b], prev: nowhere, bucket: b}
	if s.next != nowhere {
		sl.at(uint32(s.next)).prev = int32(slot)
	}
	w.head[b] = int32(slot)
	w.filled[b/64] |= 1 << (b % 64)
}

func (w *wheel) remove(sl *slab, slot uint32) {
	s := sl.at(slot)
	if s.bucket == nowhere {
		return
	}
	if s.prev != nowhere {
		sl.at(uint32(s.prev)).next = s.next
	} else if w.head[s.bucket] = s.next; s.next == nowhere {
		w.filled[s.bucket/64] &^= 1 << (s.bucket % 64)
	}
	if s.next != nowhere {
		sl.at(uint32(s.next)).prev = s.prev
	}
	s.bucket = nowhere
}

// turn calls look for each session whose time has come; look may put it back, or remove others.
func (w *wheel) turn(sl *slab, now int64, look func(slot uint32)) {
	end := now >> tickShift
	if end-w.turned > buckets { // a long sleep: one lap sees every bucket
		w.turned = end - buckets
	}
	for w.turned < end {
		w.turned++
		b := w.turned % buckets
		// Taken one at a time from the front: look may unlink any session. What it puts back lands in a later bucket.
		for w.head[b] != nowhere {
			slot := uint32(w.head[b])
			w.remove(sl, slot)
			look(slot)
		}
	}
}

// next is when turn has something to look at again; false when the wheel is empty.
func (w *wheel) next() (int64, bool) {
	from := (w.turned + 1) % buckets
	for i := range int64(len(w.filled) + 1) {
		word := (from/64 + i) % int64(len(w.filled))
		bitsHere := w.filled[word]
		if i == 0 {
			bitsHere &^= 1<<(from%64) - 1
		} else if i == int64(len(w.filled)) {
			bitsHere &= 1<<(from%64) - 1
		}
		if bitsHere != 0 {
			b := word*64 + int64(bits.TrailingZeros64(bitsHere))
			return (w.turned + 1 + (b-from+buckets)%buckets) << tickShift, true
		}
	}
	return 0, false
}
