package provenance

import (
	"encoding/json"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"oneclaw/agent"
)

// Address is an http address without its fragment, which no server gets.
type Address struct {
	scheme string
	host   string // lower case, with a port that is not the scheme's own
	user   string // with its @
	path   string // as it is sent, at least "/"
	query  string // with its question mark
}

// Parse returns the address in a text that holds nothing else; false if it is no http address.
func Parse(text string) (Address, bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return Address{}, false
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "http" && scheme != "https" || u.Hostname() == "" {
		return Address{}, false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && !(scheme == "http" && port == "80" || scheme == "https" && port == "443") {
		host += ":" + port
	}
	a := Address{scheme: scheme, host: host, path: u.EscapedPath()}
	if u.User != nil {
		a.user = u.User.String() + "@"
	}
	if a.path == "" {
		a.path = "/"
	}
	if u.RawQuery != "" {
		a.query = "?" + u.RawQuery
	}
	return a, true
}

// withoutScheme matches an address without its scheme, such as example.com/page.
var withoutScheme = regexp.MustCompile(`^(?:[a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}(?::[0-9]+)?[/?]\S*$`)

// Addresses returns the http addresses among the strings of a JSON value.
func Addresses(arguments string) (all []Address) {
	var value any
	if json.Unmarshal([]byte(arguments), &value) != nil {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			a, ok := Parse(v)
			if !ok && withoutScheme.MatchString(strings.TrimSpace(v)) { // which some servers complete
				a, ok = Parse("https://" + strings.TrimSpace(v))
				_, known := publicsuffix.PublicSuffix(a.Hostname())
				ok = ok && known
			}
			if ok && !slices.Contains(all, a) {
				all = append(all, a)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(value)
	slices.SortFunc(all, func(a, b Address) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// addressPattern finds addresses within a text.
var addressPattern = regexp.MustCompile(`(?i)https?://[^\s"'<>()\[\]{}|\\^` + "`" + `]+`)

// AddressesWithin returns the http addresses within the strings of a JSON value.
func AddressesWithin(arguments string) (all []Address) {
	for _, text := range addressPattern.FindAllString(strings.ReplaceAll(arguments, `\/`, "/"), -1) {
		if a, ok := Parse(strings.TrimRight(text, ".,;:!?*_~")); ok {
			all = append(all, a)
		}
	}
	return all
}

// String returns the address.
func (a Address) String() string { return a.scheme + "://" + a.user + a.host + a.path + a.query }

// Hostname returns the host without a port.
func (a Address) Hostname() string {
	if host, _, err := net.SplitHostPort(a.host); err == nil {
		return host
	}
	return strings.Trim(a.host, "[]")
}

// site returns the domain under which others can register nothing, or the host if there is none.
func (a Address) site() string {
	site, err := publicsuffix.EffectiveTLDPlusOne(a.Hostname())
	if err != nil || net.ParseIP(a.Hostname()) != nil {
		return a.host
	}
	return site
}

// standsIn reports whether a text holds the address as a whole. The scheme may differ or be missing, as in
// the words of people, and so may a slash at the end.
func (a Address) standsIn(text string) bool {
	if a.user != "" || len(text) < len(a.host) {
		return false
	}
	low := lower(text)
	rests := []string{a.path + a.query}
	if a.query == "" && strings.HasSuffix(a.path, "/") {
		rests = append(rests, strings.TrimSuffix(a.path, "/"))
	}
	if a.query == "" && !strings.HasSuffix(a.path, "/") {
		rests = append(rests, a.path+"/")
	}
	if a.path == "/" && a.query != "" {
		rests = append(rests, a.query)
	}
	if strings.Contains(a.query, "&") {
		for _, and := range []string{"&amp;", `\u0026`} {
			rests = append(rests, a.path+strings.ReplaceAll(a.query, "&", and))
		}
	}
	if plain, err := url.PathUnescape(a.path); err == nil && plain != a.path {
		rests = append(rests, plain+a.query)
	}
	for from := 0; ; {
		i := strings.Index(low[from:], a.host)
		if i < 0 {
			return false
		}
		i += from
		from = i + len(a.host)
		if !beginsAddress(low[:i]) {
			continue
		}
		rest := text[from:]
		if slices.ContainsFunc(rests, func(r string) bool { return strings.HasPrefix(rest, r) && endsAddress(rest[len(r):]) }) {
			return true
		}
		rest = strings.ReplaceAll(rest[:min(len(rest), 2*len(a.path+a.query)+16)], `\/`, "/")
		if slices.ContainsFunc(rests, func(r string) bool { return strings.HasPrefix(rest, r) && endsAddress(rest[len(r):]) }) {
			return true
		}
	}
}

// standsInCalls reports whether the model has written the address into arguments of calls that do not
// fetch it: tools can repeat what they were told.
func (a Address) standsInCalls(calls []agent.Call) bool {
	return slices.ContainsFunc(calls, func(c agent.Call) bool {
		var value any
		if json.Unmarshal([]byte(c.EffectiveArguments()), &value) != nil {
			return a.standsIn(c.EffectiveArguments())
		}
		return a.standsInValue(value)
	})
}

func (a Address) standsInValue(value any) bool {
	switch v := value.(type) {
	case string:
		return a.standsIn(v)
	case []any:
		return slices.ContainsFunc(v, a.standsInValue)
	case map[string]any:
		for _, one := range v {
			if a.standsInValue(one) {
				return true
			}
		}
	}
	return false
}

// lower returns a text with lower-case ASCII letters, of the same length.
func lower(text string) string {
	bytes := []byte(text)
	for i, c := range bytes {
		if c >= 'A' && c <= 'Z' {
			bytes[i] = c + 'a' - 'A'
		}
	}
	return string(bytes)
}

// beginsAddress reports whether an address can begin behind a text.
func beginsAddress(before string) bool {
	if before == "" {
		return true
	}
	c := before[len(before)-1]
	return !isAlphanumeric(c) && !strings.ContainsRune("-._@%+=&?#~", rune(c))
}

// endsAddress reports whether an address ends in front of a text.
func endsAddress(after string) bool {
	if after == "" || after[0] >= utf8.RuneSelf || after[0] == '#' {
		return true
	}
	trimmed := strings.TrimLeft(after, ".,;:!?*_~")
	if trimmed == "" {
		return true
	}
	return trimmed[0] >= utf8.RuneSelf || strings.IndexByte(" \t\r\n\"'<>()[]{}|\\^`", trimmed[0]) >= 0
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// tokens returns the runs of letters and digits of the address, except those of the site and of the
// folders that it shares with one of the pages.
func (a Address) tokens(pages []Address) []string {
	host, shared := strings.TrimSuffix(a.host, a.site()), 0
	for _, p := range pages {
		if p.host != a.host {
			continue
		}
		host = ""
		for i := 0; i < min(len(a.path), len(p.path)) && a.path[i] == p.path[i]; i++ {
			if a.path[i] == '/' {
				shared = max(shared, i)
			}
		}
	}
	rest := a.path[shared:] + a.query
	if plain, err := url.QueryUnescape(strings.ReplaceAll(rest, "+", " ")); err == nil {
		rest = plain
	}
	return strings.FieldsFunc(a.user+host+rest, isNoToken)
}

func isNoToken(r rune) bool { return r < utf8.RuneSelf && !isAlphanumeric(byte(r)) }

// tokenSet returns the runs of letters and digits of a text, as they are and in lower case.
func tokenSet(text string) map[string]bool {
	set := make(map[string]bool)
	for token := range strings.FieldsFuncSeq(text, isNoToken) {
		set[token] = true
		set[strings.ToLower(token)] = true
	}
	return set
}

// isPlainWord reports whether a token is a word such as "issues", or a small number such as a page's.
func isPlainWord(token string) bool {
	const maxWord, maxNumber = 16, 2
	letters := strings.Trim(token, "abcdefghijklmnopqrstuvwxyz") == ""
	digits := strings.Trim(token, "0123456789") == ""
	return letters && len(token) <= maxWord || digits && len(token) <= maxNumber
}
