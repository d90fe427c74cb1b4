package outgoing

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"golang.org/x/net/proxy"
)

// dial makes a connection to the endpoint.
func (c *Client) dial(ctx context.Context, principal string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	raw, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	over := raw
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	if c.proxy != nil && c.proxy.Scheme == "https" {
		if over, err = c.secure(ctx, over, c.proxy.Hostname()); err != nil {
			_ = raw.Close()
			return nil, err
		}
	}
	if c.origin.scheme == "https" {
		if c.proxy != nil && c.proxy.Scheme != "socks5" {
			err = c.tunnel(over)
		}
		if err == nil {
			over, err = c.secure(ctx, over, c.origin.host)
		}
	}
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	cn := &conn{Conn: over, raw: raw, principal: principal, pool: &c.pool, idle: c.idle}
	cn.in = bufio.NewReader(cn)
	if err := c.pool.add(cn); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return cn, nil
}

// connect makes a TCP connection to the endpoint or the proxy. It never uses the proxies that environment
// variables name.
func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	endpoint := net.JoinHostPort(c.origin.host, c.origin.port)
	if c.proxy == nil {
		d := net.Dialer{ControlContext: c.control}
		return d.DialContext(ctx, "tcp", endpoint)
	}
	if ip, err := netip.ParseAddr(c.origin.host); err == nil { // If the host is a name, the proxy looks it up.
		if err := c.rules.check(netip.AddrPortFrom(ip, 0)); err != nil {
			return nil, err
		}
	}
	d := &net.Dialer{}
	if c.proxy.Scheme != "socks5" {
		return d.DialContext(ctx, "tcp", net.JoinHostPort(c.proxy.Hostname(), portOf(c.proxy)))
	}
	var auth *proxy.Auth
	if c.proxy.User != nil {
		password, _ := c.proxy.User.Password()
		auth = &proxy.Auth{User: c.proxy.User.Username(), Password: password}
	}
	s, err := proxy.SOCKS5("tcp", net.JoinHostPort(c.proxy.Hostname(), portOf(c.proxy)), auth, d)
	if err != nil {
		return nil, err
	}
	dialer, ok := s.(proxy.ContextDialer)
	if !ok {
		return nil, errors.New("the SOCKS5 client cannot be cancelled")
	}
	return dialer.DialContext(ctx, "tcp", endpoint)
}

// control checks the address to which the name of the host was resolved, just before the connection is made.
func (c *Client) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return c.rules.check(ap)
}

// portOf returns the port of a proxy.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443", "socks5": "1080"}[u.Scheme]
}

// secure begins TLS on a connection.
func (c *Client) secure(ctx context.Context, over net.Conn, host string) (net.Conn, error) {
	config := c.tls.Clone()
	config.ServerName = host
	t := tls.Client(over, config)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// tunnel asks the proxy for a connection to the endpoint.
func (c *Client) tunnel(over net.Conn) error {
	endpoint := net.JoinHostPort(c.origin.host, c.origin.port)
	ask := "CONNECT " + endpoint + " HTTP/1.1\r\nHost: " + endpoint + "\r\n"
	if header := c.proxyAuthorization(); header != "" {
		ask += "Proxy-Authorization: " + header + "\r\n"
	}
	if _, err := over.Write([]byte(ask + "\r\n")); err != nil {
		return err
	}
	in := bufio.NewReader(&byteWise{over})
	head, err := readHead(in, MaxHeaders)
	if err != nil {
		return err
	}
	var major, minor, status int
	if _, err := fmt.Sscanf(string(head), "HTTP/%d.%d %d", &major, &minor, &status); err != nil || status != http.StatusOK {
		return fmt.Errorf("the proxy answered with status %d", status)
	}
	return nil
}

// proxyAuthorization returns the header with the credentials for the proxy, or "".
func (c *Client) proxyAuthorization() string {
	if c.proxy == nil || c.proxy.User == nil {
		return ""
	}
	password, _ := c.proxy.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.proxy.User.Username()+":"+password))
}

// byteWise reads one byte at a time, so that nothing after a head is read.
type byteWise struct{ net.Conn }

// Read reads one byte.
func (b *byteWise) Read(p []byte) (int, error) { return b.Conn.Read(p[:min(1, len(p))]) }
