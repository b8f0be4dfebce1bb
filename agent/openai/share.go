package openai

import (
	"errors"
	"io"
	"net/http"
	"time"

	"oneclaw/agent"
)

// What follows serves clients of other APIs, which are to judge and word things alike.

// Where facts are from.
const (
	FromSettings = fromSettings
	FromRefusal  = fromRefusal
	FromServer   = fromServer
	FromTable    = fromTable
)

// NewCan is a fact about what a model can do.
func NewCan(value bool, from string) Can { return can(value, from) }

// NewNumber is a fact where n is positive.
func NewNumber(n float64, from string) Fact[int] { return number(n, from) }

// Or fills what is unknown with what others say.
func (f Facts) Or(g Facts) Facts { return f.or(g) }

// Classify chooses the kind of a failure, and whether it may pass, by the status and what
// the server says.
func Classify(status int, code, text string) (kind agent.Kind, passing bool) {
	return classify(status, code, text)
}

// LimitIn is the size of the context that a refusal names; 0 if it names none.
func LimitIn(text string) int { return limitIn(text) }

// Clean bounds a text from outside and takes the key out of it.
func Clean(text, key string) string { return clean(text, key) }

// WithoutAddress is the text of an error of the HTTP client without the address.
func WithoutAddress(err error) string { return withoutAddress(err) }

// Refused is what a server says in place of an answer. It closes the body.
func Refused(resp *http.Response) error { return refusal(resp) }

// EventError is the error that an event of a stream is.
func EventError(event []byte) error { return errorPage(event) }

// Refusal is what a server has said in place of a reply.
type Refusal struct {
	Status     int // of HTTP; 0 for an error in a stream
	Wait       time.Duration
	Code, Text string
}

// RefusalIn is what an error of [Refused], [EventError] or [Events] says.
func RefusalIn(err error) (r Refusal, ok bool) {
	e, ok := errors.AsType[*serverError](err)
	if ok {
		r = Refusal{e.status, e.wait, e.code, e.text}
	}
	return r, ok
}

// Events gives the events of a reply to add until it returns an error; a reply that is not
// streamed is one. The end of the reply is io.EOF.
func Events(resp *http.Response, add func(raw []byte) error) error { return events(resp, add) }

// Follow is how a client follows redirects: within its server, and not by another method.
func Follow(req *http.Request, via []*http.Request) error { return follow(req, via) }

// Bounded is a body that ends behind the largest reply. alive is called when something
// comes.
func Bounded(body io.ReadCloser, alive func()) io.ReadCloser {
	return &limited{ReadCloser: body, left: maxReply, alive: alive}
}

// FunctionName makes a name that the model invented acceptable to servers.
func FunctionName(name string) string { return functionName(name) }

// Arguments returns them as the model wrote them, or an object that holds them.
func Arguments(raw string) string { return arguments(raw) }

// OrEmpty stands in for no text, which many servers refuse.
func OrEmpty(text string) string { return orEmpty(text) }

// CallIDs gives calls the ids under which a server sees them: letters, digits, _ and -,
// each once in a request.
type CallIDs struct{ ids callIDs }

// NewCallIDs begins a request.
func NewCallIDs() *CallIDs { return &CallIDs{callIDs{seen: map[string]struct{}{}}} }

// Reply begins with the calls of another reply.
func (c *CallIDs) Reply() { c.ids.reply() }

// Call returns the id of the next call.
func (c *CallIDs) Call(id string) string { return c.ids.call(id) }

// Result returns the id of the call that the next result answers, and its place among the
// calls of the reply; -1 if it answers none.
func (c *CallIDs) Result(id string) (wire string, place int) {
	if c.ids.done == len(c.ids.open) {
		return id, -1
	}
	place = c.ids.done
	return c.ids.result(id), place
}

// Picture is one that a model is shown.
type Picture struct {
	Kind string
	Data []byte
}

// Pictures reads those that a request shows, by the places of their messages. Blind says that
// there are some and they cannot be read. skipped is told what could not be read.
func Pictures(req *agent.Request, skipped func(file string, err error)) (pictures map[int][]Picture, blind bool) {
	s := look(req, skipped)
	pictures = make(map[int][]Picture, len(s.pictures))
	for at, some := range s.pictures {
		for _, p := range some {
			pictures[at] = append(pictures[at], Picture{p.kind, p.data})
		}
	}
	return pictures, s.blind
}

// UserTextFor is [UserText] for a model that may be blind.
func UserTextFor(m *agent.Message, blind bool) string { return userText(m, blind) }

// LastUser is the place of the message that the present turn began with; -1 if there is
// none.
func LastUser(messages []agent.Message) int { return lastUser(messages) }

// AdaptClaude takes out of a schema what Claude refuses.
func AdaptClaude(schema []byte) []byte { return adapt(DialectAnthropic, schema) }
