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

// Profile describes what one service refuses and sends in its own way. [Profiles] returns the known
// services, with sources.
type Profile struct {
	Name string
	// URL is the usual address of the service, Model one of its models.
	URL, Model string
	// ResponsesOnly makes Chat Completions refuse tools.
	ResponsesOnly bool
	// efforts are the reasoning efforts that the model takes; nil takes all. fixedTemperature is the only
	// temperature that it takes; 0 takes all.
	efforts          []string
	fixedTemperature float64
	// badKey is the error for a wrong key; without a status it is OpenAI's.
	badKey Error

	// Reasoning is the place of the reasoning in a reply. reasoningInTotal counts its tokens in the total
	// alone.
	Reasoning        ReasoningStyle
	reasoningInTotal bool
	// CacheBesideInput leaves the cached tokens out of the prompt's, and in the total, as Portkey 1.15.2 does in
	// front of Anthropic. NoFinishReason ends a stream with [DONE] alone, as NVIDIA NIM does after calls.
	CacheBesideInput, NoFinishReason bool
	// RequiredReasoning is the reasoning to be sent back; missingReasoning is the error without it.
	RequiredReasoning ReasoningScope
	missingReasoning  Error
	// extraFields are accepted in assistant messages and their calls, besides OpenAI's. unknownField is
	// the error for other fields; without a status they are ignored.
	extraFields  []string
	unknownField Error

	// CallIDPattern matches valid call ids; nil accepts any. badCallID is the error for others.
	CallIDPattern *regexp.Regexp
	badCallID     Error
	// DuplicateCallID is the error for an id that occurs twice in a request.
	DuplicateCallID Error
	// makeCallID returns the id of a call; nil makes ids like OpenAI's.
	makeCallID func(seq, n int, name string) string

	// userAfterTool is the error for a user message right after a tool result.
	userAfterTool Error
	// undefinedRequired is the error for a schema that requires an undefined property.
	undefinedRequired Error
	// schemaError returns why a tool's schema is refused; "" if it is not. badSchema is the error, with the
	// reason in place of {problem}, the index of the tool in place of {i}, and its name in place of {name}.
	schemaError func(schema json.RawMessage) string
	badSchema   Error
	// NoTools is the error for tools, and for calls and results in messages. NoSystem is the error for a
	// system prompt, SeveralCalls the one for a reply with several calls.
	NoTools, NoSystem, SeveralCalls Error
	// NoPictures is the error for pictures.
	NoPictures Error
	// NoStreamOptions is the error for stream_options.
	NoStreamOptions Error

	// overflow is the error for a prompt larger than the context. overflowInStream sends it in the
	// stream. Truncates silently drops the oldest messages instead.
	overflow         Error
	overflowInStream bool
	Truncates        bool

	// encodeError returns the JSON of an error; nil means OpenAI's form. encodeStreamError returns an
	// error event of a stream; nil means an event with the same JSON.
	encodeError       func(e *Error) any
	encodeStreamError func(e *Error) string
	// ContentParts sends content as an array of parts. noCallIndex omits the index of a call, and ends a
	// reply with calls like one without. streamComments sends a comment line before a reply.
	ContentParts, noCallIndex, streamComments bool

	// ModelEntry has the fields of the model in the list of models, besides its id. Pages are the
	// contents of other paths. {model} and {context} are replaced. pageKey is the header with the key for them; empty
	// means Authorization.
	ModelEntry string
	Pages      map[string]string
	pageKey    string
}

// ReasoningStyle is the place of the reasoning in a reply.
type ReasoningStyle string

// The places of reasoning.
const (
	reasoningContent ReasoningStyle = "reasoning_content"
	reasoningText    ReasoningStyle = "reasoning"
	reasoningDetails ReasoningStyle = "reasoning_details"
	reasoningParts   ReasoningStyle = "content"
	ReasoningSigned  ReasoningStyle = "extra_content"
)

// ReasoningScope says which reasoning a service requires back.
type ReasoningScope string

// The reasoning of all replies with calls, or only of those of the current turn.
const (
	ScopeAll  ReasoningScope = "all"
	scopeTurn ReasoningScope = "turn"
)

