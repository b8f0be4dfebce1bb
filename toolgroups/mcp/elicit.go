package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
)

const (
	// maxURLs bounds the addresses that a server can require the user to open for one call.
	maxURLs = 3
	// maxAsking extends the time of a call whose own timeout is paused while a user is asked.
	maxAsking = 24 * time.Hour
	// abandonedTime is how long a question may still belong to a call that ended without the server's
	// answer.
	abandonedTime = 5 * time.Minute
)

// askers holds the calls on a connection to which a question may belong: those that run, and for a
// while those that ended without the server's answer. The protocol does not say which call a question
// belongs to, so an ambiguous question is declined.
type askers struct {
	serverName string // the server's name, shown to users
	now        func() time.Time

	mu          sync.Mutex
	calls       map[*asker]bool
	pendingURLs map[string]chan struct{} // by elicitation id; closed when the server reports its completion
}

// asker is a call whose user can be asked while it runs.
type asker struct {
	user, chat string
	// newContext returns a context that ends with the call or with a request from the server.
	newContext func(request context.Context) (context.Context, context.CancelFunc)
	isAsking   bool      // the user is being asked
	abandoned  time.Time // when the call ended without the server's answer; zero while it runs
}

// addCall registers a call. end is called when it ends, answered by the server or not.
func (a *askers) addCall(ctx context.Context, call toolgroups.Call) (end func(answered bool)) {
	one := &asker{user: call.User, chat: call.Chat, newContext: func(request context.Context) (context.Context, context.CancelFunc) {
		asking, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(request, func() { cancel(context.Cause(request)) })
		return asking, func() { stop(); cancel(nil) }
	}}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropAbandoned()
	if a.calls == nil {
		a.calls = make(map[*asker]bool)
	}
	a.calls[one] = true
	return func(answered bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if one.abandoned = a.now(); answered {
			delete(a.calls, one)
		}
	}
}

// dropAbandoned drops calls that have been abandoned for long. The lock must be held.
func (a *askers) dropAbandoned() {
	maps.DeleteFunc(a.calls, func(c *asker, _ bool) bool {
		return !c.abandoned.IsZero() && a.now().Sub(c.abandoned) > abandonedTime
	})
}

// takeCallForQuestion returns the running call to which a question belongs, and marks it as being
// asked. It returns nil if no call is free, or if the question may belong to a call of another user or
// in another chat, also one that is being asked.
func (a *askers) takeCallForQuestion() *asker {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropAbandoned()
	var free, other *asker
	for c := range a.calls {
		if other != nil && (other.user != c.user || other.chat != c.chat) {
			return nil
		}
		if other = c; !c.isAsking && c.abandoned.IsZero() {
			free = c
		}
	}
	if free != nil {
		free.isAsking = true
	}
	return free
}

func (a *askers) releaseCall(one *asker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one.isAsking = false
}

// elicit answers a question that the server asks in a request of its own.
func (a *askers) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	one := a.takeCallForQuestion()
	if one == nil {
		return &sdk.ElicitResult{Action: string(toolgroups.AnswerDecline)}, nil
	}
	defer a.releaseCall(one)
	asking, cancel := one.newContext(ctx)
	defer cancel()
	return a.answer(asking, req.Params)
}

// answerAll answers the questions in the result of a call, one after another.
func (a *askers) answerAll(ctx context.Context, questions sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	answers := make(sdk.InputResponseMap, len(questions))
	for _, id := range slices.Sorted(maps.Keys(questions)) {
		p, ok := questions[id].(*sdk.ElicitParams)
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "it asked for something other than the user's answers"}
		}
		answer, err := a.answer(ctx, p)
		if err != nil {
			return nil, err
		}
		answers[id] = answer
	}
	return answers, nil
}

func (a *askers) answer(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	answer, err := a.ask(ctx, p)
	if err != nil {
		return nil, err
	}
	return &sdk.ElicitResult{Action: string(answer.Action), Content: wireValues(answer.Values)}, nil
}

// wireValues returns values for the library, which does not know json.Number.
func wireValues(values toolgroups.Values) map[string]any {
	if values == nil {
		return nil
	}
	out := make(map[string]any, len(values))
	for name, value := range values {
		out[name] = value
		if n, ok := value.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				out[name] = i
			} else if f, err := n.Float64(); err == nil {
				out[name] = f
			}
		}
	}
	return out
}

