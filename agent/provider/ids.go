package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// IDRule is what ids of calls have to look like.
type IDRule int

const (
	// IDPlain takes up to 40 letters, digits, _ and -: what OpenAI and Anthropic take both.
	IDPlain IDRule = iota
	// IDNine takes nine letters and digits: Mistral.
	IDNine
	// IDLoose takes what Kimi makes itself, functions.name:0.
	IDLoose
)

// maxPlainID is the longest id that OpenAI takes over Chat Completions.
const maxPlainID = 40

// fits reports whether an id can go to the server as it is.
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

// idLengths are the longest ids.
var idLengths = [...]int{IDPlain: maxPlainID, IDNine: 9, IDLoose: 100}

// idMarks are the characters of ids beside letters and digits.
var idMarks = [...]string{IDPlain: "_-", IDNine: "", IDLoose: "_-.:"}

func word(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// CallIDs gives calls the ids under which a server sees them, and each result that of its
// call. They depend on nothing but the calls, so that a request begins like the one before
// it.
type CallIDs struct {
	Rule IDRule
	// Seen are the ids of a request in which each occurs once; nil where that is all the
	// same to the server.
	Seen map[string]struct{}
	// Open are the ids of the calls of the last reply, whose results follow in their order.
	Open []string
	done int
}

// Reply begins with the calls of another reply.
func (c *CallIDs) Reply() { c.Open, c.done = c.Open[:0], 0 }

// Call returns the id of the next call.
func (c *CallIDs) Call(id string) string {
	wire := id
	for n := 0; ; n++ {
		if n > 0 || !c.Rule.fits(wire) {
			wire = c.made(id, n)
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

// Result returns the id of the call that the next result answers, and its place among the calls of
// the reply; -1 if it answers none that is known.
func (c *CallIDs) Result(id string) (wire string, place int) {
	if c.done == len(c.Open) {
		return id, -1
	}
	c.done++
	return c.Open[c.done-1], c.done - 1
}

// made is an id that stands for another, the n-th that does.
func (c *CallIDs) made(id string, n int) string {
	sum := sha256.Sum256([]byte(id + "\n" + strconv.Itoa(n)))
	if c.Rule == IDNine {
		return hex.EncodeToString(sum[:5])[:9]
	}
	return "call_" + hex.EncodeToString(sum[:12])
}
