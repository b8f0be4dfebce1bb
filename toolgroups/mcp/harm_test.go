package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// form is the schema of a form with one field.
func form(field string) string { return `{"type":"object","properties":{"a":` + field + `}}` }

// harmfulFields are fields of forms at which the library panics.
var harmfulFields = map[string]string{
	"a choice that is null":            `{"type":"string","oneOf":[null]}`,
	"a choice of several that is null": `{"type":"array","items":{"anyOf":[{"const":"x","title":"X"},null]}}`,
}

// harmfulMessages are messages from a server at which the library panics, some with a lock held.
func harmfulMessages() map[string]string {
	all := map[string]string{
		"a question without parameters":         `{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}`,
		"a question with null for parameters":   `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":null}`,
		"a completion without parameters":       `{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}`,
		"a completion with null for parameters": `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}`,
	}
	for name, field := range harmfulFields {
		all[name] = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":` + form(field) + `}}`
	}
	return all
}

// One line of a server ended the process: the library handles messages in goroutines of its own.
func TestAHarmfulMessageEndsNothing(t *testing.T) {
	t.Parallel()
	for name, message := range harmfulMessages() {
		t.Run(name, func(t *testing.T) {
			program := raw(t, `[{"name":"echo","inputSchema":{"type":"object"}}]`)
			program.Env["RAW_MESSAGE"] = redact.Secret(message)
			answered := make(chan string, 10)
			l := &liar{call: func(w http.ResponseWriter, r *http.Request, id string) {
				events(w)
				_, _ = fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", message, lastMessage)
				_ = http.NewResponseController(w).Flush()
				for got := ""; !strings.Contains(got, `"last"`); {
					select {
					case got = <-answered:
					case <-r.Context().Done():
						return
					}
				}
				_, _ = fmt.Fprintf(w, "data: %s\n\n", answer(id, "done"))
			}, answered: answered}
			l.tools.Store(`[{"name":"echo","inputSchema":{"type":"object"}}]`)
			srv := httptest.NewServer(l)
			t.Cleanup(srv.Close)
			for kind, s := range map[string]mcp.Server{"stdio": program, "http": {URL: srv.URL + "/mcp"}} {
				c := discovered(t, mcp.Config{}, s)
				for range 2 {
					if got := call(t, c, "x_echo", nil); got != "done" {
						t.Errorf("%s: %q", kind, got)
					}
				}
				must(t, c.Close())
			}
		})
	}
}

// With the newest protocol the questions are in the result of the call.
func TestAHarmfulQuestionInAResultFailsTheCallAlone(t *testing.T) {
	t.Parallel()
	for name, field := range harmfulFields {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.add(&sdk.Tool{Name: "ask"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{
					"who": &sdk.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(form(field))},
				}}, nil
			})
			_, s := served(t, f, nil, &sdk.StreamableHTTPOptions{Stateless: true})
			c := discovered(t, mcp.Config{}, s)
			fails(t, c, "x_ask", toolgroups.CodeExecution, "has no value")
			call(t, c, "x_echo", nil)
			must(t, c.Close())
		})
	}
}

func TestAServerThatNeverEndsAskingIsGivenUp(t *testing.T) {
	t.Parallel()
	f, asked := newFake(), 0
	f.add(&sdk.Tool{Name: "ask"}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		asked++
		return &sdk.CallToolResult{RequestState: "more", InputRequests: sdk.InputRequestMap{}}, nil
	})
	_, s := served(t, f, nil, &sdk.StreamableHTTPOptions{Stateless: true})
	c := discovered(t, mcp.Config{}, s)
	fails(t, c, "x_ask", toolgroups.CodeExecution, "it asked for answers 10 times")
	if asked != 10 {
		t.Errorf("it was called %d times", asked)
	}
	must(t, c.Close())
}
