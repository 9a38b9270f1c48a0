package pick

import (
	"cmp"
	"slices"
)

// fairOrder returns the proportionate fair order of a cycle of total places with
// ws[i] places for i, where the ws add up to total (see cycle). Turn k of i, from
// 0, may come at place k·total/w_i and must come before (k+1)·total/w_i. Time is
// total·log n: one heap of turns whose interval has begun, by their ends, and a
// calendar of those to come.
func fairOrder(ws []uint64, total uint64) []int32 {
	f := fair{
		ws: ws, total: total,
		turn:   make([]uint64, len(ws)),
		begins: make([]int32, total),
		chain:  make([]int32, len(ws)),
	}
	for i, w := range ws {
		if w > 0 {
			f.enter(0, int32(i))
		}
	}
	order := make([]int32, total)
	for t := range order {
		for i := f.begins[t]; i != 0; i = f.chain[i-1] {
			f.due.push(f.end(i - 1))
		}
		i := f.due.pop()
		order[t] = i
		if f.turn[i]++; f.turn[i] < ws[i] {
			f.enter(uint64(t)+1, i)
		}
	}
	return order
}

type fair struct {
	ws     []uint64
	total  uint64
	turn   []uint64 // turns that i has had
	begins []int32  // for each place, a chain of those whose next turn may come from there on: index + 1, 0 ends it
	chain  []int32
	due    dueHeap
}

// enter files the next turn of i, at place t or later.
func (f *fair) enter(t uint64, i int32) {
	begin := f.turn[i] * f.total / f.ws[i]
	if begin < t || t == 0 {
		f.due.push(f.end(i))
		return
	}
	f.chain[i] = f.begins[begin]
	f.begins[begin] = i + 1
}

// end is when the next turn of i must have come, above i itself to break ties.
func (f *fair) end(i int32) uint64 {
	end := ((f.turn[i]+1)*f.total + f.ws[i] - 1) / f.ws[i]
	return end<<32 | uint64(i)
}

// dueHeap is a binary heap, smallest first. container/heap costs an interface
// call for each comparison, which is most of the time of publishing a Set.
type dueHeap []uint64

func (h *dueHeap) push(x uint64) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] > x {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
	*h = s
}

// pop removes the smallest and returns the index in it.
func (h *dueHeap) pop() int32 {
	s := *h
	top, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if child >= len(s) || s[child] >= x {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = x
	}
	*h = s
	return int32(uint32(top))
}

// largest returns the indices of ws, the largest value first.
func largest(ws []uint64) []int {
	order := make([]int, len(ws))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ws[b], ws[a]) })
	return order
}
