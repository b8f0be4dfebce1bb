// Package redact keeps secrets: [Sealer] encrypts what lies in the store or travels through a
// browser, and [Redactor] masks secrets in texts: those that are known, in the forms in which
// they turn up again (escaped for an address, for JSON or HTML, within base64), and
// what has the shape of a token, a key or a password of a well-known service.
//
// It guards against accidents, a token in an error or in a file that a model was asked
// to read, and not against a person who transforms a secret on purpose.
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
)

// Mask stands where a secret was.
const Mask = "••••"

const (
	// MinKnown is the length in bytes from which a known value is looked for: shorter
	// ones ("none", "test") would tear holes into every text.
	MinKnown = 8
	// maxEncoded is the length up to which all encodings of a value are looked for: they
	// take a dozen times its memory.
	maxEncoded = 4 << 10
	// maxAdded bounds the values that were added while the program runs; the oldest are
	// forgotten first.
	maxAdded = 1000
)

// Redactor masks secrets; a nil one shapes alone. It may be used concurrently.
type Redactor struct {
	mu    sync.Mutex
	given []string
	added []string
	// values is nil where they have changed since they were prepared.
	values atomic.Pointer[values]
}

// values are the known ones, prepared for the search.
type values struct {
	replacer *strings.Replacer
	forms    []string
}

// New returns a redactor that knows the given values.
func New(secrets ...string) *Redactor {
	return &Redactor{given: slices.Clone(secrets)}
}

// Add has more values masked from now on.
func (r *Redactor) Add(secrets ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.added)
	for _, s := range secrets {
		if len(s) >= MinKnown && !slices.Contains(r.given, s) && !slices.Contains(r.added, s) {
			r.added = append(r.added, s)
		}
	}
	if len(r.added) == before {
		return
	}
	r.added = r.added[max(0, len(r.added)-maxAdded):]
	r.values.Store(nil)
}

// prepared are all values, made ready when they are needed: many may be added at once.
func (r *Redactor) prepared() *values {
	if v := r.values.Load(); v != nil {
		return v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v := prepare(slices.Concat(r.given, r.added))
	r.values.Store(v)
	return v
}

func prepare(secrets []string) *values {
	known := map[string]bool{}
	for _, s := range secrets {
		if len(s) >= MinKnown {
			for _, form := range forms(s) {
				known[form] = true
			}
		}
	}
	// The longest first: one may be part of another.
	all := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, form := range all {
		pairs = append(pairs, form, Mask)
	}
	return &values{strings.NewReplacer(pairs...), all}
}

// forms are a value and what encodings make of it.
func forms(secret string) []string {
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
		all = append(all, string(data[1:len(data)-1]))
	}
	for lead := range 3 {
		within := base64Within(secret, lead)
		all = append(all, within, strings.NewReplacer("+", "-", "/", "_").Replace(within))
	}
	return all
}

// lowerEscapes writes %3A as %3a.
func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			out[i+1], out[i+2] = byte(unicode.ToLower(rune(out[i+1]))), byte(unicode.ToLower(rune(out[i+2])))
		}
	}
	return string(out)
}

// base64Within returns what stands in the base64 of any data in which the secret begins
// behind a multiple of three bytes and lead more.
func base64Within(secret string, lead int) string {
	data := append(make([]byte, lead), secret...)
	encoded := base64.StdEncoding.EncodeToString(data)
	first := (lead*8 + 5) / 6
	return encoded[first : len(data)*8/6]
}

// Text returns a text with its secrets masked: the same string where there are none.
func (r *Redactor) Text(text string) string {
	if r == nil {
		return maskAll(text, func(string) bool { return false })
	}
	known := r.prepared()
	return maskAll(known.replacer.Replace(text), known.begins)
}

// maskAll masks until nothing more is found: what a mask has taken the place of, such as a key over
// several lines within an address, may have hidden the shape of another secret.
func maskAll(text string, begins func(word string) bool) string {
	for {
		masked := maskShapes(text, begins)
		if masked == text {
			return text
		}
		text = masked
	}
}

// Known returns a text with the known values masked, and nothing else: for a reader who has
// to see what a text does, since any author can give a text the shape of a secret.
func (r *Redactor) Known(text string) string {
	if r == nil {
		return text
	}
	return r.prepared().replacer.Replace(text)
}

// begins reports whether a known value begins with a word that is long enough to tell.
func (v *values) begins(word string) bool {
	return len(word) >= MinKnown && slices.ContainsFunc(v.forms, func(form string) bool { return strings.HasPrefix(form, word) })
}

// Unfinished masks a text that is still growing: what it ends with may be the beginning
// of a secret, and is left out until it is clear that it is none.
func (r *Redactor) Unfinished(text string) string {
	text = text[:lastBreak(text)]
	if at := strings.LastIndex(text, pemBegin); at >= 0 && endOfKey(text[at:]) < 0 {
		text = text[:at]
	}
	if r != nil {
		text = r.prepared().unbegun(text)
	}
	return r.Text(text)
}

// breaks reports whether a character ends whatever has the shape of a secret.
func breaks(c rune) bool { return unicode.IsSpace(c) || c >= utf8.RuneSelf && c != utf8.RuneError }

// lastBreak is behind the last character that ends a secret.
func lastBreak(text string) int {
	at := strings.LastIndexFunc(text, breaks)
	if at < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return at + size
}

// unbegun leaves out what a text ends with, where a known value with such characters in it
// may go on from there.
func (v *values) unbegun(text string) string {
	end := len(text)
	for _, form := range v.forms {
		if !strings.ContainsFunc(form, breaks) {
			continue
		}
		for n := min(len(form)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, form[:n]) {
				end = min(end, len(text)-n)
				break
			}
		}
	}
	return text[:end]
}

// Error returns an error whose text is masked. What it wraps is still found by
// [errors.Is] and [errors.As]. It returns nil for nil.
func (r *Redactor) Error(err error) error {
	if err == nil || !r.Has(err.Error()) {
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

// Has reports whether there is something to mask in a text.
func (r *Redactor) Has(text string) bool { return r.Text(text) != text }

// Writer returns a writer that masks whole records, as those of log handlers.
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
