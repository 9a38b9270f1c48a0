package health

// State is what the checks have found out so far.
type State uint8

// Checking stands only until the first result.
const (
	Checking State = iota
	Up
	Down
)

func (s State) String() string { return [...]string{"checking", "up", "down"}[s] }

// verdict turns results into up or down. No clock, no I/O.
//
//	          ok                        fall x failed in a row
//	open --------> up    up <----------------------------------> down
//	open --------> down            rise x ok in a row
//	        failed
//
// open: the next result decides by itself, whatever up says; it is the state
// before the first result, and after a change of settings.
type verdict struct {
	up     bool
	open   bool
	streak int // results in a row that speak against up
}

// observe takes one result in and reports whether it decided anything: whether
// up has changed, or is not open any more.
func (v *verdict) observe(ok bool, rise, fall int) (decided bool) {
	if v.open {
		*v = verdict{up: ok}
		return true
	}
	if ok == v.up {
		v.streak = 0
		return false
	}
	v.streak++
	if v.streak < v.needed(rise, fall) {
		return false
	}
	*v = verdict{up: ok}
	return true
}

// needed is how many results in a row change the verdict.
func (v *verdict) needed(rise, fall int) int {
	if v.up {
		return fall
	}
	return rise
}
