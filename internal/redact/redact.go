// Package redact protects secrets: [Sealer] encrypts data in the store or in a browser's hands,
// and [Redactor] masks secrets in texts: known ones, also in common encodings (URL, JSON and
// HTML escapes, base64), and anything with the shape of a token, key or password of a well-known
// service.
//
// It guards against accidents, such as a token in an error or in a file that a model reads, and
// not against someone who transforms a secret on purpose.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// Mask replaces a secret.
const Mask = wording.Mask

const (
	// minKnown is the length in bytes from which known values are masked: shorter ones ("none",
	// "test") would tear holes into every text.
	minKnown = 8
	// maxEncoded is the length up to which all encodings of a value are searched: they take a dozen
	// times its memory.
	maxEncoded = 4 << 10
	// maxAdded bounds the values added while the program runs; the oldest are dropped first.
	maxAdded = 1000
)

// Redactor masks secrets; a nil Redactor masks only what has the shape of one. It may be used
// concurrently.
type Redactor struct {
	mu    sync.Mutex
	given []string
	added []string
	// values is nil if they have changed since they were prepared.
	values atomic.Pointer[matcher]
}

// matcher is the known values, prepared for searching.
type matcher struct {
	replacer *strings.Replacer
	// held is how many bytes a growing text lacks at its end: the longest beginning of a value that ends in a break.
	held int
}

// New returns a redactor that knows the given values.
func New(secrets ...string) *Redactor {
	return &Redactor{given: slices.Clone(secrets)}
}

// Add adds values that are masked from now on. It ignores values shorter than [minKnown].
func (r *Redactor) Add(secrets ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.added)
	for _, s := range secrets {
		if len(s) >= minKnown && !slices.Contains(r.given, s) && !slices.Contains(r.added, s) {
			r.added = append(r.added, s)
		}
	}
	if len(r.added) == before {
		return
	}
	r.added = r.added[max(0, len(r.added)-maxAdded):]
	r.values.Store(nil)
}

// matcher returns the prepared values. They are prepared on use, because many may be added at
// once.
func (r *Redactor) matcher() *matcher {
	if v := r.values.Load(); v != nil {
		return v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v := newMatcher(slices.Concat(r.given, r.added))
	r.values.Store(v)
	return v
}

func newMatcher(secrets []string) *matcher {
	known := map[string]bool{}
	for _, s := range secrets {
		if len(s) >= minKnown {
			for _, form := range encodings(s) {
				known[form] = true
			}
		}
	}
	// The longest first: one may be part of another.
	all := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	held := 0
	for _, form := range all {
		pairs = append(pairs, form, Mask)
		held = max(held, longestBeginning(form))
	}
	return &matcher{strings.NewReplacer(pairs...), held}
}

// longestBeginning returns the length of a value without what follows its last break, which a growing text does not
// show anyway. Nor does one show a key that has no end yet.
func longestBeginning(form string) int {
	n := lastBreak(form[:len(form)-1])
	if strings.HasPrefix(form, pemBegin) && n <= endOfKey(form) {
		return 0
	}
	return n
}

// encodings returns a value and its encodings.
func encodings(secret string) []string {
	if len(secret) > maxEncoded {
		return []string{secret, strings.Trim(strconv.Quote(secret), `"`)}
	}
	quoted := strconv.Quote(secret)
	ascii := strconv.QuoteToASCII(secret)
	all := []string{
		secret, quoted[1 : len(quoted)-1], ascii[1 : len(ascii)-1], html.EscapeString(secret),
		url.QueryEscape(secret), url.PathEscape(secret),
	}
	all = append(all, lowerEscapes(all[4]), lowerEscapes(all[5]))
	if data, err := json.Marshal(secret); err == nil {
		within := string(data[1 : len(data)-1])
		all = append(all, within, strings.ReplaceAll(within, "/", `\/`)) // as Slack and PHP write it
	}
	for lead := range 3 {
		within := base64Within(secret, lead)
		all = append(all, within, strings.NewReplacer("+", "-", "/", "_").Replace(within))
	}
	return all
}

// lowerEscapes turns %3A into %3a.
func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			out[i+1], out[i+2] = byte(unicode.ToLower(rune(out[i+1]))), byte(unicode.ToLower(rune(out[i+2])))
		}
	}
	return string(out)
}

