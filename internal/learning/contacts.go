package learning

import (
	"math/big"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/lazyregexp"
)

// Patterns of contact data. JSON and URLs are searched without
// decoding, so at signs and plus signs may be encoded.
var (
	emailForm = lazyregexp.MustCompile(`@?[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}._+'-]*[\p{L}\p{M}\p{N}_+-])?(?:[@＠]|%40|\\u0040)(?:[\p{L}\p{N}][\p{L}\p{M}\p{N}-]*\.)+\p{L}[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}]`)
	ibanForm  = lazyregexp.MustCompile(`(?i)[A-Z]{2}[0-9]{2}(?:[ \x{a0}\x{202f}-]?[A-Z0-9]){11,30}`)
	phoneForm = lazyregexp.MustCompile(`(?:\+|%2[Bb])?[ ]?\(?[0-9](?:(?:[\x{a0}\x{202f} ]?[()]{1,2}[\x{a0}\x{202f} -]?|[\x{a0}\x{202f}\x{2010}-\x{2013} .-]|[ ]?/[ ]?)?[0-9]){5,}`)
	// namedPhone matches a word after which a number without a prefix is a telephone number.
	namedPhone    = lazyregexp.MustCompile(`(?i)(?:tele(?:ph|f)on[eo]?|tel|phone|mobile?|handy|cell|whatsapp|fax)(?: number)?[.:]{0,2}[ \x{a0}]?$`)
	americanPhone = lazyregexp.MustCompile(`^(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}$`)
	datePattern   = lazyregexp.MustCompile(`\b(?:[0-3]?[0-9][./-][0-3]?[0-9][./-](?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}[./-][01]?[0-9][./-][0-3]?[0-9])\b|\b[0-3][0-9][./-][01][0-9][./-][0-9]{2}(?:[^.0-9]|$)`)
	handleForm    = lazyregexp.MustCompile(`[@＠][\p{L}_][\p{L}\p{M}\p{N}_]*(?:[.-][\p{L}\p{M}\p{N}_]+)*`)
	// The following patterns match an at sign in code: the scope of a package, a
	// call or an attribute at the beginning of a line, a decorator, and keywords.
	packageForm   = lazyregexp.MustCompile(`^@[a-z0-9._-]+/[a-z0-9]`)
	decoratorForm = lazyregexp.MustCompile(`^@[\p{L}\p{N}_.]+(?:\(|(?:[ \t]*(?:\n|\\n)[ \t]*@[\p{L}\p{N}_.]+)*[ \t]*(?:\n|\\n)[ \t]*(?:(?:async )?def [\p{L}\p{N}_]+ ?[(\[]|(?:(?:public|private|protected|internal|static|final|abstract|export|default|override|async|data) )*(?:class|interface|enum|fun|func|function|void) [\p{L}\p{N}_]+ ?[:({<]|(?:public|private|protected) ))`)
	lineBegin     = lazyregexp.MustCompile(`(?:^|\n|\\n|")[ \t]*$`)
	languageWord  = lazyregexp.MustCompile(`^@(?:property|staticmethod|classmethod|abstractmethod|dataclass|contextmanager|cached_property|override|overload|Override|Deprecated|Test|Autowired|Injectable|Component|Service|Bean|Entity|Nullable|NotNull|param|returns?|throws|deprecated|media|import|keyframes|font-face|supports|charset|everyone|here|channel|latest)$`)
	pseudonymForm = lazyregexp.MustCompile(`^@(?:Person|Chat)-[a-z2-7]{8}$`)
	escapeBefore  = lazyregexp.MustCompile(`(?:%[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[nrtbf])$`)
)

// replaceContacts replaces e-mail addresses, IBANs and telephone numbers by
// pseudonyms. Equal values have equal pseudonyms, however they are written.
func (p pseudonyms) replaceContacts(text string) string {
	text = replaceEach(emailForm, text, func(from, to int) (string, int, int) {
		begin := from
		if from = wordBegin(text, from); from > begin && (text[from] == '@' || !emailForm.MatchString(text[from:to])) {
			return "", from, from // everything before the at sign was an escape
		}
		plain := strings.NewReplacer("%40", "@", `\u0040`, "@", "＠", "@").Replace(strings.TrimPrefix(text[from:to], "@"))
		return p.derive("Email", strings.ToLower(plain)), from, to
	})
	text = replaceEach(ibanForm, text, func(from, to int) (string, int, int) {
		if !startsWord(text, from) {
			return "", from, from
		}
		iban, to := findIBAN(text, from, to)
		if iban == "" {
			return "", from, from
		}
		return p.derive("IBAN", iban), from, to
	})
	return replaceEach(phoneForm, text, func(from, to int) (string, int, int) {
		from = to - len(strings.TrimLeft(text[from:to], " "))
		if text[from] == '(' && !strings.Contains(text[from:to], ")") {
			from++ // the parenthesis encloses the number
		}
		number := parsePhone(text, from, to)
		if number == "" {
			return "", from, to
		}
		return p.derive("Phone", number), from, to
	})
}

