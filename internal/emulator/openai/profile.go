package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Profile describes how one service differs: what it refuses, and what it sends. [Personalities]
// has the known ones, with sources.
type Profile struct {
	Name string
	// URL is the usual address of the service, Model one of its models.
	URL, Model string
	// ResponsesOnly refuses tools over Chat Completions.
	ResponsesOnly bool

	// Thinks is where a reply has its reasoning.
	Thinks Thinking
	// Wants is which reasoning must be sent back; Missing is the error without it.
	Wants   Wants
	Missing Error
	// Fields are the accepted extra fields of assistant messages and their calls. Unknown is the
	// error for others; without a status they are ignored.
	Fields  []string
	Unknown Error

	// IDs matches valid call ids; nil accepts any. BadID is the error for others.
	IDs   *regexp.Regexp
	BadID Error
	// Unique is the error for an id that occurs twice in a request.
	Unique Error
	// MakeID makes the id of a call; nil makes OpenAI's.
	MakeID func(seq, n int, name string) string

	// AfterTool is the error for a user message right after a result.
	AfterTool Error
	// Required is the error for a schema that requires an undefined property.
	Required Error
	// Blind is the error for pictures.
	Blind Error
	// NoStreamOptions is the error for stream_options.
	NoStreamOptions Error

	// Overflow is the error for a prompt larger than the context; sent in the stream with
	// OverflowInStream. Cuts silently drops the oldest messages instead.
	Overflow         Error
	OverflowInStream bool
	Cuts             bool

	// Form makes the JSON of an error, nil for OpenAI's. StreamError makes an error in a stream;
	// nil for an event with the same JSON.
	Form        func(e *Error) any
	StreamError func(e *Error) string
	// Parts sends content as an array of parts. NoIndex leaves out which call a piece belongs to,
	// and ends a reply with calls like one without. Comments sends comment lines before a reply.
	Parts, NoIndex, Comments bool

	// Entry is the model's entry in the list of models beside its id, Pages the content of other
	// addresses. {model} and {context} are replaced.
	Entry string
	Pages map[string]string
}

// Thinking is where a reply has its reasoning.
type Thinking string

// The places.
const (
	ThinksContent   Thinking = "reasoning_content"
	ThinksReasoning Thinking = "reasoning"
	ThinksDetails   Thinking = "reasoning_details"
	ThinksParts     Thinking = "content"
	ThinksSigned    Thinking = "extra_content"
)

// Wants is which reasoning a service requires back.
type Wants string

// Of all replies with calls, or of those of the current turn.
const (
	WantsAll  Wants = "all"
	WantsTurn Wants = "turn"
)

// skipSignature replaces a signature that Gemini did not give
// (ai.google.dev/gemini-api/docs/thought-signatures).
const skipSignature = "skip_thought_signature_validator"

// Thought returns the reasoning of a reply. It names the model, so that a test can follow it.
func (p Profile) Thought(seq int) string {
	return "[" + p.Name + "] thinks " + strconv.Itoa(seq)
}

