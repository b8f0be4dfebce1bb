package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// person is who is asked in a test, and answers at once.
type person struct {
	mu     sync.Mutex
	asked  []toolgroups.Question
	answer func(q toolgroups.Question) (toolgroups.Answer, error)
}

// context is one in which calls can ask them.
func (p *person) context(t testing.TB) context.Context {
	return toolgroups.WithAsker(t.Context(), func(ctx context.Context, q toolgroups.Question) (toolgroups.Answer, error) {
		p.mu.Lock()
		p.asked = append(p.asked, q)
		p.mu.Unlock()
		if p.answer == nil {
			<-ctx.Done()
			return toolgroups.Answer{}, context.Cause(ctx)
		}
		return p.answer(q)
	})
}

// says is an answer that accepts.
func says(values map[string]any) func(toolgroups.Question) (toolgroups.Answer, error) {
	return func(toolgroups.Question) (toolgroups.Answer, error) {
		return toolgroups.Answer{Action: toolgroups.AnswerAccept, Values: values}, nil
	}
}

// asks is a server whose tool asks, and tells what came of it; wrap changes it.
func asks(t *testing.T, params *sdk.ElicitParams) *mcp.Client {
	t.Helper()
	f := newFake()
	f.add(&sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		res, err := req.Session.Elicit(ctx, params)
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(res.Content)
		if err != nil {
			return nil, err
		}
		return say("%s %s", res.Action, content)
	})
	return old(t, f)
}

// old is a server that speaks the last protocol in which servers ask in the middle of a call.
func old(t *testing.T, f *fake) *mcp.Client {
	t.Helper()
	_, s := served(t, f, nil, &sdk.StreamableHTTPOptions{})
	f.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "server/discover" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not there"}
			}
			return next(ctx, method, req)
		}
	})
	return discovered(t, mcp.Config{}, s)
}

func object(fields map[string]*jsonschema.Schema, required ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: fields, Required: required}
}

func TestAServerAsksThePersonOfTheCall(t *testing.T) {
	c := asks(t, &sdk.ElicitParams{Message: "Who?", RequestedSchema: object(map[string]*jsonschema.Schema{
		"name": {Type: "string", Title: "Name", Description: "Yours", Format: "email"}, "ok": {Type: "boolean", Default: json.RawMessage("true")},
		"size": {Type: "integer"}, "kind": {Type: "string", Enum: []any{"a", "b"}},
		"many": {Type: "array", Items: &jsonschema.Schema{Type: "string", Enum: []any{"x", "y"}}},
	}, "size", "name")})
	p := &person{answer: says(map[string]any{"name": "a@example.com", "size": 3.0})}
	res, fault := run(t, p.context(t), c, "x_ask", nil, t.TempDir())
	if fault != nil || res.Text != `accept {"kind":null,"name":"a@example.com","ok":true,"size":3}` && res.Text != `accept {"name":"a@example.com","ok":true,"size":3}` {
		t.Fatalf("result %q, %v", res.Text, fault)
	}
	q := p.asked[0]
	if q.From != "x" || q.Text != "Who?" || len(q.Fields) != 5 {
		t.Fatalf("asked %+v", q)
	}
	var got []string
	for _, f := range q.Fields {
		got = append(got, f.Name+" "+string(f.Type))
	}
	if want := []string{"size integer", "name text", "kind choose", "many pick", "ok boolean"}; !slices.Equal(got, want) {
		t.Errorf("fields %q, want %q", got, want)
	}
	if f := q.Fields[1]; f.Title != "Name" || f.Description != "Yours" || f.Format != "email" || !f.Required {
		t.Errorf("field %+v", f)
	}
	if f := q.Fields[4]; f.Default != true || f.Required {
		t.Errorf("field %+v", f)
	}
}

