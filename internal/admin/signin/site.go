package signin

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// site describes the address of the pages.
type site struct {
	// closedReason is why there are no pages; empty if there are.
	closedReason string
	// baseURL is the beginning of links.
	baseURL string
	// publicHost is the host of the public address, as browsers send it, and origin that address
	// without a path; both may be empty.
	publicHost, origin string
	secure             bool
}

// howToOpen says which setting makes the pages available from elsewhere.
const howToOpen = "For that, my operator has to set `public_url` (`ONECLAW_PUBLIC_URL`) to an address that begins with https://, and make the proxy there pass `/admin` on to me."

func newSite(publicURL, listen string) site {
	if publicURL == "" {
		host, port, err := net.SplitHostPort(listen)
		if err != nil || !isLoopback(host) {
			return site{closedReason: "My pages need an address that others cannot eavesdrop on. " + howToOpen}
		}
		return site{baseURL: "http://" + net.JoinHostPort(host, port)}
	}
	u, err := url.Parse(publicURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return site{closedReason: "My pages need an address, and I do not understand the one in my settings. " + howToOpen}
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return site{closedReason: "My pages are off: they need an encrypted address. " + howToOpen}
	case strings.Trim(u.Path, "/") != "":
		return site{closedReason: "My pages need their own host: an address without a path. " + howToOpen}
	}
	host, secure := strings.ToLower(u.Host), u.Scheme == "https"
	if secure {
		host = strings.TrimSuffix(host, ":443") // as browsers do
	}
	origin := u.Scheme + "://" + host
	return site{baseURL: origin, publicHost: host, origin: origin, secure: secure}
}

// isLoopback reports whether host, without a port, is localhost or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// isOwnHost reports whether a request was made to one of the names of these pages. A loopback name
// is not accepted behind a proxy if there is no public address: such a request comes from
// elsewhere.
func (s site) isOwnHost(r *http.Request) bool {
	name := strings.ToLower(r.Host)
	if s.publicHost != "" && (name == s.publicHost || name == s.publicHost+":443" && s.secure) {
		return true
	}
	host := name
	if h, _, err := net.SplitHostPort(name); err == nil {
		host = h
	}
	if !isLoopback(strings.Trim(host, "[]")) {
		return false
	}
	return s.publicHost != "" || r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// clientAddress returns the source of a request: with a public address as the nearest proxy reports
// it, else the peer.
func (s site) clientAddress(r *http.Request) string {
	if hops := r.Header.Values("X-Forwarded-For"); s.publicHost != "" && len(hops) > 0 {
		last := hops[len(hops)-1]
		if ip := net.ParseIP(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); ip != nil {
			return ip.String()
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
