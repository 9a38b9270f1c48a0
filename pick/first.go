package pick

// First takes the first server, in the order of the configuration, that is not
// full: HAProxy's first. It fills one after another, so that those behind can be
// switched off at night; it needs MaxConnections.
func First(members []Member) Picker { return &first{newGroup(members)} }

type first struct{ group }

func (f *first) Pick(_ *State, _ uint64, tried []int) int { return f.anyFrom(0, tried) }
