package redact

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// secretShape describes a kind of secret. The pattern is anchored,
// its group is masked, and it is only tried at one of the literals.
type secretShape struct {
	name     string
	literals []string
	pattern  *regexp.Regexp
	// prefixByte, if not nil, reports whether a byte before the literal belongs to the match.
	prefixByte func(byte) bool
	// notAfter, if not nil, reports whether a match after this
	// byte is not a secret, but the middle of something else.
	notAfter func(byte) bool
	// maxLen bounds the text that the pattern examines, in bytes; 0 means maxReach.
	maxLen int
	// tailLen, if not nil, returns how much of the text after the match belongs to the secret.
	tailLen func(after string) int
	// mixed requires both a digit and a letter in the secret, which names seldom contain.
	mixed bool
}

// shapes are the secrets of well-known services, each with its documentation.
var shapes = []secretShape{
	{ // core.telegram.org/bots/api#authorizing-your-bot; today's all have an A behind the colon
		name: "telegram", literals: []string{":A", "%3AA", "%3aA"}, prefixByte: isDigit, notAfter: isDigit,
		pattern: regexp.MustCompile(`^([0-9]{5,16}(?::|%3[Aa])A[A-Za-z0-9_-]{33,35})(?:[^A-Za-z0-9_-]|$)`),
	},
	{ // docs.slack.dev/authentication/tokens
		name: "slack", literals: []string{"xox", "xapp-"}, notAfter: isTokenByte, mixed: true,
		pattern: regexp.MustCompile(`^((?:xox[a-z](?:[.]xox[a-z])?|xapp)-[A-Za-z0-9-]{10,})`),
	},
	{ // docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
		name: "slack hook", literals: []string{"hooks.slack.com/"},
		pattern: regexp.MustCompile(`^hooks[.]slack[.]com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{16,})`),
	},
	{ // platform.openai.com/docs/api-reference/authentication; Anthropic's and OpenRouter's too
		name: "model key", literals: []string{"sk-"}, notAfter: isTokenByte, mixed: true,
		pattern: regexp.MustCompile(`^(sk-(?:[A-Za-z0-9]+[_-]+)*[A-Za-z0-9]{16,}[A-Za-z0-9_-]*)`),
	},
	{ // developers.google.com/identity/protocols/oauth2: access and refresh tokens, codes, client secrets
		name: "google", literals: []string{"ya29.", "1//0", "1%2F%2F0", "4/0A", "GOCSPX-"}, notAfter: isTokenByte,
		pattern: regexp.MustCompile(`^((?:ya29[.][A-Za-z0-9_.-]|1(?://|%2F%2F)0[A-Za-z0-9_-]|4/0A[A-Za-z0-9_-]|GOCSPX-[A-Za-z0-9_-])[A-Za-z0-9_.-]{18,})`),
	},
	{ // cloud.google.com/docs/authentication/api-keys
		name: "google key", literals: []string{"AIza"}, notAfter: isTokenByte,
		pattern: regexp.MustCompile(`^(AIza[A-Za-z0-9_-]{35})(?:[^A-Za-z0-9_-]|$)`),
	},
	{ // docs.github.com/authentication, "About authentication to GitHub"
		name: "github", literals: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, notAfter: isTokenByte, mixed: true,
		pattern: regexp.MustCompile(`^((?:gh[pousr]|github_pat)_[A-Za-z0-9_.-]{36,})`),
	},
	{ // docs.gitlab.com/security/tokens; docs.stripe.com/keys; huggingface.co/docs/hub/security-tokens; docs.npmjs.com/about-access-tokens
		name: "services", literals: []string{"glpat-", "sk_live_", "rk_live_", "whsec_", "hf_", "npm_"}, notAfter: isTokenByte,
		pattern: regexp.MustCompile(`^((?:glpat-|[sr]k_live_|whsec_)[A-Za-z0-9_.-]{20,}|hf_[A-Za-z]{34}|npm_[A-Za-z0-9]{36})`),
	},
	{ // ours: the links and sessions of internal/admin/signin
		name: "oneclaw", literals: []string{"oclink_", "ocseat_"}, notAfter: isTokenByte, maxLen: 434,
		pattern: regexp.MustCompile(`^(oc(?:link|seat)_[A-Za-z0-9_-]+[.][A-Z2-7]{26})`),
	},
	{ // docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
		name: "aws id", literals: []string{"AKIA", "ASIA"}, notAfter: isTokenByte,
		pattern: regexp.MustCompile(`^((?:AKIA|ASIA)[A-Z2-7]{16})(?:[^A-Za-z0-9/+=]|$)`),
	},
	{ // the same page: forty characters without a mark, recognised only by the name before them
		name: "aws secret", literals: []string{"ecret", "ECRET"},
		pattern: regexp.MustCompile(`^(?i:ecret_?(?:access)?_?key)[\\"' \t]*[:=]>?[\\"' \t]*([A-Za-z0-9/+=]{40})(?:[^A-Za-z0-9/+=]|$)`),
	},
	{ // RFC 7519: header and claims are JSON objects
		name: "jwt", literals: []string{"eyJ"}, notAfter: isTokenByte,
		pattern: regexp.MustCompile(`^(eyJ[A-Za-z0-9_-]{8,}[.]eyJ[A-Za-z0-9_-]{8,}[.][A-Za-z0-9_-]{16,})`),
	},
	{ // RFC 7468
		name: "private key", literals: []string{pemBegin}, maxLen: 100, tailLen: keyLength,
		pattern: regexp.MustCompile(`^(-----BEGIN(?:[A-Z0-9 +]|%20)*PRIVATE(?: |\+|%20)KEY(?:(?: |\+|%20)BLOCK)?-----)`),
	},
	{ // RFC 6750
		name: "bearer", literals: []string{"earer ", "EARER "}, mixed: true,
		pattern: regexp.MustCompile(`^(?i:earer) +["']?([A-Za-z0-9._~+/-]{16,}=*)`),
	},
	{ // RFC 7617, and headers of its kind
		name: "authorization", literals: []string{"uthorization", "UTHORIZATION"},
		pattern: regexp.MustCompile(`^(?i:uthorization)[\\"']*\s*[:=]\s*[\\"'\[]*(?i:basic|token|bot|apikey|key)\s+([A-Za-z0-9._~+/:-]{8,}=*)`),
	},
	{ // RFC 3986, section 3.2.1
		name: "password in an address", literals: []string{"://"}, maxLen: 512,
		pattern: regexp.MustCompile(`^://[^\s/?#@:"'<>\\]*:([^\s/?#@"'<>\\${}]+)@[A-Za-z0-9\[]`),
	},
	{ // RFC 6749, section 5.1, and the names that settings have
		name: "named",
		literals: []string{
			"ccess_token", "CCESS_TOKEN", "ccessToken", "efresh_token", "EFRESH_TOKEN", "efreshToken", "lient_secret", "LIENT_SECRET", "lientSecret",
			"pi_key", "PI_KEY", "piKey", "pikey", "pi-key", "ession_token", "ESSION_TOKEN", "uth_token", "UTH_TOKEN", "ot_token", "OT_TOKEN",
			"pp_token", "PP_TOKEN", "igning_secret", "IGNING_SECRET",
		}, mixed: true,
		pattern: regexp.MustCompile(`^(?i:ccess_?token|efresh_?token|lient_?secret|pi[_-]?key|ession_token|uth_token|ot_token|pp_token|igning_secret)` +
			`[\\"']*\s{0,2}[:=]\s{0,2}[\\"']*([A-Za-z0-9._~+/-]{20,}=*)(?:[^A-Za-z0-9._~+/=(-]|$)`),
	},
	{ // the lines of environment files
		name: "password", literals: []string{"PASSWORD=", "PASSWD=", "PASSPHRASE="}, maxLen: 512,
		pattern: regexp.MustCompile(`^PASS(?:WORD|WD|PHRASE)=["']?([^\s"'<>$\\{}]{6,})`),
	},
}