// What the person leaves out is not sent, whatever the server suggests. Numbers keep their digits in both directions, with a question in a request and with one in a result.
func TestNumbersOfAQuestionKeepTheirDigits(t *testing.T) {
	const params = `{"_meta":null,"message":"Which?","requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":725653563933458433},"b":{"type":"integer"},"c":{"type":"number"}}}}`
	answers := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var q struct {
			request
			Result struct{ Content json.RawMessage }
			Params struct {
				InputResponses map[string]struct{ Content json.RawMessage }
			}
		}
		_ = json.Unmarshal(body, &q)
		id, _ := json.Marshal(q.ID)
		switch {
		case q.ID == "q":
			answers <- string(q.Result.Content)
			w.WriteHeader(http.StatusAccepted)
		case q.Method == "tools/call" && q.Params.InputResponses != nil:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer(string(id), string(q.Params.InputResponses["one"].Content)))
		case q.Method == "tools/call" && r.URL.Path == "/events":
			events(w)
			_, _ = fmt.Fprintf(w, "data: %s\n\n", `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":`+params+`}`)
			_ = http.NewResponseController(w).Flush()
			select {
			case got := <-answers:
				_, _ = fmt.Fprintf(w, "data: %s\n\n", answer(string(id), got))
			case <-r.Context().Done():
			}
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			script{"tools/call": {result(`{"resultType":"input_required","inputRequests":{"one":{"method":"elicitation/create","params":` + params + `}}}`)}}.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	for _, path := range []string{"/events", "/json"} {
		c := discovered(t, mcp.Config{}, mcp.Server{URL: web.URL + path})
		p := &person{answer: says(map[string]any{"b": json.Number("725653563933458435"), "c": json.Number("2.5")})}
		res, fault := run(t, p.context(t), c, "x_t", nil, "")
		if fault != nil {
			t.Fatal(fault)
		}
		if want := `{"b":725653563933458435,"c":2.5}`; res.Text != want {
			t.Errorf("%s: the server got %s, want %s", path, res.Text, want)
		}
		if got := p.asked[0].Fields[0].Default; got != json.Number("725653563933458433") {
			t.Errorf("%s: the default is %v", path, got)
		}
		must(t, c.Close())
	}
}

func TestAServerIsDeclinedWhereNobodyCanBeAsked(t *testing.T) {
	c := asks(t, &sdk.ElicitParams{Message: "Who?", RequestedSchema: object(nil)})
	if text := call(t, c, "x_ask", nil); text != "decline null" {
		t.Errorf("result %q", text)
	}
}

// On a connection that two people share, nobody sees what was meant for the other.
func TestAQuestionThatCouldBeForTwoPeopleIsPutToNobody(t *testing.T) {
	f := newFake()
	both := make(chan struct{}, 2)
	ask := make(chan struct{})
	f.add(&sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		both <- struct{}{}
		<-ask
		res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Who?", RequestedSchema: object(nil)})
		if err != nil {
			return nil, err
		}
		both <- struct{}{}
		return say("%s", res.Action)
	})
	c := old(t, f)
	p := &person{answer: says(nil)}
	results := make(chan string, 2)
	for _, user := range []string{"fake:1", "fake:2"} {
		go func() {
			res, _ := toolgroups.Run(p.context(t), nil, find(t, c, "x_ask"), toolgroups.Call{
				ID: "1", Name: "x_ask", Arguments: json.RawMessage("{}"), Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin, User: user, Chat: user},
			})
			results <- res.Text
		}()
	}
	<-both
	<-both
	ask <- struct{}{} // one asks while both run
	<-both
	if got := <-results; got != "decline" || len(p.asked) > 0 {
		t.Errorf("%q, asked %v", got, p.asked)
	}
	close(ask) // the other runs alone by now
	if got := <-results; got != "accept" {
		t.Errorf("the other: %q", got)
	}
}

// as runs a tool for a user, in the background.
func as(t *testing.T, ctx context.Context, c *mcp.Client, user, name string) <-chan toolgroups.Result {
	t.Helper()
	tool, ended := find(t, c, name), make(chan toolgroups.Result, 1)
	go func() {
		res, _ := toolgroups.Run(ctx, nil, tool, toolgroups.Call{
			ID: "1", Name: name, Arguments: json.RawMessage("{}"), Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin, User: user, Chat: user},
		})
		ended <- res
	}()
	return ended
}

