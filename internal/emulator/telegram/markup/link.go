package markup

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	// ownLink matches links of the service's own schemes, with their host.
	ownLink = regexp.MustCompile(`^(?i:tg|ton|(tonsite)):(?://)?([^/?#]*)`)
	// webLink matches the scheme and the authority of other links.
	webLink = regexp.MustCompile(`^(?:([^:/?#@\[\]]*)://)?([^/?#]*)`)
	// urlPart matches what may be in a host or, with colons, in user information.
	urlPart = regexp.MustCompile(`^(?:[A-Za-z0-9.\-_!$,~*'();&+=\x{80}-\x{10FFFF}]|%[0-9A-Fa-f]{2})*$`)
)

// NormalizeLink returns a link, with a scheme, or "" if the service does not accept it (tdlib/td,
// LinkManager.cpp, check_link_impl).
func NormalizeLink(link string) string {
	if own := ownLink.FindStringSubmatch(link); own != nil {
		host := own[2]
		if own[1] != "" {
			host = strings.ReplaceAll(host, ".", "")
		}
		if host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return ""
		}
		return link
	}
	web := webLink.FindStringSubmatch(link)
	scheme, hasScheme := web[1], strings.Contains(web[0], "://")
	switch host, ok := urlHost(web[2]); {
	case hasScheme && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"), !ok:
		return ""
	case !strings.Contains(host, ".") && !strings.HasPrefix(host, "["):
		return ""
	case !hasScheme:
		return "http://" + link + "/"
	}
	return link
}

// urlHost returns the host in an authority. It returns false if a part of the authority is not accepted
// (tdlib/td, HttpUrl.cpp, parse_url).
func urlHost(authority string) (string, bool) {
	if colon := strings.LastIndexAny(authority, ":]@"); colon > 0 && authority[colon] == ':' {
		port, err := strconv.ParseUint(authority[colon+1:], 10, 16)
		if err != nil || port == 0 {
			return "", false
		}
		authority = authority[:colon]
	}
	at := strings.LastIndexByte(authority, '@')
	user, host := authority[:max(at, 0)], authority[at+1:]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		ip, err := netip.ParseAddr(host[1 : len(host)-1])
		return host, err == nil && ip.Is6() && ip.Zone() == ""
	}
	return host, host != "" && host != "." && urlPart.MatchString(host) && urlPart.MatchString(strings.ReplaceAll(user, ":", ""))
}
