package markup

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	// ownLink matches links of the service's own schemes, with their host and the rest.
	ownLink = regexp.MustCompile(`(?s)^((?i:tg|ton|tonsite)):(?://)?([^/?#]*)(.*)`)
	// userLink matches links to users, in lower case, with their parameters.
	userLink = regexp.MustCompile(`^tg:(?://)?user/?\?([^#]*)`)
	// webLink matches the scheme and the authority of other links.
	webLink = regexp.MustCompile(`^(?:([^:/?#@\[\]]*)://)?([^/?#]*)`)
	// urlPart matches what may be in a host or, with colons, in user information.
	urlPart = regexp.MustCompile(`^(?:[A-Za-z0-9.\-_!$,~*'();&+=\x{80}-\x{10FFFF}]|%[0-9A-Fa-f]{2})*$`)
)

// NormalizeLink returns a link in the form in which the service stores it, or "" if it does not accept it (tdlib/td,
// LinkManager.cpp, check_link_impl).
func NormalizeLink(link string) string {
	if own := ownLink.FindStringSubmatch(link); own != nil {
		scheme, host, query := strings.ToLower(own[1]), own[2], own[3]
		letters := host
		if scheme == "tonsite" {
			letters = strings.ReplaceAll(host, ".", "")
		}
		if host == "" || strings.Trim(letters, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return ""
		}
		if query = linkQuery(query); strings.HasPrefix(query, "/?") {
			query = query[1:]
		}
		return scheme + "://" + lowerASCII(host) + query
	}
	web := webLink.FindStringSubmatch(link)
	scheme, hasScheme := lowerASCII(web[1]), strings.Contains(web[0], "://")
	user, host, port, ok := splitAuthority(web[2])
	switch {
	case hasScheme && scheme != "http" && scheme != "https", !ok:
		return ""
	case !strings.Contains(host, ".") && !strings.HasPrefix(host, "["):
		return ""
	case !hasScheme:
		scheme = "http"
	}
	if user != "" {
		user += "@"
	}
	if port != "" {
		port = ":" + port
	}
	return scheme + "://" + user + lowerASCII(host) + port + linkQuery(link[len(web[0]):])
}

// linkQuery returns what follows the host of a link, which begins with a slash, without white space.
func linkQuery(query string) string {
	query = strings.TrimRight(query, " \t\n\r\v\f\x00")
	if !strings.HasPrefix(query, "/") {
		query = "/" + query
	}
	var escaped strings.Builder
	for _, b := range []byte(query) {
		if b <= ' ' {
			fmt.Fprintf(&escaped, "%%%02X", b)
			continue
		}
		escaped.WriteByte(b)
	}
	return escaped.String()
}

// lowerASCII lowers the letters that the service lowers.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// userOfLink returns the id in a link to a user, or 0 (tdlib/td, LinkManager.cpp, get_link_user_id).
func userOfLink(link string) int64 {
	m := userLink.FindStringSubmatch(lowerASCII(link))
	if m == nil {
		return 0
	}
	for parameter := range strings.SplitSeq(m[1], "&") {
		if key, value, _ := strings.Cut(parameter, "="); key == "id" {
			id, _ := strconv.ParseInt(value, 10, 64)
			return max(id, 0)
		}
	}
	return 0
}

// splitAuthority returns the user, the host and the port of a link. It returns false if one of them is not accepted
// (tdlib/td, HttpUrl.cpp, parse_url).
func splitAuthority(authority string) (user, host, port string, ok bool) {
	if colon := strings.LastIndexAny(authority, ":]@"); colon > 0 && authority[colon] == ':' {
		n, err := strconv.ParseUint(authority[colon+1:], 10, 16)
		if err != nil || n == 0 {
			return "", "", "", false
		}
		authority, port = authority[:colon], strconv.FormatUint(n, 10)
	}
	at := strings.LastIndexByte(authority, '@')
	user, host = authority[:max(at, 0)], authority[at+1:]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		ip, err := netip.ParseAddr(host[1 : len(host)-1])
		return user, host, port, err == nil && ip.Is6() && ip.Zone() == ""
	}
	return user, host, port, host != "" && host != "." && urlPart.MatchString(host) && urlPart.MatchString(strings.ReplaceAll(user, ":", ""))
}