// A call may ask twice, and a server may ask for a call that was stopped: a call of another user that
// happens to run is not theirs.
func TestAQuestionForOneCallIsNotPutToTheUserOfAnother(t *testing.T) {
	t.Parallel()
	f, came, go1, go2 := newFake(), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	ask := func(ctx context.Context, req *sdk.CallToolRequest, text string) string {
		res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: text, RequestedSchema: object(nil)})
		if err != nil {
			return err.Error()
		}
		return res.Action
	}
	late, stopped := make(chan struct{}), make(chan string)
	f.add(&sdk.Tool{Name: "twice_asked"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		go ask(ctx, req, "First?")
		<-go1
		return say("%s", ask(ctx, req, "Second?"))
	})
	f.add(&sdk.Tool{Name: "stopped"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		came <- struct{}{}
		<-ctx.Done()
		for range late {
			stopped <- ask(t.Context(), req, "Late?")
		}
		return nil, ctx.Err()
	})
	f.add(&sdk.Tool{Name: "other"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		came <- struct{}{}
		<-go2
		return say("done")
	})
	_, s := served(t, f, nil, nil)
	var now clock
	c := discovered(t, mcp.Config{Now: now.now}, s)
	first := make(chan struct{})
	one := &person{answer: func(q toolgroups.Question) (toolgroups.Answer, error) {
		if q.Text == "First?" {
			close(first)
			<-go2
		}
		return toolgroups.Answer{Action: toolgroups.AnswerAccept}, nil
	}}
	two := &person{answer: says(nil)}

	asked := as(t, one.context(t), c, "fake:1", "x_twice_asked")
	<-first
	other := as(t, two.context(t), c, "fake:2", "x_other")
	<-came
	close(go1)
	if res := <-asked; res.Text != "decline" || len(two.asked) > 0 {
		t.Errorf("the second question got %q, and the other user was asked %v", res.Text, two.asked)
	}

	ctx, cancel := context.WithCancel(one.context(t))
	ended := as(t, ctx, c, "fake:1", "x_stopped")
	<-came
	cancel()
	<-ended
	late <- struct{}{}
	if got := <-stopped; got != "decline" || len(two.asked) > 0 {
		t.Errorf("the question for the stopped call got %q, and the other user was asked %v", got, two.asked)
	}
	now.pass(6 * time.Minute) // a server has noticed by then
	late <- struct{}{}
	if got := <-stopped; got != "accept" || len(two.asked) != 1 {
		t.Errorf("a question after six minutes got %q, and the user was asked %v", got, two.asked)
	}
	close(late)
	close(go2)
	<-other
	must(t, c.Close())
}

// With the newest protocol a server does not wait: the call is made again with the answers.
func TestACallIsMadeAgainWithTheAnswers(t *testing.T) {
	f := newFake()
	f.add(&sdk.Tool{Name: "ask"}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if req.Params.InputResponses == nil {
			return &sdk.CallToolResult{RequestState: "half", InputRequests: sdk.InputRequestMap{
				"who": &sdk.ElicitParams{Message: "Who?", RequestedSchema: object(map[string]*jsonschema.Schema{"name": {Type: "string"}})},
			}}, nil
		}
		res, ok := req.Params.InputResponses["who"].(*sdk.ElicitResult)
		if !ok {
			return say("no answer")
		}
		return say("%s %s %v", req.Params.RequestState, res.Action, slices.Sorted(maps.Keys(res.Content)))
	})
	_, s := served(t, f, nil, &sdk.StreamableHTTPOptions{Stateless: true})
	c := discovered(t, mcp.Config{}, s)
	p := &person{answer: says(map[string]any{"name": "Ann"})}
	if res, fault := run(t, p.context(t), c, "x_ask", nil, t.TempDir()); fault != nil || res.Text != "half accept [name]" {
		t.Errorf("%q, %v", res.Text, fault)
	}
}

