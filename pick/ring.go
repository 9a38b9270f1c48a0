package pick

import (
	"math/bits"
	"slices"
)

// RingHash places servers and keys on a circle; a key goes to the next server
// clockwise: consistent hashing (Karger et al. 1997) in the manner of ketama (2007),
// with 160 points for each unit of weight. When a server goes, its own keys move
// and no others. Shares are even to about 8 %; [SourceHash] is evener and faster.
//
// Weights that would need more than 2^17 points (and more than 160 a server) are
// scaled down by a power of two. Only a change of that power moves keys between
// servers that stayed.
func RingHash(members []Member) Picker {
	g := newGroup(members)
	if g.idle() {
		return nobody{}
	}
	return newRing(g)
}

const (
	ringPoints = 160
	ringCap    = 1 << 17
)

// ring keeps points sorted: the upper 40 bits are the place, the lower 24 who is
// there, as a rank in the order of identities.
type ring struct {
	placed
	points []uint64
	order  []int32 // rank to member
	guide  []int32 // for each equal arc, its first point
	shift  uint    // a place shifted right by this is an arc
}

const rankBits = 24

func newRing(g group) *ring {
	r := &ring{placed: newPlaced(g), order: g.byIdentity()}
	scale, sum := r.scale()
	points := make([]uint64, 0, sum)
	for rank, i := range r.order {
		m := g.members[i]
		for k := range pointsOf(m, scale) {
			place := mix(m.ident + (k+1)*0x9e3779b97f4a7c15)
			points = append(points, place>>rankBits<<rankBits|uint64(rank))
		}
	}
	r.sort(points)
	return r
}

// pointsOf depends on the server's own weight and not on the sum: the points of a
// server must not move when another one goes.
func pointsOf(m Member, scale uint) uint64 {
	w := m.weight()
	if w == 0 {
		return 0
	}
	return max(1, w*ringPoints/100>>scale)
}

// scale is the smallest power of two that keeps the ring within bounds, and the
// number of its points.
func (r *ring) scale() (scale uint, sum uint64) {
	most := max(ringCap, uint64(len(r.members))*ringPoints)
	for ; ; scale++ {
		sum = 0
		for _, m := range r.members {
			sum += pointsOf(m, scale)
		}
		if sum <= most {
			return scale, sum
		}
	}
}

// sort files the points by arc and sorts each arc, which holds one or two.
func (r *ring) sort(points []uint64) {
	arcs := 1 << (bits.Len(uint(len(points))) - 1)
	r.shift = uint(64 - bits.TrailingZeros(uint(arcs)))
	ends := make([]int32, arcs+1) // counted one arc ahead, then summed up, is where arcs begin
	for _, p := range points {
		ends[p>>r.shift+1]++
	}
	for a := range arcs {
		ends[a+1] += ends[a]
	}
	r.guide = slices.Clone(ends)
	r.points = make([]uint64, len(points))
	for _, p := range points {
		arc := p >> r.shift
		at := ends[arc]
		ends[arc]++
		for ; at > r.guide[arc] && r.points[at-1] > p; at-- {
			r.points[at] = r.points[at-1]
		}
		r.points[at] = p
	}
}

func (r *ring) bound(factor float64) Picker {
	b := *r
	b.factor = factor
	return &b
}

func (r *ring) Pick(st *State, key uint64, tried []int) int {
	if key == 0 {
		return r.turns.Pick(st, 0, tried)
	}
	at := r.clockwise(mix(key))
	if r.factor == 0 && r.open(tried) {
		return r.owner(at)
	}
	return r.pickPast(at, tried)
}

// clockwise returns the first point at or after a place.
func (r *ring) clockwise(place uint64) int {
	place = place >> rankBits << rankBits // ranks are no part of a place
	arc := place >> r.shift
	at, end := r.guide[arc], r.guide[arc+1]
	for at < end && r.points[at] < place {
		at++
	}
	if int(at) == len(r.points) {
		return 0
	}
	return int(at)
}

func (r *ring) owner(at int) int { return int(r.order[r.points[at]&(1<<rankBits-1)]) }

// pickPast walks on clockwise, for some hundred points: more means that hardly
// anybody can be picked, and looking at each once is shorter.
func (r *ring) pickPast(at int, tried []int) int {
	room := r.room()
	i := r.owner(at)
	for range 256 {
		if i = r.owner(at); !r.skips(i, tried, room) {
			return i
		}
		if at++; at == len(r.points) {
			at = 0
		}
	}
	return r.scan(i, tried, room)
}
