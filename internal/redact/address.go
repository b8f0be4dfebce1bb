package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// addressPattern matches addresses in a text, up to a character that none can have.
var addressPattern = regexp.MustCompile("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'<>`]+")

// versionParam matches the name of a query value that is not secret, although
// MaskAddresses masks it: masking a date everywhere would tear holes into texts.
var versionParam = regexp.MustCompile(`(?i)^(api[-_]?)?version$`)

// MaskAddresses masks what may be secret in the addresses in a text: user and password, query
// values, and the fragment.
func MaskAddresses(text string) string {
	return addressPattern.ReplaceAllStringFunc(text, func(whole string) string {
		var out strings.Builder
		splitAddress(whole, func(part string, secret bool, _ string) {
			if secret && part != "" {
				part = Mask
			}
			out.WriteString(part)
		})
		return out.String()
	})
}

// SecretsInAddresses returns what [MaskAddresses] masks, for [New] and [Redactor.Add],
// except API versions, and the user name before a password.
func SecretsInAddresses(text string) []string {
	var all []string
	for _, whole := range addressPattern.FindAllString(text, -1) {
		splitAddress(whole, func(part string, secret bool, name string) {
			if !secret || versionParam.MatchString(name) {
				return
			}
			if _, password, ok := strings.Cut(part, ":"); ok && name == userinfo {
				part = password
			}
			all = append(all, part)
			if plain, err := url.QueryUnescape(part); err == nil && plain != part {
				all = append(all, plain)
			}
		})
	}
	return all
}

// userinfo is the name under which splitAddress yields user and password.
const userinfo = "@"

// splitAddress yields the parts of an address in order, and whether each may be secret.
func splitAddress(whole string, yield func(part string, secret bool, name string)) {
	rest, fragment, hasFragment := strings.Cut(whole, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	scheme := strings.Index(rest, "://") + len("://")
	yield(rest[:scheme], false, "")
	rest = rest[scheme:]
	host, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(host, "@")
	if _, port, ok := strings.Cut(host, ":"); at < 0 && ok && strings.Trim(port, "0123456789") != "" && !strings.HasPrefix(host, "[") {
		at = strings.LastIndex(rest, "@") // the password contains a slash
	}
	if at >= 0 {
		yield(rest[:at], true, userinfo)
		rest = rest[at:]
	}
	yield(rest, false, "")
	if hasQuery {
		for i, pair := range strings.Split(query, "&") {
			yield(map[bool]string{true: "?", false: "&"}[i == 0], false, "")
			name, value, named := strings.Cut(pair, "=")
			if !named {
				yield(pair, true, "")
				continue
			}
			yield(name+"=", false, "")
			yield(value, true, name)
		}
	}
	if hasFragment {
		yield("#", false, "")
		yield(fragment, true, "")
	}
}

// MaskAddressesIn returns an error with masked addresses, like [Redactor.Error].
func MaskAddressesIn(err error) error {
	if err == nil || MaskAddresses(err.Error()) == err.Error() {
		return err
	}
	return &maskedError{MaskAddresses(err.Error()), err}
}
