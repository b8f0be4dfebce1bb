package markup

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"oneclaw/internal/emulator/telegram/botapi"
)

// detector finds the entities of a kind in plain text (tdlib/td, MessageEntity.cpp, find_entities).
type detector struct {
	kind    string
	pattern *regexp.Regexp
	// before and after report whether an entity may not follow or precede a character.
	before, after func(r rune) bool
	// accept reports whether a match is one.
	accept func(match string) bool
}

// tagLetter is what a hashtag consists of.
const tagLetter = `[\pL\p{Nd}_\x{200c}\x{b7}\x{d80}-\x{dff}]`

var (
	oneTagLetter = regexp.MustCompile(`^` + tagLetter + `$`)
	anyLetter    = regexp.MustCompile(`[\pL]`)
	detectors    = []detector{
		{"mention", regexp.MustCompile(`@[A-Za-z0-9_]+`), isWord, isWord, isMention},
		{"bot_command", regexp.MustCompile(`/[A-Za-z0-9_]+(?:@[A-Za-z0-9_]*)?`), bordersPath, bordersPath, isCommand},
		{"hashtag", regexp.MustCompile(`#(` + tagLetter + `+)(?:@[A-Za-z0-9_]{3,32})?`), isTagLetter, func(r rune) bool { return r == '#' }, isHashtag},
		{"cashtag", regexp.MustCompile(`\$(?:1INCH|[A-Z]{1,8})(?:@[A-Za-z0-9_]{3,32})?`), bordersCash, bordersCash, func(string) bool { return true }},
	}
)

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

func bordersPath(r rune) bool { return isWord(r) || strings.ContainsRune("/<>", r) }

func isTagLetter(r rune) bool { return oneTagLetter.MatchString(string(r)) }

func bordersCash(r rune) bool { return r == '$' || isTagLetter(r) }

// isMention reports whether a name can be one. A few have three letters.
func isMention(match string) bool {
	name := match[1:]
	return len(name) >= 4 && len(name) <= 32 || slices.Contains([]string{"gif", "nft", "pic", "ufc", "vid"}, strings.ToLower(name))
}

func isCommand(match string) bool {
	name, bot, named := strings.Cut(match[1:], "@")
	return len(name) <= 64 && (!named || len(bot) >= 3 && len(bot) <= 32)
}

func isHashtag(match string) bool {
	tag, _, _ := strings.Cut(match, "@")
	return utf8.RuneCountInString(tag) <= 257 && anyLetter.MatchString(tag)
}

// detectEntities returns the entities that apps and the service find in a plain text, which do not overlap.
func detectEntities(text string) []botapi.Entity {
	if !strings.ContainsAny(text, "@/#$.:") {
		return nil
	}
	var found []match
	for _, d := range detectors {
		for _, at := range d.pattern.FindAllStringIndex(text, -1) {
			borders := at[0] > 0 && d.before(lastRune(text[:at[0]])) || at[1] < len(text) && d.after(firstRune(text[at[1]:]))
			if !borders && d.accept(text[at[0]:at[1]]) {
				found = append(found, match{d.kind, at[0], at[1]})
			}
		}
	}
	found = append(found, findLinks(text)...)
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var entities []botapi.Entity
	units, at := 0, 0
	for _, m := range found {
		if m.from < at {
			continue // the earlier one stays
		}
		units += UTF16Length(text[at:m.from])
		length := UTF16Length(text[m.from:m.to])
		entities = append(entities, botapi.Entity{Type: m.kind, Offset: units, Length: length})
		units, at = units+length, m.to
	}
	return entities
}

// match is a part of a text, in bytes.
type match struct {
	kind     string
	from, to int
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// What links consist of: nothing that separates, but dashes and what joins characters.
const (
	separators   = `\pZ\x00-\x20\x{2000}-\x{200b}\x{200e}\x{200f}\x{2016}-\x{206f}`
	pathSymbol   = `[^<>"\x{ab}\x{bb}` + separators + `]`
	userSymbol   = `[^./\[\]{}()'` + "`" + `<>"@\x{ab}\x{bb}` + separators + `]`
	domainSymbol = `(?:[A-Za-z0-9._~-]|[^\x00-\x{bf}` + separators + `])`
)

var (
	// ownLinkPattern matches an address of the service itself: host, path.
	ownLinkPattern = regexp.MustCompile(`((?i:tg|ton)://[A-Za-z0-9_-]{1,253})([/?#]` + pathSymbol + `*)?`)
	// linkPattern matches an address of the web or of a mailbox without its scheme: user and host, port, path. A name
	// with a dot before the @ is read as the host is.
	linkPattern = regexp.MustCompile(`(` + userSymbol + `*` + domainSymbol + `*\.` + domainSymbol + `*@(?:` + domainSymbol + `|@)*|` +
		`(?:` + userSymbol + `+@)?` + domainSymbol + `*\.` + domainSymbol + `*)(:[0-9]+)?([/?#]` + pathSymbol + `*)?`)
	// scheme matches the scheme before an address.
	scheme       = regexp.MustCompile(`(?:[A-Za-z0-9+-]|[^\x00-\x7f` + separators + `])*://$`)
	knownSchemes = regexp.MustCompile(`(?i)(https?|ftp|tonsite)://$`)
	firstScheme  = regexp.MustCompile(`(?i)^(https?|ftp|tonsite)://`)
	otherSchemes = regexp.MustCompile(`(?i)^(?:shttp|[ts]ftp)://$`)
	emailPattern = regexp.MustCompile(`(?i)^(?:[a-z0-9_-]{0,26}[.+]){0,10}[a-z0-9_-]{1,35}@(?:(?:[a-z0-9][a-z0-9_-]{0,28})?[a-z0-9]\.){1,6}[a-z]{2,8}$`)
)

const pathEnds = ".:;,('?!`"

// findLinks returns the web addresses and mailboxes in a text.
func findLinks(text string) (found []match) {
	for _, at := range ownLinkPattern.FindAllStringSubmatchIndex(text, -1) {
		to := at[3]
		if at[4] >= 0 {
			to += pathLength(text[at[4]:at[5]])
		}
		found = append(found, match{"url", at[0], to})
	}
	last := 0 // where the one before ends
	for _, at := range linkPattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := at[2], at[3]
		if port := at[4:6]; port[0] >= 0 {
			digits := strings.TrimLeft(text[port[0]+1:port[1]], "0")
			if n, err := strconv.ParseUint(digits, 10, 16); err == nil && n > 0 {
				to = port[1]
			}
		}
		if path := at[6:8]; path[0] == to {
			to += pathLength(text[path[0]:path[1]])
		}
		to = from + len(strings.TrimRight(text[from:to], "."))
		if scheme, ok := schemeBefore(text[last:from]); ok {
			found = append(found, linkMatch(text, from-scheme, to)...)
			last = to
		} else {
			last = from + strings.LastIndexByte(text[from:to], '.') + 1
		}
	}
	return found
}