const (
	pemBegin = "-----BEGIN"
	pemEnd   = "-----END"
	pemDash  = "-----"
	// maxReach bounds a secret in bytes: the largest are private keys and signed claims.
	maxReach = 16 << 10
)

var restOfPEM = regexp.MustCompile(`^(?:[A-Za-z0-9+/=\s]|\\[nr]|%[0-9A-Fa-f]{2})*`)

// keyLength returns the length of what follows the first line of a private key: up to its last
// line or, if that is missing, as far as the base64 continues.
func keyLength(after string) int {
	after = after[:min(len(after), maxReach)]
	if end := endOfKey(after); end >= 0 && !strings.Contains(after[:end], pemBegin) {
		return end
	}
	return len(restOfPEM.FindString(after))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isTokenByte reports whether base64 or a name continues with this byte.
func isTokenByte(c byte) bool {
	return isDigit(c) || isLetter(c) || strings.IndexByte("+_-", c) >= 0
}

// endOfKey returns the end of a key's last line, or -1.
func endOfKey(text string) int {
	end := strings.Index(text, pemEnd)
	if end < 0 {
		return -1
	}
	end += len(pemEnd)
	line := strings.Index(text[end:], pemDash)
	if line < 0 {
		return -1
	}
	return end + line + len(pemDash)
}

// The last character of an escape, as in JSON and in addresses, belongs to no word: "\\nghp_…" is a line
// that begins with a token.
const (
	escape    = `(?:\\(?:[bfnrtv]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})|%[0-9A-Fa-f]{2})`
	maxEscape = len(`\u0000`)
)

var escapeEnd, escapeStart = regexp.MustCompile(escape + `$`), regexp.MustCompile(`^` + escape)

type span struct{ from, to int }

// maskShapes masks everything with the shape of a secret, and truncated words that may begin one.
func maskShapes(text string) string {
	spans := findTruncated(text)
	for i := range shapes {
		for _, literal := range shapes[i].literals {
			spans = shapes[i].appendMatches(text, literal, spans)
		}
	}
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var masked strings.Builder
	done := 0
	for _, s := range spans {
		if s.from >= done {
			masked.WriteString(text[done:s.from])
			masked.WriteString(Mask)
		}
		done = max(done, s.to)
	}
	masked.WriteString(text[done:])
	return masked.String()
}

// appendMatches appends the matches at a literal.
func (s *secretShape) appendMatches(text, literal string, spans []span) []span {
	for at := 0; ; {
		i := strings.Index(text[at:], literal)
		if i < 0 {
			return spans
		}
		from := at + i
		for s.prefixByte != nil && from > at && s.prefixByte(text[from-1]) {
			from--
		}
		at += i + len(literal)
		if from > 0 && s.notAfter != nil && s.notAfter(text[from-1]) && !escapeEnd.MatchString(text[max(0, from-maxEscape):from]) {
			continue
		}
		if found := s.pattern.FindStringSubmatchIndex(text[from:min(len(text), from+cmp.Or(s.maxLen, maxReach))]); found != nil {
			hit := span{from + found[2], from + found[3]}
			if s.tailLen != nil {
				hit.to += s.tailLen(text[hit.to:])
			}
			if !s.mixed || hasDigitAndLetter(text[hit.from:hit.to]) {
				spans = append(spans, hit)
				at = max(at, hit.to)
			}
		}
	}
}

// ellipses are what follows a shortened text. The lines follow what tools have cut themselves, after one
// line break or several.
var ellipses = []string{"…", "...", "\n[cut: ", "\n[Cut: ", "\n[Truncated ", "\n[stderr]\n", "\n[killed: "}

// findTruncated finds beginnings of secrets before an ellipsis: a program
// that shortens a text may leave too little of a secret for its pattern.
func findTruncated(text string) (spans []span) {
	for _, ellipsis := range ellipses {
		for at := 0; ; {
			i := strings.Index(text[at:], ellipsis)
			if i < 0 {
				break
			}
			end := at + i
			at = end + len(ellipsis)
			if ellipsis[0] == '\n' {
				end = len(strings.TrimRight(text[:end], "\n"))
			}
			from := end
			for from > 0 && end-from < maxReach && (isTokenByte(text[from-1]) || text[from-1] == ':' || text[from-1] == '/') {
				from--
			}
			if from > 0 {
				from += max(len(escapeStart.FindString(text[from-1:end]))-1, 0)
			}
			if beginsSecret(text[from:end]) {
				spans = append(spans, span{from, end})
			}
		}
	}
	return spans
}

// minTruncated is how many bytes of a secret must follow its literal for its beginning to be
// masked.
const minTruncated = 6

func beginsSecret(word string) bool {
	for i := range shapes {
		if shapes[i].notAfter == nil || shapes[i].prefixByte != nil {
			continue
		}
		for _, literal := range shapes[i].literals {
			if rest, ok := strings.CutPrefix(word, literal); ok && len(rest) >= minTruncated && hasDigitAndLetter(rest) {
				return true
			}
		}
	}
	return false
}

// hasDigitAndLetter reports whether a text has a digit and a letter.
func hasDigitAndLetter(text string) bool {
	digits, letters := false, false
	for i := range len(text) {
		digits = digits || isDigit(text[i])
		letters = letters || isLetter(text[i])
	}
	return digits && letters
}
