package l4

import "testing"

// TestNext walks every combination of what two directions can be in, against the rules in plain words.
func TestNext(t *testing.T) {
	for _, up := range allHalves() {
		for _, down := range allHalves() {
			want := wait
			switch {
			case mayPassEnd(up): // the client's end first: it cannot matter, but it is fixed
				want = passUp
			case mayPassEnd(down):
				want = passDown
			case up.stage == shut && down.stage == shut:
				want = endOfBoth
			}
			before := [2]half{up, down}
			if got := next(&up, &down); got != want {
				t.Errorf("up %+v, down %+v: got %d, want %d", up, down, got, want)
			}
			if before != [2]half{up, down} {
				t.Errorf("next changed %+v to %+v, %+v", before, up, down)
			}
		}
	}
}

// mayPassEnd: an end follows the last byte, never before.
func mayPassEnd(h half) bool { return h.stage == finished && h.buf == nil && h.piped == 0 }

func allHalves() (all []half) {
	buf := takeBuffer()
	for _, stage := range []stage{flowing, finished, shut} {
		for _, splicing := range []bool{false, true} {
			plain := half{stage: stage, splicing: splicing}
			inBuffer, inPipe, pipeOnly := plain, plain, plain
			inBuffer.buf = buf
			inPipe.pipe, inPipe.piped = &pipe{}, 1
			pipeOnly.pipe = &pipe{}
			all = append(all, plain, inBuffer, inPipe, pipeOnly)
		}
	}
	return all
}
