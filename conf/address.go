package conf

import (
	"net/netip"
	"path"
	"strconv"
	"strings"
)

const (
	wantBind   = `an address such as "0.0.0.0:5432", "[::]:5432" or "unix:/run/x.sock"`
	wantServer = `an address such as "10.0.0.11:5432", "db.example:5432" or "unix:/run/x.sock"`
	wantPort   = "a port number from 1 to 65535"
)

// The kernel's sun_path holds 108 bytes, of which the last is zero.
const longestUnix = 107

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

// bindAddress accepts what can be listened on: no host names, which might mean several addresses.
func bindAddress(raw any) (Address, error) {
	a, err := address(raw, wantBind)
	if err == nil && a.Host != "" {
		err = wrong(raw, wantBind+", not a host name")
	}
	return a, err
}

// serverAddress accepts what can be connected to.
func serverAddress(raw any) (Address, error) {
	a, err := address(raw, wantServer)
	if err == nil && a.IP.IsValid() && (a.IP.Addr().IsUnspecified() || a.IP.Addr().IsMulticast()) {
		err = wrong(raw, "the address of one server")
	}
	return a, err
}

func address(raw any, want string) (Address, error) {
	s, ok := raw.(string)
	if !ok {
		return Address{}, wrong(raw, want)
	}
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		return unixAddress(raw, path)
	}
	host, port, ok := cutPort(s)
	if !ok {
		return Address{}, wrong(raw, want+noPort(s))
	}
	if port == 0 {
		return Address{}, wrong(raw, wantPort+" after the last colon")
	}
	return hostAddress(raw, host, port, want)
}

// cutPort splits s at its last colon. The port is 0 when it is none.
func cutPort(s string) (host string, port uint16, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.HasSuffix(s, "]") {
		return s, 0, false
	}
	digits := s[i+1:]
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || digits[0] == '0' || digits[0] == '+' { // 080 is octal to some
		n = 0
	}
	return s[:i], uint16(n), true
}

func noPort(s string) string {
	if strings.HasPrefix(s, "/") {
		return " (did you mean " + quote("unix:"+s) + "?)"
	}
	return "; the port is missing"
}

func hostAddress(raw any, host string, port uint16, want string) (Address, error) {
	literal, open := strings.CutPrefix(host, "[")
	literal, closed := strings.CutSuffix(literal, "]")
	ip, ok := parseIP(literal)
	switch {
	case ok && ip.Is4In6():
		return Address{}, wrong(raw, "the IPv4 address as such: "+quote(netip.AddrPortFrom(ip.Unmap(), port).String()))
	case ok && ip.Is6() == open && ip.Is6() == closed:
		return Address{IP: netip.AddrPortFrom(ip, port)}, nil
	case isIPv6(literal) || isIPv6(raw.(string)):
		return Address{}, wrong(raw, `brackets around an IPv6 address, such as "[::1]:5432"`)
	case isHost(host):
		return Address{Host: host, Port: port}, nil
	}
	return Address{}, wrong(raw, want)
}

// parseIP is netip.ParseAddr for zones that can be the name of an interface. Others could carry anything.
func parseIP(s string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(s)
	return ip, err == nil && (ip.Zone() == "" || checkName(ip.Zone()) == nil)
}

func isIPv6(s string) bool {
	ip, ok := parseIP(s)
	return ok && ip.Is6()
}

func unixAddress(raw any, file string) (Address, error) {
	if len(file) > longestUnix {
		return Address{}, wrong(raw, "a path of at most "+strconv.Itoa(longestUnix)+" bytes, and this has "+strconv.Itoa(len(file)))
	}
	if !strings.HasPrefix(file, "/") || strings.HasSuffix(file, "/") || strings.ContainsFunc(file, isControl) {
		return Address{}, wrong(raw, `the absolute path of a socket, such as "unix:/run/x.sock"`)
	}
	return Address{Unix: path.Clean(file)}, nil
}

// isHost reports whether s can be a host name. A last label of digits only is a mistyped IP address.
func isHost(s string) bool {
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(s) <= 253 && strings.Trim(last, "0123456789") != ""
}

func isLabel(s string) bool {
	const longestLabel = 63
	return s != "" && len(s) <= longestLabel && s[0] != '-' && s[len(s)-1] != '-' &&
		!strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || !isBare(byte(r)) })
}