// skipSignature stands for a signature that Gemini did not issue
// (ai.google.dev/gemini-api/docs/thought-signatures).
const skipSignature = "skip_thought_signature_validator"

// Thought returns the reasoning of a reply. It names the model, so that a test can recognize it.
func (p Profile) Thought(seq int) string {
	return "[" + p.Name + "] thinks " + strconv.Itoa(seq)
}

// ProfileByName returns the profile with the given name.
func ProfileByName(name string) (Profile, bool) {
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return profiles[i], true
}

// Profiles returns all known profiles.
func Profiles() []Profile { return slices.Clone(profiles) }

// basePath returns the path that precedes /chat/completions.
func (p *Profile) basePath() string {
	if u, err := url.Parse(p.URL); err == nil {
		return u.Path
	}
	return ""
}

// newError returns the error of a rule. values are pairs of a name in braces and its replacement.
func newError(rule Error, values ...string) *Error {
	e := rule
	e.Message = strings.NewReplacer(values...).Replace(e.Message)
	return &e
}

// isSet reports whether a rule is set.
func isSet(rule Error) bool { return rule.Status != 0 }

// rawMessage is a message with all its fields.
type rawMessage struct {
	fields map[string]json.RawMessage
	role   string
	calls  []rawCall
}

type rawCall struct {
	ID           string          `json:"id"`
	ExtraContent json.RawMessage `json:"extra_content"`
	Function     struct {
		Name string `json:"name"`
	} `json:"function"`
}

// checkSampling refuses a reasoning effort, in the given parameter, or a temperature that the model does not
// take. The wording is OpenAI's (codex #6647, chatwise #1257) and Kimi's (hermes #12404).
func (p *Profile) checkSampling(model, param, effort string, temperature *float64) *Error {
	if p.fixedTemperature != 0 && temperature != nil && *temperature != p.fixedTemperature {
		return invalid("", "", "invalid temperature: only %v is allowed for this model", p.fixedTemperature)
	}
	if p.efforts == nil || effort == "" || slices.Contains(p.efforts, effort) {
		return nil
	}
	list := "'" + strings.Join(p.efforts, "', '") + "'."
	if param == "reasoning_effort" {
		return invalid(param, "unsupported_value", "Unsupported value: 'reasoning_effort' does not support '%s' with this model. Supported values are: %s", effort, list)
	}
	return invalid(param, "unsupported_value", "Unsupported value: '%s' is not supported with the '%s' model. Supported values are: %s", effort, model, list)
}

