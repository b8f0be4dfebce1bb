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
	// idPlain is up to 40 letters, digits, _ and -. Both OpenAI and Anthropic take it.
	idPlain IDRule = iota
	// IDNine is nine letters and digits (Mistral).
	IDNine
	// IDLoose is idPlain or Kimi's own form, functions.name:0.
	IDLoose
)

// maxPlainID is the length of the longest id that OpenAI accepts on Chat Completions.
const maxPlainID = 40

// fits reports whether an id can be sent unchanged.
func (r IDRule) fits(id string) bool {
	if id == "" || len(id) > idLengths[r] || r == IDNine && len(id) != 9 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !isWordByte(c) && strings.IndexByte(idExtraChars[r], c) < 0 {
			return false
		}
	}
	return true
}

// idLengths are the maximum lengths of ids, by rule.
var idLengths = [...]int{idPlain: maxPlainID, IDNine: 9, IDLoose: 100}

// idExtraChars are the characters allowed in ids in addition to letters and digits, by rule.
var idExtraChars = [...]string{idPlain: "_-", IDNine: "", IDLoose: "_-.:"}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// CallIDs maps the ids of calls to ids that the server accepts, and each result to its call. The new
// ids depend only on the calls, so that a request begins with the same bytes as the previous one.
type CallIDs struct {
	Rule IDRule
	// Seen holds the ids used in the request so far, if each may occur only once; nil if the server
	// accepts repeated ids.
	Seen map[string]struct{}
	// Open are the ids of the last reply's calls, whose results follow in order.
	Open     []string
	answered int
}

// BeginReply begins the calls of the next reply.
func (c *CallIDs) BeginReply() { c.Open, c.answered = c.Open[:0], 0 }

// AddCall adds the next call of the reply and returns the id to send for it.
func (c *CallIDs) AddCall(id string) string {
	wire := id
	for n := 0; ; n++ {
		if n > 0 || !c.Rule.fits(wire) {
			wire = c.deriveID(id, n)
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

// NextResult returns the id of the call that the next result belongs to. If all calls of the reply have
// results, it returns id.
func (c *CallIDs) NextResult(id string) string {
	if c.answered == len(c.Open) {
		return id
	}
	c.answered++
	return c.Open[c.answered-1]
}

// deriveID returns the n-th possible replacement for an id.
func (c *CallIDs) deriveID(id string, n int) string {
	sum := sha256.Sum256([]byte(id + "\n" + strconv.Itoa(n)))
	if c.Rule == IDNine {
		return hex.EncodeToString(sum[:5])[:9]
	}
	return "call_" + hex.EncodeToString(sum[:12])
}
