package provenance

import (
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"oneclaw/internal/markdown"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Address is an http address. All of it that a reader of the request or a script of the page could see
// counts, because each choice in it can carry something away.
type Address struct {
	scheme   string
	host     string // lower case, with a port that is not the scheme's own
	spelled  string // the host name as it was written, if that is not how host has it
	user     string // with its @
	path     string // as it is sent, at least "/"
	query    string // with its question mark
	fragment string // with its #
	// rewritten is set if the text had marks in other places than usual: those that browsers read and those
	// that are sent may differ.
	rewritten bool
	// unreadable is the whole text of an address that cannot be taken apart, and that others might.
	unreadable string
}

// specialScheme matches the beginning of an http address as browsers read it: any slashes will do.
var specialScheme = regexp.MustCompile(`^(?i:(https?)):[/\\]*`)

var dropBreaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// asBrowsersRead returns a text with the marks of an address in their usual places: browsers, and servers
// that read addresses as they do, leave tabs and line breaks out and take a backslash for a slash.
func asBrowsersRead(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
	text = dropBreaks.Replace(text)
	scheme, rest := "", text
	if begin := specialScheme.FindStringSubmatch(text); begin != nil {
		scheme, rest = strings.ToLower(begin[1])+"://", text[len(begin[0]):]
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		end = i
	}
	return scheme + strings.ReplaceAll(rest[:end], `\`, "/") + rest[end:]
}

// Parse returns the address in a text that holds nothing else; false if it is no http address.
func Parse(text string) (Address, bool) {
	written := strings.TrimSpace(text)
	text = asBrowsersRead(text)
	u, err := url.Parse(text)
	if err != nil {
		begin := specialScheme.FindString(text)
		host := hostWithin(strings.TrimPrefix(text, begin))
		return Address{unreadable: text}, begin != "" && host != "" && !strings.Contains(host, " ")
	}
	scheme := strings.ToLower(u.Scheme)
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if scheme != "http" && scheme != "https" || host == "" { // an empty host stands nowhere, and would stand everywhere
		return Address{}, false
	}
	spelled := u.Hostname()
	if spelled == host {
		spelled = ""
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && (scheme != "http" || port != "80") && (scheme != "https" || port != "443") {
		host += ":" + port
	}
	a := Address{scheme: scheme, host: host, spelled: spelled, path: u.EscapedPath(), rewritten: len(written) != len(text) || strings.Contains(written, `\`)}
	if u.User != nil {
		a.user = u.User.String() + "@"
	}
	if a.path == "" {
		a.path = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		a.query = "?" + u.RawQuery
	}
	if u.Fragment != "" {
		a.fragment = "#" + u.EscapedFragment()
	}
	return a, true
}

// hostWithin returns the host of an address without its scheme, maybe with a port. The user in front of it may hold blanks.
func hostWithin(text string) string {
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		text = text[:end]
	}
	return text[strings.LastIndex(text, "@")+1:]
}

// schemePattern and hostPattern find where an address may begin within a text without blanks: at a scheme, or at what may
// be a host in front of a path, such as example.com/page.
var (
	schemePattern = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://|https?:[/\\]`)
	hostPattern   = regexp.MustCompile(`(?i)(?:[^\s/@]+@)?([\pL\pN\pM_-]*[.。．｡][\pL\pN\pM_.。．｡-]*|\[[0-9a-f:.%]+\])(?::[0-9]*)?[/?]`)
)

const (
	// brackets end an address in most texts, and stand behind its end together with the marks of a sentence.
	brackets = "\"'<>()[]{}|\\^`"
	marks    = ".,;:!?*_~"
	// maxEnd bounds how many of them are left out, in bytes: more could spell something.
	maxEnd = 3
)

// maxEscaped bounds how often a text is escaped that is judged as an address.
const maxEscaped = 3

// complete returns the address that a text is as a whole, with whatever follows its host. It may have no scheme,
// which some servers complete, and be escaped as a whole.
func complete(text string) (Address, bool) {
	a, ok := completeScheme(text)
	for i := 0; !ok && i < maxEscaped && strings.Contains(text, "%"); i++ {
		text = unescape(text)
		a, ok = completeScheme(text)
		a.rewritten = true
	}
	return a, ok
}

func completeScheme(text string) (Address, bool) {
	if a, ok := Parse(text); ok {
		return a, true
	}
	text = strings.TrimSpace(text)
	if rest := strings.TrimLeft(text, `/\`); len(text)-len(rest) > 1 {
		text = rest
	}
	read := asBrowsersRead(text)
	end := strings.IndexAny(read, "/?")
	if end < 0 || !isHost(read[strings.LastIndex(read[:end], "@")+1:end]) {
		return Address{}, false // names of files look like hosts
	}
	a, ok := Parse("https://" + text)
	if !ok {
		a = Address{unreadable: text}
	}
	return a, true
}

// unescape undoes the escapes of a text once, and leaves what is none.
func unescape(text string) string {
	return escapePattern.ReplaceAllStringFunc(text, func(escape string) string {
		c, _ := strconv.ParseUint(escape[1:], 16, 8)
		return string([]byte{byte(c)})
	})
}

// isHost reports whether what stands in front of a path is a host of the internet, as clients read it, maybe with a port.
func isHost(text string) bool {
	if inner, _, ok := strings.Cut(text, "]"); ok {
		inner, ok = strings.CutPrefix(inner, "[")
		return ok && net.ParseIP(strings.Split(inner, "%")[0]) != nil
	}
	host, _, _ := strings.Cut(text, ":")
	if strings.ContainsFunc(host, unicode.IsSpace) {
		return false
	}
	return isNumber(host) || isPublicName(host)
}

// isNumber reports whether a host is an IPv4 address, which clients also read as fewer numbers, the last of which
// fills the rest, in decimals, octal or hexadecimal. Smaller numbers, versions such as 1.2.3, and days such as 20261129
// are none.
func isNumber(host string) bool {
	parts := strings.Split(asciiHost(host), ".")
	if len(parts) > 4 {
		return false
	}
	last := uint64(0)
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || last > 255 {
			return false
		}
		last = n
	}
	day, err := time.Parse("20060102", host)
	isDay := err == nil && day.Year()/100 >= 19 && day.Year()/100 <= 20
	return len(parts) == 4 && last < 256 || len(parts) < 4 && last>>(8*(4-len(parts))) > 0 && !isDay
}

// numberLast matches the hosts that browsers read as an IPv4 address.
var numberLast = regexp.MustCompile(`(?i)(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$`)

// eachString calls do with the strings, numbers and other values of the arguments of a call, as tools get them, and with
// the keys of their objects, also with those of values that are written into strings.
func eachString(arguments string, do func(text string)) {
	value, err := decodeArguments(arguments)
	if err != nil {
		return // no tool takes it
	}
	var walk func(v any)
	walk = func(v any) {
		if text, ok := leaf(v); ok {
			do(text)
		}
		switch v := v.(type) {
		case json.Number:
			do(v.String())
			if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
				do(strconv.FormatFloat(f, 'f', -1, 64)) // as a tool may spell it
			}
		case string:
			if strings.HasPrefix(strings.TrimSpace(v), "{") || strings.HasPrefix(strings.TrimSpace(v), "[") {
				eachString(v, do)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for name, one := range v {
				do(name)
				walk(one)
			}
		}
	}
	walk(value)
}

// decodeArguments returns the arguments of a call as tools get them.
func decodeArguments(arguments string) (any, error) {
	repaired, err := toolgroups.RepairArguments(json.RawMessage(arguments))
	if err != nil {
		repaired = json.RawMessage(arguments) // a list in a string
	}
	return toolgroups.DecodeJSON(repaired)
}

// leaf returns the text of a value that holds no others and is no number.
func leaf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, nil:
		return fmt.Sprint(v), true
	case []any:
		return "[]", len(v) == 0
	case map[string]any:
		return "{}", len(v) == 0
	}
	return "", false
}

// AddressesOf returns the addresses of a call of a tool that fetches: those among its arguments, and of an external
// tool also those within them.
func AddressesOf(tool toolgroups.Tool, arguments string) []Address {
	arguments = string(toolgroups.GivenTo(tool, json.RawMessage(arguments)))
	all := Addresses(arguments)
	if !tool.External {
		return all
	}
	for _, a := range AddressesWithin(arguments) {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// Addresses returns the http addresses among the strings of a JSON value.
func Addresses(arguments string) (all []Address) {
	eachString(arguments, func(text string) {
		if a, ok := complete(text); ok && !slices.Contains(all, a) {
			all = append(all, a)
		}
	})
	slices.SortFunc(all, func(a, b Address) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// AddressesWithin returns the addresses within the strings of a JSON value, with any scheme and without one. Those
// that are not http addresses are unreadable.
func AddressesWithin(arguments string) (all []Address) {
	eachString(arguments, func(text string) {
		keep := func(a Address, ok bool) {
			if ok && !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
		for _, text := range slices.Compact([]string{text, reference.ReplaceAllStringFunc(text, html.UnescapeString)}) {
			for _, word := range strings.FieldsFunc(strings.ReplaceAll(text, `\/`, "/"), func(r rune) bool { return r < utf8.RuneSelf && unicode.IsSpace(r) }) {
				keep(addressIn(word))
			}
			for _, quoted := range withBlanks.FindAllStringSubmatch(text, -1) {
				keep(Parse(quoted[1]))
			}
		}
	})
	slices.SortFunc(all, func(a, b Address) int { return strings.Compare(a.String(), b.String()) })
	return all
}

var (
	// reference matches a character of HTML in another form. A name without its semicolon is more often a field of a query.
	reference = regexp.MustCompile(`&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z0-9]+;)`)
	// withBlanks matches an address in quotation marks whose user holds blanks, as browsers take it from HTML.
	withBlanks = regexp.MustCompile(`(?i)["'<](https?:[/\\]*[^"'<>/\\?#@]*\s[^"'<>/\\?#]*@[^"'<>]*)["'>]`)
)

// AddressesKept returns the addresses that the strings of a JSON value would vouch for if somebody read them: those of
// [AddressesWithin], and hosts alone whose name, port or fragment can hold more than the name of a site.
func AddressesKept(arguments string) []Address {
	all := AddressesWithin(arguments)
	eachString(arguments, func(text string) {
		for _, text := range []string{text, strings.Map(dropInvisible, text)} {
			for _, pattern := range bareHosts {
				for _, at := range pattern.FindAllStringIndex(text, -1) {
					a, ok := bareHost(text[:at[0]], text[at[0]:at[1]], text[at[1]:])
					if ok && !slices.Contains(all, a) {
						all = append(all, a)
					}
				}
			}
		}
	})
	return all
}

// bareHosts match what may be a host alone, in ASCII letters and in any: one may stand between letters of the other.
var bareHosts = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)+|\[[0-9a-f:.%]+\])(?::[0-9]+)?(?:#\S*)?`),
	regexp.MustCompile(`[\pL\pN\pM_-]+(?:[.。．｡][\pL\pN\pM_-]+)+(?::[0-9]+)?(?:#\S*)?`),
}