func TestAnAddressIsOpenedAndTheCallGoesOn(t *testing.T) {
	f := newFake()
	session := make(chan *sdk.ServerSession, 1) // that of the call: the one of the discovery may be about to end
	f.add(&sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		session <- req.Session
		res, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Mode: "url", Message: "Pay", URL: "https://pay.example.com/1", ElicitationID: "e1"})
		if err != nil {
			return nil, err
		}
		return say("%s %v", res.Action, res.Content == nil)
	})
	paid := false
	f.add(&sdk.Tool{Name: "first"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if !paid {
			return nil, sdk.URLElicitationRequiredError([]*sdk.ElicitParams{{Mode: "url", Message: "Pay", URL: "https://pay.example.com/2", ElicitationID: "e2"}})
		}
		return say("thanks")
	})
	c := old(t, f)
	// The server says that it is done, which ends the wait.
	p := &person{answer: func(q toolgroups.Question) (toolgroups.Answer, error) {
		if err := (<-session).NotifyElicitationComplete(t.Context(), &sdk.ElicitationCompleteParams{ElicitationID: "e1"}); err != nil {
			return toolgroups.Answer{}, err
		}
		<-q.Done
		return toolgroups.Answer{Action: toolgroups.AnswerAccept}, nil
	}}
	if res, fault := run(t, p.context(t), c, "x_ask", nil, t.TempDir()); fault != nil || res.Text != "accept true" || p.asked[0].URL != "https://pay.example.com/1" {
		t.Errorf("%q, %v, %+v", res.Text, fault, p.asked)
	}
	p = &person{answer: func(toolgroups.Question) (toolgroups.Answer, error) {
		paid = true
		return toolgroups.Answer{Action: toolgroups.AnswerAccept}, nil
	}}
	if res, fault := run(t, p.context(t), c, "x_first", nil, t.TempDir()); fault != nil || res.Text != "thanks" || p.asked[0].URL != "https://pay.example.com/2" {
		t.Errorf("%q, %v, %+v", res.Text, fault, p.asked)
	}
	paid = false
	p = &person{answer: func(toolgroups.Question) (toolgroups.Answer, error) {
		return toolgroups.Answer{Action: toolgroups.AnswerDecline}, nil
	}}
	if _, fault := run(t, p.context(t), c, "x_first", nil, t.TempDir()); fault == nil || fault.Code != toolgroups.CodeExecution {
		t.Errorf("declined: %v", fault)
	}
}

func TestAQuestionThatIsTakenBackEndsAndTheCallGoesOn(t *testing.T) {
	f := newFake()
	asked := make(chan struct{})
	f.add(&sdk.Tool{Name: "ask"}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		waits, cancel := context.WithCancel(ctx)
		go func() { <-asked; cancel() }()
		_, err := req.Session.Elicit(waits, &sdk.ElicitParams{Message: "Who?", RequestedSchema: object(nil)})
		return say("went on: %v", err != nil)
	})
	c := old(t, f)
	ended := make(chan struct{})
	ctx := toolgroups.WithAsker(t.Context(), func(ctx context.Context, _ toolgroups.Question) (toolgroups.Answer, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return toolgroups.Answer{}, context.Cause(ctx)
	})
	if res, fault := run(t, ctx, c, "x_ask", nil, t.TempDir()); fault != nil || res.Text != "went on: true" {
		t.Errorf("%q, %v", res.Text, fault)
	}
	<-ended
}

func TestRealServerEverythingAsks(t *testing.T) {
	t.Parallel()
	node, script := installed(t, "server-everything")
	c := discovered(t, mcp.Config{}, mcp.Server{Command: node, Args: []string{script}})
	p := &person{answer: says(map[string]any{"name": "Ann", "check": true, "integer": 7.0})}
	res, fault := run(t, p.context(t), c, "x_trigger-elicitation-request", nil, t.TempDir())
	if fault != nil || !strings.Contains(res.Text, "- Name: Ann") || !strings.Contains(res.Text, "- Agreed to terms: true") || !strings.Contains(res.Text, "- Favorite Integer: 7") {
		t.Fatalf("%q, %v", res.Text, fault)
	}
	if q := p.asked[0]; len(q.Fields) != 13 || q.Fields[0].Name != "name" || !q.Fields[0].Required {
		t.Errorf("asked %+v", q)
	}
	p = &person{answer: says(nil)}
	for _, path := range []bool{false, true} {
		res, fault = run(t, p.context(t), c, "x_trigger-url-elicitation", map[string]any{"url": "https://example.com/x", "errorPath": path}, t.TempDir())
		if fault != nil || !strings.Contains(res.Text, "User completed the URL elicitation flow") {
			t.Errorf("url: %q, %v", res.Text, fault)
		}
	}
	var opened []string
	for _, q := range p.asked {
		opened = append(opened, q.URL)
	}
	if want := []string{"https://example.com/x", "https://modelcontextprotocol.io", "https://example.com/x"}; !slices.Equal(opened, want) {
		t.Errorf("opened %q", opened)
	}
}
