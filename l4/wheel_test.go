package l4

import (
	"math/rand/v2"
	"testing"
)

// The wheel against a map: everything is looked at after its time and within two ticks of it (a lap at most for what
// lies beyond one), once, and nothing that was removed is.
func TestWheel(t *testing.T) {
	for seed := range uint64(20) {
		m := newWheelModel(seed)
		for range 3000 {
			m.step(t)
		}
	}
}

type wheelModel struct {
	random *rand.Rand
	slab   slab
	wheel  wheel
	now    int64
	due    map[uint32]int64 // slot -> when it wants to be looked at
}

func newWheelModel(seed uint64) *wheelModel {
	m := &wheelModel{random: rand.New(rand.NewPCG(seed, 0)), due: map[uint32]int64{}, now: int64(seed) * 977e6}
	m.wheel.init(m.now)
	for range 200 {
		m.slab.take()
	}
	return m
}

func (m *wheelModel) step(t *testing.T) {
	slot := uint32(m.random.IntN(200))
	switch m.random.IntN(4) {
	case 0:
		delete(m.due, slot)
		m.wheel.remove(&m.slab, slot)
	case 1:
		m.turn(t)
	default:
		m.put(slot)
	}
	m.checkNext(t)
}

func (m *wheelModel) put(slot uint32) {
	at := m.now + m.random.Int64N(2*buckets*tick) // half of them beyond a lap
	if m.random.IntN(3) == 0 {
		at = m.now - tick + m.random.Int64N(4*tick)
	}
	m.due[slot] = at
	m.wheel.put(&m.slab, slot, at)
}

func (m *wheelModel) turn(t *testing.T) {
	m.now += m.random.Int64N(m.jump())
	m.wheel.turn(&m.slab, m.now, func(slot uint32) {
		at, waits := m.due[slot]
		if !waits {
			t.Fatalf("slot %d was looked at though nobody asked", slot)
		}
		if at < m.now {
			delete(m.due, slot)
		} else {
			m.wheel.put(&m.slab, slot, at) // a lap is over, it is not due yet
		}
		if m.random.IntN(4) == 0 { // a look may remove any other
			other := uint32(m.random.IntN(200))
			m.wheel.remove(&m.slab, other)
			delete(m.due, other)
		}
	})
	for slot, at := range m.due {
		if at < m.now-2*tick {
			t.Fatalf("slot %d was due %d ms ago", slot, (m.now-at)/1e6)
		}
	}
}

// jump is how far time may go at once: mostly a few ticks, now and then beyond a lap, as after a machine's sleep.
func (m *wheelModel) jump() int64 {
	if m.random.IntN(20) == 0 {
		return 3 * buckets * tick
	}
	return 5 * tick
}

// checkNext: the alarm is set by next, so it must not be later than the first due session.
func (m *wheelModel) checkNext(t *testing.T) {
	at, some := m.wheel.next()
	if some != (len(m.due) > 0) {
		t.Fatalf("next says %v, %d sessions wait", some, len(m.due))
	}
	for slot, due := range m.due {
		if latest := max(due, m.now) + 2*tick; at > latest {
			t.Fatalf("next is %d ms after slot %d is due", (at-due)/1e6, slot)
		}
	}
	if some && at>>tickShift <= m.wheel.turned {
		t.Fatalf("next is at a tick that was turned already")
	}
}
