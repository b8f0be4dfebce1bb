package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// IDRule is the form that call ids must have.
type IDRule int

const (
	// IDPlain: up to 40 letters, digits, _ and -. Both OpenAI and Anthropic take it.
	IDPlain IDRule = iota
	// IDNine: nine letters and digits (Mistral).
	IDNine
	// IDLoose: Kimi's own form, functions.name:0, as well.
	IDLoose
)

// maxPlainID is the longest id that OpenAI takes over Chat Completions.
const maxPlainID = 40

// fits reports whether an id can be sent unchanged.
func (r IDRule) fits(id string) bool {
	if id == "" || len(id) > idLengths[r] || r == IDNine && len(id) != 9 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !word(c) && strings.IndexByte(idMarks[r], c) < 0 {
			return false
		}
	}
	return true
}

// idLengths are the maximum lengths.
var idLengths = [...]int{IDPlain: maxPlainID, IDNine: 9, IDLoose: 100}

// idMarks are the characters allowed in addition to letters and digits.
var idMarks = [...]string{IDPlain: "_-", IDNine: "", IDLoose: "_-.:"}

func word(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// CallIDs maps the ids of calls to ids that the server accepts, and each result to its call. The new
// ids depend only on the calls, so that a request begins with the bytes of the one before.
type CallIDs struct {
	Rule IDRule
	// Seen holds the ids of a request in which each may occur only once; nil if the server accepts
	// repeated ids.
	Seen map[string]struct{}
	// Open are the ids of the last reply's calls, whose results follow in order.
	Open []string
	done int
}

// Reply starts the calls of another reply.
func (c *CallIDs) Reply() { c.Open, c.done = c.Open[:0], 0 }

// Call returns the id of the next call.
func (c *CallIDs) Call(id string) string {
	wire := id
	for n := 0; ; n++ {
		if n > 0 || !c.Rule.fits(wire) {
			wire = c.derived(id, n)
		}
		if _, again := c.Seen[wire]; !again {
			break
		}
	}
	if c.Seen != nil {
		c.Seen[wire] = struct{}{}
	}
	c.Open = append(c.Open, wire)
	return wire
}

// Result returns the id of the call that the next result answers, and the call's index in the reply; -1
// if no known call fits.
func (c *CallIDs) Result(id string) (wire string, place int) {
	if c.done == len(c.Open) {
		return id, -1
	}
	c.done++
	return c.Open[c.done-1], c.done - 1
}

// derived returns the id that replaces another, the n-th that does.
func (c *CallIDs) derived(id string, n int) string {
	sum := sha256.Sum256([]byte(id + "\n" + strconv.Itoa(n)))
	if c.Rule == IDNine {
		return hex.EncodeToString(sum[:5])[:9]
	}
	return "call_" + hex.EncodeToString(sum[:12])
}