// checkService refuses a request that OpenAI would accept but this service does not.
func (p *Profile) checkService(req *Request) *Error {
	if p.ResponsesOnly && len(req.Tools) > 0 {
		return invalid("reasoning_effort", "", "Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", req.Model)
	}
	if isSet(p.NoStreamOptions) && req.IncludeUsage {
		return newError(p.NoStreamOptions)
	}
	if isSet(p.NoTools) && len(req.Tools) > 0 {
		return newError(p.NoTools, "{model}", req.Model)
	}
	if e := p.checkSchemas(req.Tools); e != nil {
		return e
	}
	if isSet(p.undefinedRequired) {
		for i, t := range req.Tools {
			if path := undefinedProperty(t.Parameters, "parameters"); path != "" {
				return newError(p.undefinedRequired, "{i}", strconv.Itoa(i), "{path}", path)
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
		if e := p.checkOrder(req, messages, i); e != nil {
			return e
		}
		if e := p.checkAssistant(&messages[i], i, i > turn); e != nil {
			return e
		}
	}
	return p.checkCallIDs(messages)
}

// checkOrder checks the order of roles, and whether pictures are accepted.
func (p *Profile) checkOrder(req *Request, messages []rawMessage, i int) *Error {
	switch m := messages[i]; {
	case isSet(p.NoSystem) && m.role == "system":
		return newError(p.NoSystem)
	case isSet(p.SeveralCalls) && len(m.calls) > 1:
		return newError(p.SeveralCalls)
	case isSet(p.NoTools) && (len(m.calls) > 0 || m.role == "tool"):
		return newError(p.NoTools, "{model}", req.Model)
	}
	if isSet(p.userAfterTool) && i > 0 && messages[i].role == "user" && messages[i-1].role == "tool" {
		return newError(p.userAfterTool)
	}
	if isSet(p.NoPictures) && len(req.Messages[i].Pictures) > 0 {
		return newError(p.NoPictures, "{i}", strconv.Itoa(i), "{model}", req.Model)
	}
	return nil
}

// checkAssistant checks the fields of an assistant message, and the required reasoning.
func (p *Profile) checkAssistant(m *rawMessage, i int, inTurn bool) *Error {
	if m.role != "assistant" {
		return nil
	}
	values := []string{"{i}", strconv.Itoa(i)}
	for field := range m.fields {
		known := slices.Contains([]string{"role", "content", "tool_calls", "refusal", "name"}, field) || slices.Contains(p.extraFields, field)
		if isSet(p.unknownField) && !known {
			return newError(p.unknownField, append(values, "{field}", field)...)
		}
	}
	for _, c := range m.calls {
		if len(c.ExtraContent) > 0 && isSet(p.unknownField) && !slices.Contains(p.extraFields, "extra_content") {
			return newError(p.unknownField, append(values, "{field}", "extra_content")...)
		}
	}
	if len(m.calls) == 0 || p.RequiredReasoning == "" || p.RequiredReasoning == scopeTurn && !inTurn {
		return nil
	}
	if name := m.calls[0].Function.Name; !p.hasReasoning(m) {
		return newError(p.missingReasoning, append(values, "{name}", name)...)
	}
	return nil
}

// hasReasoning reports whether an assistant message with calls has the required reasoning.
func (p *Profile) hasReasoning(m *rawMessage) bool {
	own := func(s string) bool { return s == skipSignature || s == "signed by "+p.Name }
	switch p.Reasoning {
	case ReasoningSigned:
		var extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		}
		return json.Unmarshal(m.calls[0].ExtraContent, &extra) == nil && own(extra.Google.Signature)
	case reasoningDetails:
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
	_ = json.Unmarshal(m.fields[string(p.Reasoning)], &text)
	return strings.TrimSpace(text) != ""
}

// checkCallIDs checks the ids of all calls.
func (p *Profile) checkCallIDs(messages []rawMessage) *Error {
	seen := map[string]bool{}
	for i := range messages {
		for j, c := range messages[i].calls {
			values := []string{"{i}", strconv.Itoa(i), "{j}", strconv.Itoa(j), "{id}", c.ID, "{length}", strconv.Itoa(len(c.ID))}
			if p.CallIDPattern != nil && !p.CallIDPattern.MatchString(c.ID) {
				return newError(p.badCallID, values...)
			}
			if isSet(p.DuplicateCallID) && seen[c.ID] {
				return newError(p.DuplicateCallID, values...)
			}
			seen[c.ID] = true
		}
	}
	return nil
}

// undefinedProperty returns the path of a required but undefined property of a schema, or "".
func undefinedProperty(raw json.RawMessage, path string) string {
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
		if at := undefinedProperty(sub, path+"."+name); at != "" {
			return at
		}
	}
	return ""
}

// fitContext makes a prompt fit the context, or returns an error.
func (s *Server) fitContext(req *Request, size int) *Error {
	if size <= s.cfg.Context {
		return nil
	}
	p := &s.cfg.Profile
	if p.Truncates {
		req.Truncated = s.truncate(req, size)
		return nil
	}
	refused := newError(p.overflow, "{max}", strconv.Itoa(s.cfg.Context), "{n}", strconv.Itoa(size))
	refused.inStream = p.overflowInStream && req.Stream
	return refused
}

// truncate drops the oldest messages until the others fit, and returns the number of dropped ones.
func (s *Server) truncate(req *Request, size int) (gone int) {
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

// servePage serves the other paths of the service. It returns false for an unknown path.
func (s *Server) servePage(w http.ResponseWriter, path string) bool {
	for at, text := range s.cfg.Profile.Pages {
		if s.expand(at) == path {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(s.expand(text)))
			return true
		}
	}
	return false
}

// expand replaces the placeholders in a text of the profile.
func (s *Server) expand(text string) string {
	return strings.NewReplacer("{model}", s.cfg.Models[0], "{context}", strconv.Itoa(s.cfg.Context)).Replace(text)
}
