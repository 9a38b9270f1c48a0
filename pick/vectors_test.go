package pick

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The numbers here were worked out elsewhere: by the documents that describe the
// algorithms, by the test suites of other products, and by hand.

func TestSmoothSequence(t *testing.T) {
	for _, tt := range []struct {
		weights []int
		want    string
	}{
		{[]int{5, 1, 1}, "a a b a c a a"},
		{[]int{1, 1, 1}, "a b c"},
		{[]int{1, 2}, "b a b"},
		{[]int{2, 1}, "a b a"},
		{[]int{3, 1}, "a a b a"},
		{[]int{2, 2, 1}, "a b c a b"},
		{[]int{3, 2, 1}, "a b a c b a"},
		{[]int{1, 2, 3}, "c b a c b c"},
		{[]int{4, 2, 1}, "a b a c a b a"},
		{[]int{4, 3, 2}, "a b c a b a c b a"},
		{[]int{10, 1}, "a a a a a b a a a a a"},
		{[]int{1, 9, 6}, "b c b c b a b c b c b b c b c b"},
		{[]int{3, 0, 1}, "a a c a"},
		{[]int{10, 2, 2}, "a a b a c a a"},
		{[]int{1, 2, 3, 4}, "d c b d a c d b c d"},
	} {
		for _, policy := range []Policy{RoundRobin, WeightedRoundRobin} {
			set := newPool(t, Config{Policy: policy, Servers: named(tt.weights...)}).Set()
			cycle := len(strings.Fields(tt.want))
			if got, want := sequence(set, NewStateAt(0), 2*cycle), tt.want+" "+tt.want; got != want {
				t.Errorf("weights %v:\n got %s\nwant %s", tt.weights, got, want)
			}
		}
	}
}

func TestInterleavedSequence(t *testing.T) {
	for _, tt := range []struct {
		weights []int
		want    string
	}{
		{[]int{4, 3, 2}, "a a b a b c a b c"},
		{[]int{5, 1, 1}, "a a a a a b c"},
		{[]int{1, 2}, "b a b"},
		{[]int{2, 1}, "a a b"},
		{[]int{3, 2, 1}, "a a b a b c"},
		{[]int{6, 4, 2}, "a a b a b c"},
		{[]int{4, 2, 1}, "a a a b a b c"},
	} {
		set := newPool(t, Config{Policy: InterleavedWRR, Servers: named(tt.weights...)}).Set()
		if got := sequence(set, NewStateAt(0), len(strings.Fields(tt.want))); got != tt.want {
			t.Errorf("weights %v:\n got %s\nwant %s", tt.weights, got, tt.want)
		}
	}
}

// TestElevenServers is the round robin of the textbook: 11 servers, 101 steps.
func TestElevenServers(t *testing.T) {
	set := newPool(t, Config{Servers: named(repeat(11, 1)...)}).Set()
	st := NewStateAt(0)
	for step := range 101 {
		if i := set.Pick(st, 0, nil); i != step%11 {
			t.Fatalf("step %d: got server %d, want %d", step, i, step%11)
		}
	}
}

// TestIntervals looks at each point of the prefix sums of weights 4, 6, 3, 2, 5.
func TestIntervals(t *testing.T) {
	v := newIntervals([]uint64{4, 6, 3, 2, 5})
	want := []int{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 4, 4}
	for point, interval := range want {
		// The fraction in the middle of the point, as a draw would have it.
		slice := (uint64(point)<<1 + 1) << 58 / 20 << 5 >> v.shift
		if got := v.find(uint64(point), slice); got != interval {
			t.Errorf("point %d is in interval %d, want %d", point, got, interval)
		}
	}
}

