// Package guard makes HTTP clients for addresses from the model or a user.
//
// Such a client reaches only public addresses of other machines, and what [Config] allows besides. It checks
// the address to be dialled, after resolving the name and for every redirect, so that neither a
// name that resolves to an internal address nor one that changes between check and use gets
// through.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Errors that callers distinguish.
var (
	// ErrAddress is returned for a host whose address is not public, or is this machine's.
	ErrAddress = errors.New("the address is this machine's, internal or reserved, and this bot may only reach public ones of others")
	// ErrURL is returned for a URL that is not http or https, has no host, or has a user name or
	// password.
	ErrURL = errors.New("not a usable URL")
	// ErrRedirects is returned for more redirects than allowed.
	ErrRedirects = errors.New("too many redirects")
	// ErrHost is returned for a host that [WithHosts] does not allow.
	ErrHost = errors.New("it leads to a host that this run may not reach")
	// ErrOtherHost is returned if a request that may change something is redirected to a host that
	// it was not approved for.
	ErrOtherHost = errors.New("it redirects to another host, which is followed only to read; send it there if that is meant")
)

// DialTimeout bounds resolving and connecting, and then the TLS handshake.
const DialTimeout = 10 * time.Second

const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	maxURL         = 8 << 10
)

// Config configures a client.
type Config struct {
	// AllowPrivate are private ranges, and ranges of [OwnAddresses], that may be reached. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver resolves host names. Nil means the system's resolver.
	Resolver *net.Resolver
}

// NewClient makes a client. It keeps no connections and cookies, ignores proxies in the
// environment, and has no timeout but a request's context. Pass its errors through [Reason].
func NewClient(cfg Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            NewDialer(cfg).DialContext,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    DialTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("%w (more than %d)", ErrRedirects, maxRedirects)
			}
			if err := checkURL(req.URL); err != nil {
				return err
			}
			if err := checkHost(req.Context(), req.URL.Hostname()); err != nil {
				return err
			}
			if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
				if upgrade := first.Scheme == "http" && req.URL.Scheme == "https" && req.URL.Hostname() == first.Hostname(); !upgrade && !isReadOnly(req.Method) {
					return ErrOtherHost
				}
				keepPublicHeaders(req.Header)
			}
			return nil
		},
	}
}

type hostsKey struct{}

// WithHosts returns a context in which a client of [NewClient] follows redirects, and a dialer of [NewPageDialer]
// connects, only to hosts that allowed accepts. It gets them in lower case.
func WithHosts(ctx context.Context, allowed func(host string) bool) context.Context {
	return context.WithValue(ctx, hostsKey{}, allowed)
}

func checkHost(ctx context.Context, host string) error {
	if allowed, ok := ctx.Value(hostsKey{}).(func(string) bool); ok && !allowed(strings.ToLower(host)) {
		return fmt.Errorf("%w: %s", ErrHost, host)
	}
	return nil
}

// NewDialer makes a dialer with the same restrictions as [NewClient].
func NewDialer(cfg Config) *net.Dialer {
	var v4, v6 []netip.Prefix
	for _, p := range cfg.AllowPrivate {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	guardian := ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(hostServices), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	return &net.Dialer{
		Timeout:  DialTimeout,
		Resolver: cfg.Resolver,
		Control: func(network, address string, conn syscall.RawConn) error {
			if err := guardian.Safe(network, address, conn); err != nil {
				return err
			}
			at := netip.MustParseAddrPort(address).Addr().Unmap() // which Safe has parsed
			if holds(cfg.AllowPrivate, at) {
				return nil
			}
			own, err := OwnAddresses()
			if err == nil && holds(own, at) {
				err = fmt.Errorf("%w: %s is an address of this machine", ssrf.ErrProhibitedIP, at)
			}
			return err
		},
	}
}

func holds(ranges []netip.Prefix, at netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(at) })
}

// OwnAddresses returns the public addresses of this machine, and of IPv6 the networks in which they lie. No firewall
// is between the bot and what listens there.
func OwnAddresses() ([]netip.Prefix, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("the addresses of this machine cannot be read: %w", err)
	}
	var own []netip.Prefix
	for _, one := range all {
		p, err := netip.ParsePrefix(one.String())
		if at := p.Addr(); err == nil && at.IsGlobalUnicast() && !at.IsPrivate() {
			own = append(own, netip.PrefixFrom(at, min(at.BitLen(), networkBits)))
		}
	}
	return own, nil
}

// networkBits is the length of the prefix of an IPv6 network (RFC 4291, section 2.5.4), also where an address was
// assigned alone. It is longer than an IPv4 address.
const networkBits = 64

// hostServices is where virtual machines of Azure reach the services of their host, although the address is
// a public one.
var hostServices = netip.MustParsePrefix("168.63.129.16/32")

// PageDialer dials for a page. It is made by [NewPageDialer].
type PageDialer struct {
	*net.Dialer
	host   string
	pinned []netip.Addr // of a private page: the addresses that its host had when it was opened
}

// DialContext connects to an address as [net.Dialer.DialContext] does.
func (d *PageDialer) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	host, port, _ := net.SplitHostPort(address)
	if err := checkHost(ctx, host); err != nil {
		return nil, err
	}
	if !strings.EqualFold(host, d.host) || len(d.pinned) == 0 {
		return d.Dialer.DialContext(ctx, network, address)
	}
	for _, at := range d.pinned {
		if conn, err = d.Dialer.DialContext(ctx, network, net.JoinHostPort(at.String(), port)); err == nil {
			break
		}
	}
	return conn, err
}

// NewPageDialer makes a dialer for what a page loads and sends. A page of a public host reaches no private
// address, whatever AllowPrivate holds: those are for pages that were opened there, from a host that has private
// addresses alone and keeps them.
func NewPageDialer(ctx context.Context, cfg Config, host string) *PageDialer {
	resolver := cfg.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addresses, err := resolver.LookupNetIP(ctx, "ip", host)
	public := func(a netip.Addr) bool { return !holds(cfg.AllowPrivate, a.Unmap()) }
	if err != nil || slices.ContainsFunc(addresses, public) {
		cfg.AllowPrivate, addresses = nil, nil
	}
	return &PageDialer{NewDialer(cfg), host, addresses}
}

// ParseURL parses an address from the model or a user. The error is [ErrURL] with the reason,
// without the URL.
func ParseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrURL, maxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, Reason(err))
	}
	return u, checkURL(u)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%w: it must begin with http:// or https://", ErrURL)
	case u.Hostname() == "":
		return fmt.Errorf("%w: it names no host", ErrURL)
	case u.User != nil:
		return fmt.Errorf("%w: a user name or password must not stand in it", ErrURL)
	}
	return nil
}

func isReadOnly(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// keepPublicHeaders drops all headers that may hold a secret meant for another host: net/http drops
// only the best-known ones.
func keepPublicHeaders(h http.Header) {
	for name := range h {
		switch name {
		case "Accept", "Accept-Language", "User-Agent", "Content-Type":
		default:
			h.Del(name)
		}
	}
}

// Reason returns the cause of a failed request without the URL, which may contain secrets. It is
// [ErrAddress] for an address that is not public.
func Reason(err error) error {
	if isProhibited(err) {
		return ErrAddress
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fmt.Errorf("there is no host %q", dns.Name)
		}
		return fmt.Errorf("the host %q could not be looked up", dns.Name)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	}
	return err
}

func isProhibited(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) ||
		errors.Is(err, ssrf.ErrInvalidHostPort)
}
