package conf

import (
	"strconv"
)

// IsZero reports whether a is no address at all.
func (a Address) IsZero() bool { return a == Address{} }

// Network is "unix" or "tcp", as package net calls it.
func (a Address) Network() string {
	if a.Unix != "" {
		return "unix"
	}
	return "tcp"
}

// PortNumber is the port of an IP address or a host name, and 0 for a unix path.
func (a Address) PortNumber() uint16 {
	if a.IP.IsValid() {
		return a.IP.Port()
	}
	return a.Port
}

// String spells a as the file does.
func (a Address) String() string {
	switch {
	case a.Unix != "":
		return "unix:" + a.Unix
	case a.Host != "":
		return a.Host + ":" + strconv.Itoa(int(a.Port))
	case a.IP.IsValid():
		return a.IP.String()
	}
	return ""
}