// TestSharesOfOtherSuites has the counts that the tests of Traefik, Dubbo and
// dubbo-go ask for.
func TestSharesOfOtherSuites(t *testing.T) {
	for _, tt := range []struct {
		weights []int
		picks   int
		want    string
	}{
		{[]int{1, 1}, 4, "map[a:2 b:2]"},
		{[]int{3, 1}, 4, "map[a:3 b:1]"},
		{[]int{3, 1}, 16, "map[a:12 b:4]"},
		{[]int{3, 0}, 16, "map[a:16]"},
		{[]int{0, 0, 0}, 10, "map[-:10]"},
		{repeat(5, 1), 10_000, "map[a:2000 b:2000 c:2000 d:2000 e:2000]"},
		{[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 55, "map[a:1 b:2 c:3 d:4 e:5 f:6 g:7 h:8 i:9 j:10]"},
	} {
		for _, policy := range []Policy{RoundRobin, WeightedRoundRobin, InterleavedWRR} {
			set := newPool(t, Config{Policy: policy, Servers: named(tt.weights...)}).Set()
			if got := fmt.Sprint(tally(set, NewState(1), tt.picks)); got != tt.want {
				t.Errorf("weights %v, %d picks: got %s, want %s", tt.weights, tt.picks, got, tt.want)
			}
		}
	}
}

// TestWarmUp has Dubbo's table for weight 100 in ten minutes, which begins at 1,
// and Envoy's for sixty seconds, which begins at 10 percent.
func TestWarmUp(t *testing.T) {
	for _, tt := range []struct {
		elapsed, window time.Duration
		floor, want     int
	}{
		{0, 10 * time.Minute, 1, 1},
		{13 * time.Millisecond, 10 * time.Minute, 1, 1},
		{6 * time.Second, 10 * time.Minute, 1, 1},
		{12 * time.Second, 10 * time.Minute, 1, 2},
		{time.Minute, 10 * time.Minute, 1, 10},
		{5 * time.Minute, 10 * time.Minute, 1, 50},
		{5*time.Minute + 6*time.Second, 10 * time.Minute, 1, 51},
		{9 * time.Minute, 10 * time.Minute, 1, 90},
		{9*time.Minute + 48*time.Second, 10 * time.Minute, 1, 98},
		{9*time.Minute + 54*time.Second, 10 * time.Minute, 1, 99},
		{10 * time.Minute, 10 * time.Minute, 1, 100},
		{time.Hour, 10 * time.Minute, 1, 100},
		{-time.Second, time.Minute, rampFloor, 10},
		{0, time.Minute, rampFloor, 10},
		{6 * time.Second, time.Minute, rampFloor, 10},
		{15 * time.Second, time.Minute, rampFloor, 25},
		{30 * time.Second, time.Minute, rampFloor, 50},
		{time.Minute, time.Minute, rampFloor, 100},
	} {
		if got := rampAt(tt.elapsed, tt.window, tt.floor); got != tt.want {
			t.Errorf("%v of %v: got %d percent, want %d", tt.elapsed, tt.window, got, tt.want)
		}
	}
}

// TestMaglevPaper is the worked example of the paper, section 3.4: three backends,
// seven slots, and what becomes of the table without one of them.
func TestMaglevPaper(t *testing.T) {
	b0, b1, b2 := walk{3, 4}, walk{0, 2}, walk{3, 1}
	for _, tt := range []struct {
		walks []walk
		want  []int32
	}{
		{[]walk{b0, b1, b2}, []int32{1, 0, 1, 0, 2, 2, 0}},
		{[]walk{b0, b2}, []int32{0, 0, 0, 0, 1, 1, 1}},
		{[]walk{b1, b2}, []int32{0, 0, 0, 1, 1, 1, 0}},
		{[]walk{b0, b1}, []int32{1, 0, 1, 0, 0, 0, 1}},
	} {
		if got := maglevFill(7, tt.walks, nil); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%v: got %v, want %v", tt.walks, got, tt.want)
		}
	}
}

func TestMaglevWeights(t *testing.T) {
	if got := fmt.Sprint(apportion([]uint64{2, 1}, 3, 7)); got != "[5 2]" {
		t.Errorf("7 slots for weights 2, 1: got %s, want [5 2]", got)
	}
	ms := membersOf(repeat(400, 1)...)
	for i := range ms {
		ms[i].Weight = []int{2, 1, 1}[i%3]
	}
	counts := make([]int, len(ms))
	for _, i := range SourceHash(ms).(*maglev).table {
		counts[i]++
	}
	for i, n := range counts {
		if ideal := 65_537 * ms[i].Weight / 534; n < ideal-2 || n > ideal+2 {
			t.Errorf("weight %d has %d slots, want %d or 2 off", ms[i].Weight, n, ideal)
		}
	}
}

// TestMaglevTable holds the table to the balance of the paper and to the disruption
// that a simulation with good hashes had: the share of slots that move besides
// those of the backends that go.
func TestMaglevTable(t *testing.T) {
	for _, tt := range []struct {
		servers, min, max, removed int
		moved                      float64
	}{
		{1000, 65, 66, 1, 0.010},
		{1000, 65, 66, 5, 0.025},
		{1000, 65, 66, 10, 0.032},
		{10, 6553, 6554, 1, 0.006},
		{3, 21_845, 21_846, 1, 0.002},
	} {
		ms := membersOf(repeat(tt.servers, 1)...)
		table := SourceHash(ms).(*maglev).table
		counts := make([]int, tt.servers)
		for _, i := range table {
			counts[i]++
		}
		for i, n := range counts {
			if n < tt.min || n > tt.max {
				t.Fatalf("server %d of %d has %d slots, want %d..%d", i, tt.servers, n, tt.min, tt.max)
			}
		}
		fewer := SourceHash(ms[tt.removed:]).(*maglev).table
		moved := 0
		for slot, i := range table {
			if int(i) >= tt.removed && int(i) != int(fewer[slot])+tt.removed {
				moved++
			}
		}
		if share := float64(moved) / float64(len(table)); share > tt.moved {
			t.Errorf("%d of %d removed: %.4f of the slots moved besides theirs, want %.4f at most", tt.removed, tt.servers, share, tt.moved)
		}
	}
}
