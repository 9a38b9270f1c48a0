package l4

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sockaddr is an address in the kernel's form, made once, so that a dial does no conversion.
type sockaddr struct {
	raw  unix.RawSockaddrAny
	size uint32
}

const unixPrefix = "unix:"

// parseAddr takes "ip:port", "[v6]:port" or "unix:/path" ("unix:@name" for the abstract namespace).
func parseAddr(text string) (sockaddr, error) {
	if path, ok := strings.CutPrefix(text, unixPrefix); ok {
		return unixAddr(path)
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return sockaddr{}, fmt.Errorf("address %q: want ip:port, [v6]:port or unix:/path", text)
	}
	return inetAddr(ap)
}

func inetAddr(ap netip.AddrPort) (sockaddr, error) {
	var a sockaddr
	ip := ap.Addr()
	if ip.Is4() || ip.Is4In6() {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&a.raw))
		sa.Family, sa.Addr, sa.Port = unix.AF_INET, ip.As4(), networkOrder(ap.Port())
		a.size = unix.SizeofSockaddrInet4
		return a, nil
	}
	sa := (*unix.RawSockaddrInet6)(unsafe.Pointer(&a.raw))
	sa.Family, sa.Addr, sa.Port = unix.AF_INET6, ip.As16(), networkOrder(ap.Port())
	a.size = unix.SizeofSockaddrInet6
	if zone := ip.Zone(); zone != "" {
		link, err := net.InterfaceByName(zone)
		if err != nil {
			return a, fmt.Errorf("zone %q: %w", zone, err)
		}
		sa.Scope_id = uint32(link.Index)
	}
	return a, nil
}

func unixAddr(path string) (sockaddr, error) {
	var a sockaddr
	sa := (*unix.RawSockaddrUnix)(unsafe.Pointer(&a.raw))
	if path == "" || len(path) >= len(sa.Path) {
		return a, fmt.Errorf("unix socket path %q: want 1 to %d bytes", path, len(sa.Path)-1)
	}
	sa.Family = unix.AF_UNIX
	for i := range len(path) {
		sa.Path[i] = int8(path[i])
	}
	a.size = uint32(2 + len(path) + 1)
	if path[0] == '@' { // the abstract namespace: a zero byte first, no terminator
		sa.Path[0] = 0
		a.size--
	}
	return a, nil
}

func (a *sockaddr) family() uint16 { return a.raw.Addr.Family }

func (a *sockaddr) isUnix() bool { return a.family() == unix.AF_UNIX }

// port is the TCP port, 0 for a unix address.
func (a *sockaddr) port() uint16 { return newPeer(&a.raw).port }

// networkOrder is a port as it lies in a sockaddr.
func networkOrder(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}

// A peer is a client's address in 18 bytes. IPv4 is kept in its v4-mapped form, so that a client is the same client
// whether it came through an IPv4 or a dual-stack listener. The zero peer is a unix client.
type peer struct {
	ip   [16]byte
	port uint16
}

var mapped = [12]byte{10: 0xff, 11: 0xff}

func newPeer(sa *unix.RawSockaddrAny) (p peer) {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		copy(p.ip[:], mapped[:])
		copy(p.ip[12:], in.Addr[:])
		p.port = networkOrder(in.Port)
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		p.ip, p.port = in.Addr, networkOrder(in.Port)
	}
	return p
}

// AddrPort is the client's address; not valid for a unix client.
func (p peer) AddrPort() netip.AddrPort {
	if p == (peer{}) {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom16(p.ip).Unmap(), p.port)
}

// key hashes a client for the hashing policies: FNV-1a over the 16 address bytes (and the port), then the finalizer
// of MurmurHash3. It is the same on every balancer and in every version; 0 means that there is no key.
func (p *peer) key(withPort bool) uint64 {
	if *p == (peer{}) {
		return 0
	}
	h := uint64(14695981039346656037)
	for _, b := range p.ip {
		h = (h ^ uint64(b)) * 1099511628211
	}
	if withPort {
		h = (h ^ uint64(p.port)) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return max(h, 1)
}

// localAddr is the address that a socket is bound to.
func localAddr(fd int32) (sockaddr, syscall.Errno) {
	var a sockaddr
	a.size = uint32(unix.SizeofSockaddrAny)
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&a.raw)),
		uintptr(unsafe.Pointer(&a.size)), 0, 0, 0)
	return a, e
}