// bareHost returns the address of a host that stands alone in a text; false if it is a part of an address or of a mail
// address, or the name of a site.
func bareHost(before, found, after string) (Address, bool) {
	if before != "" && strings.ContainsRune("@%+=&?#~", rune(before[len(before)-1])) || strings.HasPrefix(strings.TrimPrefix(after, `\`), "/") || strings.HasPrefix(after, "?") {
		return Address{}, false
	}
	a, ok := Parse("https://" + strings.TrimRight(found, marks))
	switch host := a.Hostname(); {
	case !ok:
		return a, false
	case strings.Contains(host, ":"):
		return a, true
	case isNumber(host):
		return a, a.host != host || a.fragment != ""
	default:
		return a, isPublicName(host) && !a.isSite()
	}
}

// addressIn returns the address in a text without blanks.
func addressIn(word string) (Address, bool) {
	found, visible := fromAddress(word), fromAddress(strings.Map(dropInvisible, word))
	hidden := visible != strings.Map(dropInvisible, found)
	for i := 0; visible == "" && i < maxEscaped && strings.Contains(word, "%"); i++ {
		word = unescape(word)
		visible, hidden = fromAddress(word), true
	}
	if hidden {
		found = visible
	}
	end := len(found)
	if i := strings.IndexAny(found, brackets); i > 0 && strings.Trim(found[i:], brackets+marks) == "" {
		end = i
	}
	if end = len(strings.TrimRight(found[:end], marks)); len(found)-end > maxEnd {
		end = len(found)
	}
	a, ok := complete(found[:end])
	if !ok && strings.Contains(found, "://") {
		a, ok = Address{unreadable: found[:end]}, true
	}
	// What others may take for a second address, with its invisible characters or without them, is certainly of no host.
	second := strings.IndexFunc(found, func(r rune) bool {
		return strings.ContainsRune(brackets+",;", r) || unicode.IsSpace(r) || r >= utf8.RuneSelf
	})
	a.rewritten = a.rewritten || hidden || second > 0 && fromAddress(found[second:])+fromAddress(strings.Map(dropInvisible, found[second:])) != ""
	return a, ok
}

// fromAddress returns a text from the first address in it on.
func fromAddress(text string) string {
	scheme := len(text)
	if at := schemePattern.FindStringIndex(text); at != nil {
		scheme = at[0]
	}
	for from := 0; ; {
		at := hostPattern.FindStringSubmatchIndex(text[from:])
		if at == nil || from+at[0] >= scheme {
			return text[scheme:]
		}
		if isHost(text[from+at[2] : from+at[3]]) {
			return text[from+at[0]:]
		}
		from += at[3] // behind what is no host
	}
}

// dropInvisible drops the characters that a tool may drop when it stores a text.
func dropInvisible(r rune) rune {
	if unicode.In(r, unicode.Cf) || unicode.IsControl(r) && !unicode.IsSpace(r) {
		return -1
	}
	return r
}

// String returns the address.
func (a Address) String() string {
	if a.unreadable != "" {
		return a.unreadable
	}
	host := a.host
	if a.spelled != "" {
		host = a.spelled + strings.TrimPrefix(a.host, a.Hostname())
	}
	return a.scheme + "://" + a.user + host + a.path + a.query + a.fragment
}

// Hostname returns the host without a port.
func (a Address) Hostname() string {
	if host, _, err := net.SplitHostPort(a.host); err == nil {
		return host
	}
	return strings.Trim(a.host, "[]")
}

// HostIn reports whether the host is one of a list, as [HostMatches] does, and certainly the one that is asked.
func (a Address) HostIn(list []string) bool {
	return a.unreadable == "" && !a.rewritten && a.user == "" && HostMatches(a.Hostname(), list)
}

// Folder returns the address of the folder of the page, as [toolgroups.FolderOf]; false if others may read the address
// as one of another host.
func (a Address) Folder() (string, bool) {
	if a.rewritten || a.user != "" || a.unreadable != "" || strings.ContainsFunc(a.path, endsAnyAddress) {
		return "", false
	}
	return toolgroups.FolderOf(a.String())
}

// site returns the domain under which others can register nothing, or the host if there is none.
func (a Address) site() string {
	site, err := publicsuffix.EffectiveTLDPlusOne(a.Hostname())
	if err != nil || net.ParseIP(a.Hostname()) != nil {
		return a.host
	}
	return site
}

// standsIn reports whether a text of others holds the address as a whole, and nothing of what may be of somebody else. The
// scheme may differ or be missing, as in the words of people, and so may a slash at the end. A host with neither scheme
// nor path does not count: a service may have kept any word with a dot for the model.
func (a Address) standsIn(text string) bool {
	return a.standsWhole(text, func(before, rest, after string) bool {
		return (strings.HasPrefix(rest, "/") || withoutScheme(before) != before) && isOneAddress(before, rest, after)
	})
}

// standsInPeoples is as [Address.standsIn] for a text that people wrote, where a host alone counts.
func (a Address) standsInPeoples(text string) bool { return a.standsWhole(text, isOneAddress) }

func (a Address) standsWhole(text string, isOne func(before, rest, after string) bool) bool {
	if !strings.ContainsAny(text, " \t\r\n") {
		if whole, ok := Parse(text); ok && whole == a {
			return a.standsInWords(text, func(string) bool { return false })
		}
	}
	return a.standsAs(text, a.rests(), isOne)
}

// standsInOwn is as [Address.standsInPeoples] for a text that is one person's as a whole.
func (a Address) standsInOwn(text string) bool { return a.standsInWords(text, runsOn) }

// standsInWords reports whether one person's text holds the address in a spelling that is not left out.
func (a Address) standsInWords(text string, leftOut func(rest string) bool) bool {
	for after := text; a.unreadable != "" && !a.rewritten && !leftOut(a.unreadable); {
		_, rest, ok := strings.Cut(after, a.unreadable)
		if !ok {
			return false
		}
		after = rest
		if before := text[:len(text)-len(after)-len(a.unreadable)]; beginsAddress(before) && !isWithin(before, true) && endsAddress(after) {
			return true
		}
	}
	return a.standsAs(text, slices.DeleteFunc(a.spellings(), leftOut), func(_, _, _ string) bool { return true })
}

// runsOn reports whether a spelling of an address may go on into the sentence in which a person wrote the address.
func runsOn(rest string) bool {
	return withoutBlanks.MatchString(rest) || strings.ContainsFunc(rest, func(r rune) bool {
		return unicode.IsSpace(r) || r >= utf8.RuneSelf && !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
}

// standsAs reports whether a text holds the host with one of the rests behind it, of which isOne says with what
// stands before and after that they are one.
func (a Address) standsAs(text string, rests []string, isOne func(before, rest, after string) bool) bool {
	if a.user != "" || a.rewritten || a.unreadable != "" || len(text) < len(a.host) {
		return false
	}
	low := lower(text)
	for from := 0; ; {
		i := strings.Index(low[from:], a.host)
		if i < 0 {
			return false
		}
		i += from
		from = i + len(a.host)
		if !beginsAddress(low[:i]) || a.spelled != "" && !strings.HasPrefix(text[i:], a.spelled) {
			continue
		}
		front := withoutScheme(low[:i])
		hasScheme := len(front) < i
		if !hasScheme && (!strings.ContainsAny(a.Hostname(), ".:") || numberLast.MatchString(asciiHost(a.Hostname())) && !isNumber(a.Hostname())) {
			continue // a name such as and/or or a number, which nobody takes for an address, also where one is kept
		}
		stands := func(rest string) bool {
			return slices.ContainsFunc(rests, func(r string) bool {
				after, ok := strings.CutPrefix(rest, r)
				return ok && endsAddress(after) && isOne(low[:i], r, after)
			})
		}
		rest := text[from:]
		if (stands(rest) || stands(strings.ReplaceAll(rest[:min(len(rest), 2*len(a.path+a.query+a.fragment)+16)], `\/`, "/"))) && !isWithin(front, hasScheme) {
			return true
		}
	}
}

// withoutBlanks matches letters of languages that put no blanks between words.
var withoutBlanks = regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]`)

// joins matches the marks that may join an address to other words wherever they stand, and endsQuote the quotes that
// end it.
var (
	joins     = regexp.MustCompile(`[:']|[\pL\pM\pN][(\[]|` + withoutBlanks.String())
	endsQuote = regexp.MustCompile(`(^|[^\pL\pM\pN])'|'($|[^\pL\pM\pN])`)
)

// isOneAddress reports whether what follows the host of an address in a text of others is all of it, and not
// joined to it in a form, a list or a link, as far as what stands before and after it can tell: it may hold more of
// the marks that join if brackets or quotes are around all of it.
func isOneAddress(before, rest, after string) bool {
	rest = plainAnd.Replace(rest)
	path, query := rest, ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		path, query = rest[:i], rest[i:]
	}
	joined := joins.MatchString(rest) || strings.ContainsAny(path, "=&") || strings.Contains(query, "&") && isField(before)
	return isBalanced(rest) && !endsQuote.MatchString(rest) && (!joined || isEnclosed(before, after))
}

// isBalanced reports whether each bracket of a text has its other one.
func isBalanced(text string) bool {
	var open []rune
	for _, r := range text {
		switch r {
		case '(':
			open = append(open, ')')
		case '[':
			open = append(open, ']')
		case ')', ']':
			if len(open) == 0 || open[len(open)-1] != r {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}

// isField reports whether an address behind a text is the value of a field of a form, as in a=1&b=2. The value may begin
// with blanks, which its author chose.
func isField(before string) bool {
	lastWord := func(text string) string { return text[strings.LastIndexAny(text, " \t\r\n\"'<>()")+1:] }
	name := lastWord(strings.TrimRight(withoutScheme(before), " \t\r\n"))
	return strings.Contains(lastWord(before), "=") || len(name) > 1 && strings.HasSuffix(name, "=")
}

// withoutScheme returns a text without the scheme at its end.
func withoutScheme(text string) string {
	for _, scheme := range []string{"https://", "http://", `https:\/\/`, `http:\/\/`} {
		text = strings.TrimSuffix(text, scheme)
	}
	return text
}

// isEnclosed reports whether an address has the same brackets or quotes before its scheme and behind it.
func isEnclosed(before, after string) bool {
	before = withoutScheme(before)
	after = strings.TrimPrefix(after, `\`) // in a JSON text within one
	return slices.ContainsFunc([]string{"()", "<>", `""`, "''"}, func(pair string) bool {
		return strings.HasSuffix(before, pair[:1]) && strings.HasPrefix(after, pair[1:])
	})
}

// isAlike reports whether two addresses are one for most servers.
func (a Address) isAlike(o Address) bool {
	return a.host == o.host && strings.TrimSuffix(a.query, "?") == strings.TrimSuffix(o.query, "?") && strings.TrimRight(a.path, "/") == strings.TrimRight(o.path, "/")
}

// rests returns what may follow the host where the address stands in a text of somebody.
func (a Address) rests() []string {
	return slices.DeleteFunc(a.spellings(), func(rest string) bool {
		return strings.ContainsFunc(plainAnd.Replace(rest), endsAnyAddress)
	})
}

// plainAnd undoes the escapes of & that a spelling may have.
var plainAnd = strings.NewReplacer("&amp;", "&", `\u0026`, "&")

// spellings returns the ways in which what follows the host can be written.
func (a Address) spellings() []string {
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
	// Which letters are escaped is a choice too: only the usual ones may be.
	if plain, err := url.PathUnescape(a.path); err == nil && plain != a.path && (&url.URL{Path: plain}).EscapedPath() == a.path {
		rests = append(rests, plain+a.query)
	}
	for i := range rests {
		rests[i] += a.fragment
	}
	return rests
}

// endsAnyAddress reports whether what follows a character in a text need not be the author's of an address in front
// of it: in a line or a table it may be of somebody else.
func endsAnyAddress(r rune) bool {
	return strings.ContainsRune(" \"<>{}|\\^`,;", r) || unicode.IsControl(r) || r >= utf8.RuneSelf && !unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// occursIn reports whether a text that the model wrote spells the address, with more of it around, in other
// letters, or with characters that a tool may drop or join when it repeats the text. An IPv6 address holds enough to
// count by itself, in any spelling.
func (a Address) occursIn(text string) bool {
	if ip := net.ParseIP(a.Hostname()); ip != nil && ip.To4() == nil && slices.ContainsFunc(ipv6.FindAllString(text, -1), func(s string) bool { return ip.Equal(net.ParseIP(s)) }) {
		return true
	}
	text = unspaced(text)
	return slices.ContainsFunc(a.spellings(), func(rest string) bool { return holdsPart(text, a.host+rest, url.PathUnescape) })
}

// ipv6 matches what may be an IPv6 address.
var ipv6 = regexp.MustCompile(`[0-9a-fA-F]*:[0-9a-fA-F:.]*[0-9a-fA-F:]`)

// isSaidIn reports whether the model has spelled the address in an answer, in its Markdown or as a chat shows that, other
// than as the name of its site, which carries nothing.
func (a Address) isSaidIn(text string) bool {
	return !a.isSite() && (a.occursIn(text) || a.occursIn(markdown.Parse(text).Text()))
}

// isSite reports whether an address is nothing but the name of its site, unlike a number.
func (a Address) isSite() bool {
	return strings.TrimPrefix(a.host, "www.") == a.site() && a.user+strings.Trim(a.path, "/")+a.query+a.fragment == "" && net.ParseIP(a.Hostname()) == nil
}

// isMadeOf reports whether texts that the model wrote have all that the address can carry: the end of its host and, each
// as a whole, the parts behind it. One of them, or a label in front of its site, is more than a plain word. A tool may
// change what it repeats, and join what it was told apart. A part alone says nothing, because what is read by its name or
// number has links with that, on a host that no argument names, nor do words of a query that a link joins to others.
func (a Address) isMadeOf(told []string) (carries bool) {
	host, text := a.Hostname(), unspacedLines(told)
	for _, label := range a.labels() {
		carries = carries || !isPlainWord(label) && holdsPart(text, label, url.QueryUnescape)
	}
	for _, part := range a.parts() {
		if !holdsPart(text, part, url.QueryUnescape) {
			return false
		}
		carries = carries || !isPlainWord(part)
	}
	return carries && strings.Contains(plainDots.Replace(text), host[max(strings.LastIndexByte(host, '.'), 0):])
}

// isAtNamed reports whether one of the values that the model wrote is nothing but a name of the site of the address, and
// not all that it wrote. Then the server may have made the rest of it from that, in ways that no comparison finds.
func (a Address) isAtNamed(values []string) bool {
	return slices.ContainsFunc(values, a.isNamedBy) && (len(values) > 1 || !a.isNamedAlone(values[0]))
}

// isNamedAlone reports whether a text chooses nothing but the site of the address, or is an address, which was judged.
func (a Address) isNamedAlone(text string) bool {
	_, isAddress := complete(text)
	return isAddress || strings.TrimPrefix(text, "www.") == a.domain()
}

// isNamedBy reports whether a text is nothing but hosts and addresses, also as a search is told them, one of them of the
// site of the address.
func (a Address) isNamedBy(text string) (named bool) {
	site := asciiHost(a.domain())
	for _, text := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|", r) }) {
		text = strings.TrimLeft(strings.Map(dropInvisible, text), "*.@")
		if plain := wording.Letters(text); plain == "" || slices.Contains([]string{"and", "or", "not"}, plain) {
			continue
		}
		all := []string{text}
		if _, isAddress := complete(text); !isAddress {
			for _, pattern := range bareHosts { // site:example.com, "example.com", git@example.com:repo
				all = append(all, pattern.FindAllString(text, -1)...)
			}
		}
		isHost := false
		for _, one := range all {
			o, ok := complete(one)
			if !ok {
				o, _ = Parse("https://" + one)
			}
			o.host = asciiHost(o.Hostname())
			isHost = isHost || strings.ContainsAny(o.host, ".:")
			named = named || o.domain() == site
		}
		if !isHost {
			return false
		}
	}
	return named
}

// domain returns the site of an address without a port.
func (a Address) domain() string {
	if site := a.site(); site != a.host {
		return site
	}
	return a.Hostname()
}

// labels returns what the host has in front of its site and behind it.
func (a Address) labels() []string {
	_, port, _ := net.SplitHostPort(a.host)
	return append(strings.Split(strings.TrimSuffix(a.Hostname(), a.domain()), "."), port)
}

// parts returns what stands behind the host, taken apart at its marks.
func (a Address) parts() []string {
	return strings.FieldsFunc(a.path+a.query+a.fragment, func(r rune) bool { return strings.ContainsRune("/?&=#", r) })
}

// holdsPart reports whether a text that is [unspaced] holds a part of an address, also without its escapes.
func holdsPart(text, part string, unescape func(string) (string, error)) bool {
	plain, err := unescape(part)
	return strings.Contains(text, unspaced(part)) || err == nil && strings.Contains(text, unspaced(plain))
}

// unspacedLines returns texts as [unspaced] does, a line each.
func unspacedLines(texts []string) string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = unspaced(text)
	}
	return strings.Join(lines, "\n")
}

// plainDots replaces the dots of other scripts that clients read as one in a host.
var plainDots = strings.NewReplacer("。", ".", "．", ".", "｡", ".")

// unspaced returns a text in lower-case letters, without blanks, invisible characters and those that a chat deletes.
func unspaced(text string) string {
	return lower(strings.ReplaceAll(markdown.WithoutDeleted(strings.Map(dropInvisible, strings.Join(strings.Fields(text), ""))), `\/`, "/"))
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

// ellipsis stands where the program has cut a text. Where that is may be the model's choice.
const ellipsis = "…"

// beginsAddress reports whether an address can begin behind a text.
func beginsAddress(before string) bool {
	if before == "" {
		return true
	}
	if strings.HasSuffix(before, ellipsis) {
		return false
	}
	c := before[len(before)-1]
	return !isAlphanumeric(c) && !strings.ContainsRune(`-._@%+=&?#~\`, rune(c)) // behind a backslash may be an escape
}

// maxWord bounds the word in front of an address, in bytes.
const maxWord = 4096

// escapedBreak matches the escapes of a JSON text that may stand right in front of an address.
var escapedBreak = regexp.MustCompile(`^\\(?:[nrt]|u003[ce])`)

// isWithin reports whether an address behind a text, which is without its scheme, may be a part of another address or
// of a path: then what follows it may be of whoever put it there. Only what no name of a file or a page can hold ends
// the word in front of it; a scheme of its own may also stand in a table, a link or a language without blanks.
func isWithin(before string, hasScheme bool) bool {
	if !hasScheme {
		before = strings.TrimSuffix(before, "//") // in place of the scheme
	}
	for end := len(before); end > 0; {
		r, size := utf8.DecodeLastRuneInString(before[:end])
		end -= size
		switch {
		case r == '/' || r == '?' || len(before)-end > maxWord:
			return true
		case unicode.IsSpace(r), strings.ContainsRune("\"<>`", r), r == '\\' && escapedBreak.MatchString(before[end:]),
			hasScheme && (r == '|' || r >= utf8.RuneSelf || r == '(' && strings.HasSuffix(before[:end], "]")):
			return false
		}
	}
	return false
}

// endsAddress reports whether an address ends in front of a text.
func endsAddress(after string) bool {
	if strings.HasPrefix(after, ellipsis) {
		return false
	}
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

// choices returns what the model has chosen in the address of a site: the runs of letters and digits, except
// those of the site and of the folders that it shares with one of the pages, and the number of marks between
// them, and of escapes, that need not be there.
func (a Address) choices(pages []Address) (tokens []string, marks int) {
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
	rest := a.path[shared:] + a.query + a.fragment
	for _, escape := range escapePattern.FindAllString(rest, -1) {
		if escape[1] < '8' || escape != strings.ToUpper(escape) {
			marks++
		}
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	marks += strings.Count(host, "-") + strings.Count(host, "_")
	for run := range strings.FieldsFuncSeq(rest, func(r rune) bool { return !isNoToken(r) }) {
		marks += len(run)
		if strings.ContainsRune("/?&=#", rune(run[0])) {
			marks-- // a usual one
		}
	}
	return strings.FieldsFunc(a.user+host+rest, isNoToken), marks
}

var escapePattern = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

func isNoToken(r rune) bool { return r < utf8.RuneSelf && !isAlphanumeric(byte(r)) }

// hasToken reports whether one of the texts has a run of letters and digits, or one in capitals.
func hasToken(texts []string, token string, fold bool) bool {
	isInside := func(text string, at int) bool { return at >= 0 && at < len(text) && !isNoToken(rune(text[at])) }
	return slices.ContainsFunc(texts, func(text string) bool {
		if fold {
			text = lower(text)
		}
		for from := 0; ; {
			i := strings.Index(text[from:], token)
			if i < 0 {
				return false
			}
			from += i + len(token)
			if !isInside(text, from-len(token)-1) && !isInside(text, from) {
				return true
			}
		}
	})
}

// isPlainWord reports whether a token is a word such as "issues", or a small number such as a page's.
func isPlainWord(token string) bool {
	const maxWord, maxNumber = 16, 2
	letters := strings.Trim(token, "abcdefghijklmnopqrstuvwxyz") == ""
	digits := strings.Trim(token, "0123456789") == ""
	return letters && len(token) <= maxWord || digits && len(token) <= maxNumber
}