func (a *askers) ask(ctx context.Context, p *sdk.ElicitParams) (toolgroups.Answer, error) {
	q := toolgroups.Question{From: a.serverName, Text: p.Message, URL: p.URL}
	if p.URL != "" {
		done, end := a.registerURL(p.ElicitationID)
		defer end()
		q.Done = done
	} else {
		fields, err := parseFields(unpackForm(p))
		if err != nil {
			return toolgroups.Answer{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		q.Fields = fields
	}
	return toolgroups.Ask(ctx, q)
}

// registerURL registers an elicitation whose completion the server will report; end removes it.
func (a *askers) registerURL(id string) (done <-chan struct{}, end func()) {
	if id == "" {
		return nil, func() {}
	}
	c := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pendingURLs == nil {
		a.pendingURLs = make(map[string]chan struct{})
	}
	a.pendingURLs[id] = c
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.pendingURLs[id] == c {
			delete(a.pendingURLs, id)
		}
	}
}

// handleComplete handles the report that an elicitation is complete.
func (a *askers) handleComplete(_ context.Context, req *sdk.ElicitationCompleteNotificationRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, waits := a.pendingURLs[req.Params.ElicitationID]; waits {
		close(c)
		delete(a.pendingURLs, req.Params.ElicitationID)
	}
}

// askToOpenURLs asks the user of a call to open the addresses that the server requires, and reports
// whether to repeat the call.
func (a *askers) askToOpenURLs(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != sdk.CodeURLElicitationRequired {
		return false
	}
	var wanted struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &wanted) != nil || len(wanted.Elicitations) == 0 || len(wanted.Elicitations) > maxURLs {
		return false
	}
	for _, p := range wanted.Elicitations {
		if p == nil || p.URL == "" {
			return false
		}
		if answer, err := a.ask(ctx, p); err != nil || answer.Action != toolgroups.AnswerAccept {
			return false
		}
	}
	return true
}

// property is a field in a form's schema.
type property struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	// Default keeps the digits of a number.
	Default   json.RawMessage `json:"default"`
	Enum      []string        `json:"enum"`
	EnumNames []string        `json:"enumNames"`
	OneOf     []choice        `json:"oneOf"`
	Format    string          `json:"format"`
	Pattern   string          `json:"pattern"`
	Minimum   *float64        `json:"minimum"`
	Maximum   *float64        `json:"maximum"`
	MinLength *float64        `json:"minLength"`
	MaxLength *float64        `json:"maxLength"`
	MinItems  *float64        `json:"minItems"`
	MaxItems  *float64        `json:"maxItems"`
	Items     *struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
	} `json:"items"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// parseFields parses the schema of a form. Because the library loses the order of the fields, the
// required ones come first, in the order in which they are listed, then the others by name.
func parseFields(schema any) ([]toolgroups.Field, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("mcp: encode the schema of a form: %w", err)
	}
	var form struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, fmt.Errorf("mcp: decode the schema of a form: %w", err)
	}
	names := slices.Sorted(maps.Keys(form.Properties))
	rank := func(name string) int {
		if i := slices.Index(form.Required, name); i >= 0 {
			return i
		}
		return len(form.Required)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var fields []toolgroups.Field
	for _, name := range names {
		p := form.Properties[name]
		if slices.Contains(p.choices(), choice{}) {
			return nil, fmt.Errorf("mcp: a choice in the field %q of a form has no value", clean(name, maxName))
		}
		f := p.toField()
		f.Name, f.Required = name, slices.Contains(form.Required, name)
		fields = append(fields, f)
	}
	return fields, nil
}

// choices returns the choices that have titles.
func (p property) choices() []choice {
	if p.Type == "array" && p.Items != nil {
		return p.Items.AnyOf
	}
	return p.OneOf
}

func (p property) toField() toolgroups.Field {
	f := toolgroups.Field{Title: p.Title, Description: p.Description, Default: valueOf(p.Default), Format: p.Format, Pattern: p.Pattern}
	values, titles := p.Enum, p.EnumNames
	switch p.Type {
	case "boolean":
		f.Type = toolgroups.FieldBoolean
	case "integer":
		f.Type, f.Min, f.Max = toolgroups.FieldInteger, p.Minimum, p.Maximum
	case "number":
		f.Type, f.Min, f.Max = toolgroups.FieldNumber, p.Minimum, p.Maximum
	case "array":
		f.Type, f.Min, f.Max = toolgroups.FieldChooseMany, p.MinItems, p.MaxItems
		if p.Items != nil {
			values, titles = p.Items.Enum, nil
		}
	default:
		f.Type, f.Min, f.Max = toolgroups.FieldText, p.MinLength, p.MaxLength
		if len(values)+len(p.choices()) > 0 {
			f.Type = toolgroups.FieldChooseOne
		}
	}
	for i, v := range values {
		c := toolgroups.FieldChoice{Value: v}
		if i < len(titles) {
			c.Title = titles[i]
		}
		f.Choices = append(f.Choices, c)
	}
	for _, c := range p.choices() {
		f.Choices = append(f.Choices, toolgroups.FieldChoice{Value: c.Const, Title: c.Title})
	}
	return f
}