// base64Within returns the characters that the base64 encoding of data
// contains if the secret is in the data at an offset of lead modulo three.
func base64Within(secret string, lead int) string {
	data := append(make([]byte, lead), secret...)
	encoded := base64.StdEncoding.EncodeToString(data)
	first := (lead*8 + 5) / 6
	return encoded[first : len(data)*8/6]
}

// Text returns a text with its secrets masked: the same string if there are none.
//
// A part of a known value is no secret to it. Whoever has a text masked sees whether something was, and could
// otherwise find out a value letter by letter. So a text has to be masked before it is cut.
func (r *Redactor) Text(text string) string {
	text = r.MaskKnown(text)
	// A masked part, such as a key over several lines within an address, may have hidden the shape of another
	// secret.
	for {
		masked := maskShapes(text)
		if masked == text {
			return text
		}
		text = masked
	}
}

// MaskKnown masks only known values: for readers who have to see what a text does, since any author
// can give a text the shape of a secret.
func (r *Redactor) MaskKnown(text string) string {
	if r == nil {
		return text
	}
	return r.matcher().replacer.Replace(text)
}

// MaskUnfinished masks a growing text: its end is left out, because it may be the beginning of a secret.
//
// How much is left out depends on no known value but the length of one. Otherwise, whoever has a text begun would see
// whether a value begins like that.
func (r *Redactor) MaskUnfinished(text string) string {
	text = text[:lastBreak(text)]
	if r != nil {
		// Whole values first: one could be cut here. A mask is longer than what it stands for, at most by a half.
		v := r.matcher()
		text = v.replacer.Replace(text)
		text = text[:max(0, len(text)-v.held*len(Mask)/minKnown)]
		text = text[:lastBreak(text)]
	}
	if at := strings.LastIndex(text, pemBegin); at >= 0 && endOfKey(text[at:]) < 0 {
		text = text[:at]
	}
	return r.Text(text)
}

// isSecretEnd reports whether a character ends anything with the shape of a secret.
func isSecretEnd(c rune) bool { return unicode.IsSpace(c) || c >= utf8.RuneSelf && c != utf8.RuneError }

// lastBreak returns the offset after the last character that ends a secret.
func lastBreak(text string) int {
	at := strings.LastIndexFunc(text, isSecretEnd)
	if at < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return at + size
}

// Error returns an error whose text is masked. [errors.Is] and [errors.As] still find what it
// wraps. It returns nil for nil.
func (r *Redactor) Error(err error) error {
	if err == nil || !r.hasSecret(err.Error()) {
		return err
	}
	return &maskedError{r.Text(err.Error()), err}
}

type maskedError struct {
	text string
	err  error
}

// Error returns the masked text.
func (e *maskedError) Error() string { return e.text }

// Unwrap returns the error that was masked.
func (e *maskedError) Unwrap() error { return e.err }

// hasSecret reports whether a text has something to mask.
func (r *Redactor) hasSecret(text string) bool { return r.Text(text) != text }

// Writer returns a writer that masks whole records, such as those of log handlers.
func (r *Redactor) Writer(w io.Writer) io.Writer { return writer{r, w} }

type writer struct {
	redactor *Redactor
	to       io.Writer
}

// Write masks a record.
func (w writer) Write(p []byte) (int, error) {
	before := string(p)
	masked := w.redactor.Text(before)
	if masked == before {
		return w.to.Write(p)
	}
	if _, err := io.WriteString(w.to, masked); err != nil {
		return 0, err
	}
	return len(p), nil
}