// pathLength returns the length of a path without what ends a sentence behind it. A question mark or a number sign
// alone is no path.
func pathLength(path string) int {
	n := 1 + len(strings.TrimRight(path[1:], pathEnds))
	if n == 1 && path[0] != '/' {
		return 0
	}
	return n
}

// schemeBefore returns the length of the scheme with which a text ends. It returns false if what follows the text is a
// part of something else.
func schemeBefore(text string) (int, bool) {
	if prefix := scheme.FindString(text); len(text) >= 6 && prefix != "" {
		known := knownSchemes.FindString(prefix)
		return len(known), known != "" && !otherSchemes.MatchString(prefix)
	}
	last := lastRune(text)
	return 0, text == "" || !isWord(last) && !strings.ContainsRune("/#@", last)
}

func linkMatch(text string, from, to int) []match {
	address := text[from:to]
	mailbox := strings.TrimPrefix(address, "mailto:")
	if emailPattern.MatchString(mailbox) {
		return []match{{"email", to - len(mailbox), to}}
	}
	if address = webAddress(address); address == "" {
		return nil
	}
	return []match{{"url", from, from + len(address)}}
}

// webAddress returns the part of a text that is an address of the web (fix_url).
func webAddress(text string) string {
	prefix := firstScheme.FindString(text)
	rest := text[len(prefix):]
	end := strings.IndexAny(rest+"/", "/?#")
	host, path := rest[:end], rest[end:]
	if _, after, found := strings.Cut(host, "@"); found {
		host = after
	}
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 {
		host = host[:colon]
	}
	if strings.EqualFold(host, "teiegram.org") || !isHost(host, prefix != "") {
		return ""
	}
	return prefix + rest[:end] + strings.TrimRight(balanced(path), pathEnds)
}

// balanced returns what precedes a bracket that nothing opens.
func balanced(path string) string {
	open := map[rune]int{}
	for i, r := range path {
		switch r {
		case '(', '[', '{':
			open[r]++
		case ')', ']', '}':
			of := map[rune]rune{')': '(', ']': '[', '}': '{'}[r]
			if open[of]--; open[of] < 0 {
				return path[:i]
			}
		}
	}
	return path
}

var (
	ipv4     = regexp.MustCompile(`^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.|$)){4}$`)
	punycode = regexp.MustCompile(`^xn--[A-Za-z0-9]{2,}$`)
)

// isHost reports whether a name is that of a host. Without a scheme before it, its last part has to be a known one.
func isHost(host string, hasScheme bool) bool {
	if ipv4.MatchString(host) && !strings.HasSuffix(host, ".") {
		return true
	}
	parts := strings.Split(host, ".")
	if len(parts) < 2 || strings.Trim(host, "0123456789.") == "" {
		return false
	}
	for _, part := range parts {
		if part == "" || len(part) >= 64 || strings.HasSuffix(part, "-") {
			return false
		}
	}
	last := parts[len(parts)-1]
	if strings.Contains(parts[len(parts)-2], "_") || utf8.RuneCountInString(last) < 2 {
		return false
	}
	if strings.HasPrefix(last, "xn--") {
		return punycode.MatchString(last)
	}
	return !strings.ContainsAny(last, "_-") && (hasScheme || isKnownEnding(last))
}

// isKnownEnding reports whether a word is a top-level domain. One that begins as a sentence does is none.
func isKnownEnding(word string) bool {
	lower := strings.ToLower(word)
	if _, first := utf8.DecodeRuneInString(word); lower != word && strings.HasSuffix(lower, word[first:]) {
		return false
	}
	ascii, err := idna.ToASCII(lower)
	_, known := publicsuffix.PublicSuffix("a.b." + ascii)
	return err == nil && known
}