// replaceHandles replaces @names by pseudonyms. It keeps code (decorators and packages) and pseudonyms
// of known users.
func (p pseudonyms) replaceHandles(text string) string {
	return replaceEach(handleForm, text, func(from, to int) (string, int, int) {
		plain := "@" + strings.TrimLeft(text[from:to], "@＠")
		switch {
		case !startsWord(text, from), pseudonymForm.MatchString(plain), languageWord.MatchString(plain), packageForm.MatchString(text[from:]),
			lineBegin.MatchString(text[:from]) && decoratorForm.MatchString(text[from:]):
			return "", from, to
		}
		return "@" + p.derive("Name", strings.ToLower(plain)), from, to
	})
}

// replaceEach replaces the matches of form. by returns the replacement and its range.
// If the replacement is empty, the text stays and the search continues after the range.
func replaceEach(form *lazyregexp.Regexp, text string, by func(from, to int) (string, int, int)) string {
	var out strings.Builder
	done := 0
	for at := 0; at < len(text); {
		found := form.FindStringIndex(text[at:])
		if found == nil {
			break
		}
		stand, from, to := by(at+found[0], at+found[1])
		if stand != "" {
			out.WriteString(text[done:from])
			out.WriteString(stand)
			done = to
		}
		_, size := utf8.DecodeRuneInString(text[at+found[0]:])
		at = max(to, at+found[0]+size)
	}
	out.WriteString(text[done:])
	return out.String()
}

// startsWord reports whether a word may begin at an offset, also after an escaped character.
func startsWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return at == 0 || !isWordRune(before) && before != '_' || escapeBefore.MatchString(text[max(0, at-6):at])
}

// findIBAN returns the longest IBAN in a range that has correct check digits, and its end.
func findIBAN(text string, from, to int) (iban string, end int) {
	for end = to; end-from >= 15; end-- {
		if wordEnd(text, end) != end || wordEnd(text, end-1) == end-1 {
			continue // within a word, or after a space
		}
		var plain, digits strings.Builder
		for _, r := range strings.ToUpper(text[from:end]) {
			if r < utf8.RuneSelf && isWordRune(r) {
				plain.WriteRune(r)
			}
		}
		iban = plain.String()
		for _, r := range iban[4:] + iban[:4] {
			if r >= 'A' {
				digits.WriteByte(byte('1' + (r-'A')/10))
				r = '0' + (r-'A')%10
			}
			digits.WriteRune(r)
		}
		if n, ok := new(big.Int).SetString(digits.String(), 10); ok && n.Mod(n, big.NewInt(97)).Int64() == 1 {
			return iban, end
		}
	}
	return "", from
}

// parsePhone returns the telephone number in a range as digits, with
// a plus before a country code; it returns "" if there is none.
func parsePhone(text string, from, to int) string {
	written := text[from:to]
	var only strings.Builder
	for _, r := range strings.TrimPrefix(strings.TrimPrefix(written, "%2B"), "%2b") {
		if r >= '0' && r <= '9' {
			only.WriteRune(r)
		}
	}
	digits := only.String()
	abroad := written[0] == '+' || written[0] == '%'
	if !abroad && strings.HasPrefix(digits, "00") {
		abroad, digits = true, digits[2:]
	}
	named := namedPhone.MatchString(text[max(0, from-24):from])
	switch {
	case !standsAlone(text, from, to), len(digits) > 15, datePattern.MatchString(written) && !abroad:
		return ""
	case abroad && len(digits) >= 8 && digits[0] != '0':
		const trunk = "(0)" // only dialled at home
		if at := strings.Index(written, trunk); at > 0 {
			return parsePhone(written[:at]+written[at+len(trunk):], 0, len(written)-len(trunk))
		}
		return "+" + digits
	case !abroad && (named || len(digits) >= 9 && len(digits) <= 12 && digits[0] == '0' && strings.HasPrefix(strings.TrimLeft(written, "("), digits[:2]) || americanPhone.MatchString(written)):
		return digits
	}
	return ""
}

// standsAlone reports whether digits are not part of a word, a decimal number or a time.
func standsAlone(text string, from, to int) bool {
	if wordEnd(text, to) != to || !startsWord(text, from) {
		return false
	}
	before, size := utf8.DecodeLastRuneInString(text[:from])
	if size == 0 {
		return true
	}
	further, _ := utf8.DecodeLastRuneInString(text[:from-size])
	switch before {
	case '.', ',', ':':
		return further < '0' || further > '9'
	case '-', '_':
		return !isWordRune(further)
	}
	return true
}
