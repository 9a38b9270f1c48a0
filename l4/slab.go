package l4

// A slab holds a shard's sessions in chunks that never move and never shrink. A slot that is free again carries a new
// generation, so that an event or a queue entry of the past session finds nobody.
type slab struct {
	chunks []*[chunkSize]session
	free   []uint32
	live   int
}

const (
	chunkShift = 6
	chunkSize  = 1 << chunkShift
)

func (sl *slab) at(slot uint32) *session {
	return &sl.chunks[slot>>chunkShift][slot&(chunkSize-1)]
}

// take returns a blank session.
func (sl *slab) take() *session {
	if len(sl.free) == 0 {
		sl.grow()
	}
	slot := sl.free[len(sl.free)-1]
	sl.free = sl.free[:len(sl.free)-1]
	sl.live++
	s := sl.at(slot)
	*s = session{slot: slot, gen: s.gen + 1, links: links{next: nowhere, prev: nowhere, bucket: nowhere}}
	return s
}

func (sl *slab) give(s *session) {
	s.phase = free
	sl.free = append(sl.free, s.slot)
	sl.live--
}

func (sl *slab) grow() {
	base := uint32(len(sl.chunks)) << chunkShift
	sl.chunks = append(sl.chunks, new([chunkSize]session))
	for i := range uint32(chunkSize) {
		sl.free = append(sl.free, base+chunkSize-1-i) // the lowest is taken first
	}
}

// each calls f for every session that is there.
func (sl *slab) each(f func(*session)) {
	for _, chunk := range sl.chunks {
		for i := range chunk {
			if chunk[i].phase > free {
				f(&chunk[i])
			}
		}
	}
}
