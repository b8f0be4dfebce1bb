package signin

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// site has the host names of the pages.
type site struct {
	// closed says why there are no pages; empty if there are.
	closed string
	// base begins links.
	base string
	// public is the host of the public address, as browsers send it, and origin that address
	// without a path; both may be empty.
	public, origin string
	secure         bool
}

// howToOpen says which setting makes the pages available from elsewhere.
const howToOpen = "For that, my operator has to set `public_url` (`ONECLAW_PUBLIC_URL`) to an address that begins with https://, and make the proxy there pass `/admin` on to me."

func siteOf(publicURL, listen string) site {
	if publicURL == "" {
		host, port, err := net.SplitHostPort(listen)
		if err != nil || !loopback(host) {
			return site{closed: "My pages need an address that others cannot eavesdrop on. " + howToOpen}
		}
		return site{base: "http://" + net.JoinHostPort(host, port)}
	}
	u, err := url.Parse(publicURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return site{closed: "My pages need an address, and I do not understand the one in my settings. " + howToOpen}
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return site{closed: "My pages are off: they need an encrypted address. " + howToOpen}
	case strings.Trim(u.Path, "/") != "":
		return site{closed: "My pages need their own host: an address without a path. " + howToOpen}
	}
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	return site{base: origin, public: strings.ToLower(u.Host), origin: origin, secure: u.Scheme == "https"}
}

// loopback reports whether host, without a port, is localhost or a loopback address.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// isOwnHost reports whether a request was made to one of the names of these pages. A loopback name
// is not accepted behind a proxy if there is no public address: such a request comes from
// elsewhere.
func (s site) isOwnHost(r *http.Request) bool {
	name := strings.ToLower(r.Host)
	if s.public != "" && (name == s.public || name == s.public+":443" && s.secure) {
		return true
	}
	host := name
	if h, _, err := net.SplitHostPort(name); err == nil {
		host = h
	}
	if !loopback(strings.Trim(host, "[]")) {
		return false
	}
	return s.public != "" || r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// from returns the source of a request: as the nearest proxy says, else the other end.
func (s site) from(r *http.Request) string {
	if hops := r.Header.Values("X-Forwarded-For"); s.public != "" && len(hops) > 0 {
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
