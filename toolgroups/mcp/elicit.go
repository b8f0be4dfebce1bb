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
	// maxOpened bounds the addresses that a server may have opened before one call.
	maxOpened = 3
	// maxAsking extends a call while people are asked: its own timeout is paused meanwhile.
	maxAsking = 24 * time.Hour
)

// askers are the users who can be asked on a connection: those for whom its calls run. The
// protocol does not say which call a question belongs to, so an ambiguous question is declined.
type askers struct {
	from string // the server's name for people

	mu    sync.Mutex
	calls map[*asker]bool
	opens map[string]chan struct{} // by elicitation id; closed when the server reports completion
}

// asker is a running call.
type asker struct {
	user, chat string
	// within returns the context of the call, which also ends with a request of the server.
	within func(request context.Context) (context.Context, context.CancelFunc)
	asks   bool // it waits for an answer
}

// enter registers a call; leave removes it.
func (a *askers) enter(ctx context.Context, call toolgroups.Call) (leave func()) {
	one := &asker{user: call.User, chat: call.Chat, within: func(request context.Context) (context.Context, context.CancelFunc) {
		asking, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(request, func() { cancel(context.Cause(request)) })
		return asking, func() { stop(); cancel(nil) }
	}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = make(map[*asker]bool)
	}
	a.calls[one] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.calls, one)
	}
}

// callOfQuestion returns the call to which a question belongs: one that waits for no answer. It is nil
// if calls for different users or in different chats qualify.
func (a *askers) callOfQuestion() *asker {
	a.mu.Lock()
	defer a.mu.Unlock()
	var one *asker
	for c := range a.calls {
		if c.asks {
			continue
		}
		if one != nil && (one.user != c.user || one.chat != c.chat) {
			return nil
		}
		one = c
	}
	if one != nil {
		one.asks = true
	}
	return one
}

func (a *askers) answered(one *asker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one.asks = false
}

// elicit answers a question of the server.
func (a *askers) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if !toolgroups.CanAsk(ctx) { // else it is the context of the call
		one := a.callOfQuestion()
		if one == nil {
			return &sdk.ElicitResult{Action: string(toolgroups.AnswerDecline)}, nil
		}
		defer a.answered(one)
		asking, end := one.within(ctx)
		defer end()
		ctx = asking
	}
	answer, err := a.ask(ctx, req.Params)
	if err != nil {
		return nil, err
	}
	return &sdk.ElicitResult{Action: string(answer.Action), Content: answer.Values}, nil
}

func (a *askers) ask(ctx context.Context, p *sdk.ElicitParams) (toolgroups.Answer, error) {
	q := toolgroups.Question{From: a.from, Text: p.Message, URL: p.URL}
	if p.URL != "" {
		done, end := a.open(p.ElicitationID)
		defer end()
		q.Done = done
	} else {
		fields, err := fieldsOf(p.RequestedSchema)
		if err != nil {
			return toolgroups.Answer{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		q.Fields = fields
	}
	answer, err := toolgroups.Ask(ctx, q)
	if answer.Action == toolgroups.AnswerAccept && q.URL == "" && answer.Values == nil {
		answer.Values = map[string]any{}
	}
	return answer, err
}

// open registers an elicitation whose completion the server will report.
func (a *askers) open(id string) (done <-chan struct{}, end func()) {
	if id == "" {
		return nil, func() {}
	}
	c := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opens == nil {
		a.opens = make(map[string]chan struct{})
	}
	a.opens[id] = c
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.opens[id] == c {
			delete(a.opens, id)
		}
	}
}

// completed handles that report.
func (a *askers) completed(_ context.Context, req *sdk.ElicitationCompleteNotificationRequest) {
	if req.Params == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, waits := a.opens[req.Params.ElicitationID]; waits {
		close(c)
		delete(a.opens, req.Params.ElicitationID)
	}
}

// opened asks the user of a call to open the address that the server requires, and reports
// whether to repeat the call.
func (a *askers) opened(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != sdk.CodeURLElicitationRequired {
		return false
	}
	var wanted struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &wanted) != nil || len(wanted.Elicitations) == 0 || len(wanted.Elicitations) > maxOpened {
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
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Default     any      `json:"default"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []choice `json:"oneOf"`
	Format      string   `json:"format"`
	Pattern     string   `json:"pattern"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
	MinLength   *float64 `json:"minLength"`
	MaxLength   *float64 `json:"maxLength"`
	MinItems    *float64 `json:"minItems"`
	MaxItems    *float64 `json:"maxItems"`
	Items       *struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
	} `json:"items"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// fieldsOf reads the schema of a form. The library loses the order of the fields: the required
// ones come first, in the order in which they are listed, then the others by name.
func fieldsOf(schema any) ([]toolgroups.Field, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("mcp: encode the schema of a form: %w", err)
	}
	var form struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, fmt.Errorf("mcp: the schema of a form does not decode: %w", err)
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
		f := form.Properties[name].field()
		f.Name, f.Required = name, slices.Contains(form.Required, name)
		fields = append(fields, f)
	}
	return fields, nil
}

func (p property) field() toolgroups.Field {
	f := toolgroups.Field{Title: p.Title, About: p.Description, Default: p.Default, Format: p.Format, Pattern: p.Pattern}
	values, titles, choices := p.Enum, p.EnumNames, p.OneOf
	switch p.Type {
	case "boolean":
		f.Type = toolgroups.FieldBoolean
	case "integer":
		f.Type, f.Least, f.Most = toolgroups.FieldInteger, p.Minimum, p.Maximum
	case "number":
		f.Type, f.Least, f.Most = toolgroups.FieldNumber, p.Minimum, p.Maximum
	case "array":
		f.Type, f.Least, f.Most = toolgroups.FieldChooseMany, p.MinItems, p.MaxItems
		if p.Items != nil {
			values, titles, choices = p.Items.Enum, nil, p.Items.AnyOf
		}
	default:
		f.Type, f.Least, f.Most = toolgroups.FieldText, p.MinLength, p.MaxLength
		if len(values)+len(choices) > 0 {
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
	for _, c := range choices {
		f.Choices = append(f.Choices, toolgroups.FieldChoice{Value: c.Const, Title: c.Title})
	}
	return f
}
