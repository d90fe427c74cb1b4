package outgoing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// rules say to which addresses a client may connect.
type rules struct {
	private   bool
	forbidden []netip.AddrPort
}

// never are the networks that no toolset may reach: those of a single machine or link, those without hosts,
// and those in which clouds serve the credentials of the machine.
var never = prefixes("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "fe80::/10", "ff00::/8",
	"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128")

// private are the networks that are not the public internet.
var private = prefixes("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"::/96", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fec0::/10")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

var errAddress = errors.New("address is not allowed")

// check refuses an address to which the client may not connect.
func (r rules) check(ap netip.AddrPort) error {
	for _, ip := range meanings(ap.Addr()) {
		if within(never, ip) || within(private, ip) && !r.private || r.forbids(ip, ap.Port()) {
			return &Error{Reason: Disallowed, Err: fmt.Errorf("%w: %s", errAddress, ap)}
		}
	}
	return nil
}

func within(list []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// forbids reports whether connections to an address and port are always forbidden.
func (r rules) forbids(ip netip.Addr, port uint16) bool {
	for _, f := range r.forbidden {
		if f.Port() == port && (f.Addr().Unmap() == ip || f.Addr().IsUnspecified() && ours(ip)) {
			return true
		}
	}
	return false
}

// ours reports whether an address belongs to this machine. If the addresses of the machine cannot be found
// out, it reports true.
func ours(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == ip
	})
}

// meanings returns an address and the IPv4 address to which networks on the way may translate it.
func meanings(ip netip.Addr) []netip.Addr {
	ip = ip.Unmap().WithZone("")
	list := []netip.Addr{ip}
	if !ip.Is6() {
		return list
	}
	b := ip.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip), netip.MustParsePrefix("64:ff9b:1::/48").Contains(ip): // NAT64
		list = append(list, netip.AddrFrom4([4]byte(b[12:])))
	case netip.MustParsePrefix("2002::/16").Contains(ip): // 6to4
		list = append(list, netip.AddrFrom4([4]byte(b[2:6])))
	case netip.MustParsePrefix("2001::/32").Contains(ip): // Teredo, which inverts the bits
		var v4 [4]byte
		binary.BigEndian.PutUint32(v4[:], ^binary.BigEndian.Uint32(b[12:]))
		list = append(list, netip.AddrFrom4(v4))
	}
	return list
}
