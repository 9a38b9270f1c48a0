package l4

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// The slab against a map: what is out is distinct, stays where it is, and comes back blank with another generation.
func TestSlab(t *testing.T) {
	var sl slab
	random := rand.New(rand.NewPCG(1, 2))
	out, gens := map[uint32]*session{}, map[uint32]int32{}
	for range 20000 {
		if random.IntN(5) < 3 {
			s := sl.take()
			if out[s.slot] != nil {
				t.Fatalf("slot %d was given twice", s.slot)
			}
			if s.gen == gens[s.slot] || s.phase != free || s.server != nil || s.halves != (halves{}) {
				t.Fatalf("slot %d is not blank: %+v", s.slot, s)
			}
			gens[s.slot] = s.gen
			s.phase, s.ends[client].fd = relaying, 7
			out[s.slot] = s
		} else {
			for slot, s := range out {
				if sl.at(slot) != s {
					t.Fatalf("slot %d moved", slot)
				}
				sl.give(s)
				delete(out, slot)
				break
			}
		}
		if sl.live != len(out) {
			t.Fatalf("live %d, want %d", sl.live, len(out))
		}
	}
	n := 0
	sl.each(func(s *session) {
		n++
		if out[s.slot] != s {
			t.Errorf("each visits slot %d, which is free", s.slot)
		}
	})
	if n != len(out) {
		t.Errorf("each visits %d of %d", n, len(out))
	}
}

// An idle session costs its place in the slab, and the kernel's memory.
func TestSessionIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(session{}); size > 384 {
		t.Errorf("a session has %d bytes", size)
	}
}
