package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// idRule is what ids of calls have to look like.
type idRule int

const (
	// idPlain takes up to 40 letters, digits, _ and -: what OpenAI and Anthropic take both.
	idPlain idRule = iota
	// idNine takes nine letters and digits: Mistral.
	idNine
	// idLoose takes what Kimi makes itself, functions.name:0.
	idLoose
)

// maxPlainID is the longest id that OpenAI takes over Chat Completions.
const maxPlainID = 40

// fits reports whether an id can go to the server as it is.
func (r idRule) fits(id string) bool {
	if id == "" || len(id) > idLengths[r] || r == idNine && len(id) != 9 {
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
var idLengths = [...]int{idPlain: maxPlainID, idNine: 9, idLoose: 100}

// idMarks are the characters of ids beside letters and digits.
var idMarks = [...]string{idPlain: "_-", idNine: "", idLoose: "_-.:"}

func word(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// callIDs gives calls the ids under which a server sees them, and each result that of its
// call. They depend on nothing but the calls, so that a request begins like the one before
// it.
type callIDs struct {
	rule idRule
	// seen are the ids of a request in which each occurs once; nil where that is all the
	// same to the server.
	seen map[string]struct{}
	// open are the ids of the calls of the last reply, whose results follow in their order.
	open []string
	done int
}

// reply begins with the calls of another reply.
func (c *callIDs) reply() { c.open, c.done = c.open[:0], 0 }

// call returns the id of the next call.
func (c *callIDs) call(id string) string {
	wire := id
	for n := 0; ; n++ {
		if n > 0 || !c.rule.fits(wire) {
			wire = c.made(id, n)
		}
		if _, again := c.seen[wire]; !again {
			break
		}
	}
	if c.seen != nil {
		c.seen[wire] = struct{}{}
	}
	c.open = append(c.open, wire)
	return wire
}

// result returns the id of the call that the next result answers.
func (c *callIDs) result(id string) string {
	if c.done == len(c.open) {
		return id // It answers no call: nothing that we make.
	}
	c.done++
	return c.open[c.done-1]
}

// made is an id that stands for another, the n-th that does.
func (c *callIDs) made(id string, n int) string {
	sum := sha256.Sum256([]byte(id + "\n" + strconv.Itoa(n)))
	if c.rule == idNine {
		return hex.EncodeToString(sum[:5])[:9]
	}
	return "call_" + hex.EncodeToString(sum[:12])
}
