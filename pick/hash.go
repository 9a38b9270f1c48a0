package pick

// mix is the finaliser of SplitMix64: a bijection in which each input bit moves
// about half of the output bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// HashBytes makes a key for the hash policies out of any bytes: FNV-1a, finished
// by a mixer because FNV alone leaves the high bits of short keys alike. It is
// never 0, since key 0 means "no key". The function is part of the contract: a
// given key goes to the same server from every process and version.
func HashBytes(b []byte) uint64 { return keyed(fnv(fnvStart, b)) }

// HashString is [HashBytes] for a string.
func HashString(s string) uint64 { return keyed(fnv(fnvStart, s)) }

const fnvStart = 0xcbf29ce484222325

func fnv[T string | []byte](h uint64, b T) uint64 {
	for i := range len(b) {
		h = (h ^ uint64(b[i])) * 0x100000001b3
	}
	return h
}

func keyed(h uint64) uint64 {
	if h = mix(h); h == 0 {
		return 1
	}
	return h
}

// identity is what the hash policies place on their tables: the server's own
// name and address, never its position in a list (LBX-05), so every process with
// the same servers maps alike however they are ordered or came to be added.
func identity(name, addr string) uint64 {
	return keyed(fnv(fnv(fnv(fnvStart, name), "\x00"), addr))
}
