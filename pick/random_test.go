package pick

import (
	"math"
	"testing"
)

// chiSquare measures how far counts are from what the weights ask for; a false
// alarm comes once in a thousand above critical.
func chiSquare(counts []int, weights []int) float64 {
	picks, total, sum := 0, 0, 0.0
	for i, w := range weights {
		picks += counts[i]
		total += w
	}
	for i, w := range weights {
		if w > 0 {
			want := float64(picks) * float64(w) / float64(total)
			sum += (float64(counts[i]) - want) * (float64(counts[i]) - want) / want
		}
	}
	return sum
}

// critical is the 99.9 percent point of chi-square, by Wilson and Hilferty (1931).
func critical(freedom int) float64 {
	k := float64(freedom)
	return k * math.Pow(1-2/(9*k)+3.09*math.Sqrt(2/(9*k)), 3)
}

func TestRandomIsFair(t *testing.T) {
	for _, tt := range []struct {
		name    string
		weights []int
		expect  []int // the weights that count
	}{
		{"random", []int{1, 1, 1}, []int{1, 1, 1}},
		{"random", []int{1, 9, 6}, []int{1, 1, 1}},
		{"random", repeat(100, 1), repeat(100, 1)},
		{"weighted_random", []int{1, 9, 6}, []int{1, 9, 6}},
		{"weighted_random", []int{1, 1}, []int{1, 1}},
		{"weighted_random", []int{1, 0}, []int{1, 0}},
		{"weighted_random", []int{0, 1}, []int{0, 1}},
		{"weighted_random", []int{0, 0, 1}, []int{0, 0, 1}},
		{"weighted_random", []int{0, 5, 0}, []int{0, 5, 0}},
		{"weighted_random", []int{1_000_000, 1, 1_000_000, 50_000}, []int{1_000_000, 1, 1_000_000, 50_000}},
		{"weighted_random", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"two_choices", []int{1, 2, 3, 4}, []int{1, 2, 3, 4}}, // nobody busy: the first draw stands
		{"two_choices", repeat(10, 1), repeat(10, 1)},
	} {
		picker, st, counts := mustParse(t, tt.name)(membersOf(tt.weights...)), NewStateAt(11), make([]int, len(tt.weights))
		for range 100_000 {
			counts[picker.Pick(st, 0, nil)]++
		}
		freedom := -1
		for i, w := range tt.expect {
			if w > 0 {
				freedom++
			} else if counts[i] > 0 {
				t.Errorf("%s %v: weight 0 was picked %d times", tt.name, tt.weights, counts[i])
			}
		}
		if x := chiSquare(counts, tt.expect); freedom > 0 && x > critical(freedom) {
			t.Errorf("%s %v: chi-square %.1f, want under %.1f: %v", tt.name, tt.weights, x, critical(freedom), counts)
		}
	}
}

// The second draw, past a server that was tried, is as fair among the others.
func TestRandomRetryIsFair(t *testing.T) {
	for name, expect := range map[string][]int{"random": {1, 0, 1, 1}, "weighted_random": {1, 0, 3, 4}} {
		picker, st, counts := mustParse(t, name)(membersOf(1, 2, 3, 4)), NewStateAt(12), make([]int, 4)
		for range 100_000 {
			counts[picker.Pick(st, 0, []int{1})]++
		}
		if x := chiSquare(counts, expect); counts[1] > 0 || x > critical(2) {
			t.Errorf("%s without the second: chi-square %.1f, want under %.1f: %v", name, x, critical(2), counts)
		}
	}
}

// TestIntervalsAgainstWalk compares the guided search with a walk over all.
func TestIntervalsAgainstWalk(t *testing.T) {
	st := NewStateAt(13)
	for range 200 {
		ws := make([]uint64, 1+st.below(60))
		for i := range ws {
			ws[i] = st.below(4) * st.below(1<<st.below(27))
		}
		ws[st.below(uint64(len(ws)))] = 1
		v := newIntervals(ws)
		for range 200 {
			before := *st
			got := v.draw(st)
			point, want := before.below(v.ends[len(ws)-1]), 0
			for point >= ws[want] {
				point -= ws[want]
				want++
			}
			if got != want {
				t.Fatalf("weights %v: got %d, want %d", ws, got, want)
			}
		}
	}
}

// Two choices keep the fullest server close to the mean, which one choice does not.
func TestTwoChoicesBalance(t *testing.T) {
	most := func(name string) int64 {
		set, st := newPool(t, Config{Policy: mustParse(t, name), Servers: named(repeat(100, 1)...)}).Set(), NewStateAt(14)
		top := int64(0)
		for range 10_000 {
			i := set.Acquire(st, 0, nil)
			top = max(top, set.At(i).Active())
		}
		return top
	}
	if two, one := most("two_choices"), most("random"); two > 105 || one < 115 {
		t.Errorf("of 100 servers with 100 sessions each the fullest has %d with two choices (want 105 at most), %d with one", two, one)
	}
}