// PersonalityOf returns the profile with a name.
func PersonalityOf(name string) (Profile, bool) {
	i := slices.IndexFunc(personalities, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return personalities[i], true
}

// Personalities returns all known profiles.
func Personalities() []Profile { return slices.Clone(personalities) }

// path returns the path before /chat/completions.
func (p *Profile) path() string {
	if u, err := url.Parse(p.URL); err == nil {
		return u.Path
	}
	return ""
}

// refuse makes an error from a rule: values are pairs of a name in braces and its replacement.
func refuse(rule Error, values ...string) *Error {
	e := rule
	e.Message = strings.NewReplacer(values...).Replace(e.Message)
	return &e
}

// applies reports whether a rule is set.
func applies(rule Error) bool { return rule.Status != 0 }

// rawMessage is a message with all its fields.
type rawMessage struct {
	fields map[string]json.RawMessage
	role   string
	calls  []rawCall
}

type rawCall struct {
	ID       string          `json:"id"`
	Extra    json.RawMessage `json:"extra_content"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// checkService refuses what this service refuses of a request that OpenAI would accept.
func (p *Profile) checkService(req *Request) *Error {
	if p.ResponsesOnly && len(req.Tools) > 0 {
		return invalid("reasoning_effort", "", "Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", req.Model)
	}
	if applies(p.NoStreamOptions) && req.IncludeUsage {
		return refuse(p.NoStreamOptions)
	}
	if applies(p.Required) {
		for i, t := range req.Tools {
			if path := undefined(t.Parameters, "parameters"); path != "" {
				return refuse(p.Required, "{i}", strconv.Itoa(i), "{path}", path)
			}
		}
	}
	var fields []map[string]json.RawMessage
	if json.Unmarshal(req.MessagesJSON, &fields) != nil {
		return nil
	}
	messages := make([]rawMessage, len(fields))
	turn := -1
	for i, f := range fields {
		messages[i].fields = f
		_ = json.Unmarshal(f["role"], &messages[i].role)
		_ = json.Unmarshal(f["tool_calls"], &messages[i].calls)
		if messages[i].role == "user" {
			turn = i
		}
	}
	for i := range messages {
		if e := p.order(req, messages, i); e != nil {
			return e
		}
		if e := p.assistant(&messages[i], i, i > turn); e != nil {
			return e
		}
	}
	return p.ids(messages)
}

// order checks the order of roles, and pictures.
func (p *Profile) order(req *Request, messages []rawMessage, i int) *Error {
	if applies(p.AfterTool) && i > 0 && messages[i].role == "user" && messages[i-1].role == "tool" {
		return refuse(p.AfterTool)
	}
	if applies(p.Blind) && len(req.Messages[i].Pictures) > 0 {
		return refuse(p.Blind, "{i}", strconv.Itoa(i), "{model}", req.Model)
	}
	return nil
}

// assistant checks the fields of an assistant message, and the required reasoning.
func (p *Profile) assistant(m *rawMessage, i int, inTurn bool) *Error {
	if m.role != "assistant" {
		return nil
	}
	values := []string{"{i}", strconv.Itoa(i)}
	for field := range m.fields {
		known := slices.Contains([]string{"role", "content", "tool_calls", "refusal", "name"}, field) || slices.Contains(p.Fields, field)
		if applies(p.Unknown) && !known {
			return refuse(p.Unknown, append(values, "{field}", field)...)
		}
	}
	for _, c := range m.calls {
		if len(c.Extra) > 0 && applies(p.Unknown) && !slices.Contains(p.Fields, "extra_content") {
			return refuse(p.Unknown, append(values, "{field}", "extra_content")...)
		}
	}
	if len(m.calls) == 0 || p.Wants == "" || p.Wants == WantsTurn && !inTurn {
		return nil
	}
	if name := m.calls[0].Function.Name; !p.hasReasoning(m) {
		return refuse(p.Missing, append(values, "{name}", name)...)
	}
	return nil
}

// hasReasoning reports whether a message with calls has the required reasoning.
func (p *Profile) hasReasoning(m *rawMessage) bool {
	own := func(s string) bool { return s == skipSignature || s == "signed by "+p.Name }
	switch p.Thinks {
	case ThinksSigned:
		var extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		}
		return json.Unmarshal(m.calls[0].Extra, &extra) == nil && own(extra.Google.Signature)
	case ThinksDetails:
		var details []struct{ Type, Data string }
		_ = json.Unmarshal(m.fields["reasoning_details"], &details)
		for _, d := range details {
			if d.Type == "reasoning.encrypted" && own(d.Data) {
				return true
			}
		}
		return false
	}
	var text string
	_ = json.Unmarshal(m.fields[string(p.Thinks)], &text)
	return strings.TrimSpace(text) != ""
}

// ids checks the ids of all calls.
func (p *Profile) ids(messages []rawMessage) *Error {
	seen := map[string]bool{}
	for i := range messages {
		for j, c := range messages[i].calls {
			values := []string{"{i}", strconv.Itoa(i), "{j}", strconv.Itoa(j), "{id}", c.ID, "{length}", strconv.Itoa(len(c.ID))}
			if p.IDs != nil && !p.IDs.MatchString(c.ID) {
				return refuse(p.BadID, values...)
			}
			if applies(p.Unique) && seen[c.ID] {
				return refuse(p.Unique, values...)
			}
			seen[c.ID] = true
		}
	}
	return nil
}

// undefined finds a required but undefined property in a schema.
func undefined(raw json.RawMessage, path string) string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &schema) != nil {
		return ""
	}
	for i, name := range schema.Required {
		if _, ok := schema.Properties[name]; !ok {
			return fmt.Sprintf("%s.required[%d]", path, i)
		}
	}
	below := map[string]json.RawMessage{"items": schema.Items}
	for name, sub := range schema.Properties {
		below["properties["+name+"]"] = sub
	}
	for i, sub := range schema.AnyOf {
		below["any_of["+strconv.Itoa(i)+"]"] = sub
	}
	for name, sub := range below {
		if at := undefined(sub, path+"."+name); at != "" {
			return at
		}
	}
	return ""
}

// fits makes a prompt fit the context, or refuses it.
func (s *Server) fits(req *Request, size int) *Error {
	if size <= s.cfg.Context {
		return nil
	}
	p := &s.cfg.Personality
	if p.Cuts {
		req.Cut = s.cut(req, size)
		return nil
	}
	refused := refuse(p.Overflow, "{max}", strconv.Itoa(s.cfg.Context), "{n}", strconv.Itoa(size))
	refused.inStream = p.OverflowInStream && req.Stream
	return refused
}

// cut drops the oldest messages until the rest fits, and returns their number.
func (s *Server) cut(req *Request, size int) (gone int) {
	kept := req.Messages[:0:0]
	for i, m := range req.Messages {
		if size > s.cfg.Context && m.Role != "system" && i+1 < len(req.Messages) {
			size -= len(m.Content) / bytesPerToken
			gone++
			continue
		}
		kept = append(kept, m)
	}
	req.Messages = kept
	return gone
}

// page serves the service's other addresses.
func (s *Server) page(w http.ResponseWriter, path string) bool {
	for at, text := range s.cfg.Personality.Pages {
		if s.fill(at) == path {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(s.fill(text)))
			return true
		}
	}
	return false
}

// fill replaces placeholders in a text of the profile.
func (s *Server) fill(text string) string {
	return strings.NewReplacer("{model}", s.cfg.Models[0], "{context}", strconv.Itoa(s.cfg.Context)).Replace(text)
}
