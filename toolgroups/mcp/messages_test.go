package mcp_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// script is what a server says to each method, one message a line. In it $id stands for the id of the call,
// and $text for the id as a text.
type script map[string][]string

// scriptVariable has the script of a child.
const scriptVariable = "ONECLAW_TEST_MCP_SCRIPT"

// answers returns what the script says to a call.
func (s script) answers(q request) []string {
	lines, ok := s[q.Method]
	if !ok {
		result := map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}`,
			"tools/list": `"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
		}[q.Method]
		if result == "" {
			result = `"error":{"code":-32601,"message":"no such method"}`
		}
		lines = []string{`{"jsonrpc":"2.0","id":$id,` + result + `}`}
	}
	id, _ := json.Marshal(q.ID)
	var out []string
	for _, line := range lines {
		out = append(out, strings.NewReplacer("$id", string(id), "$text", `"`+string(id)+`"`).Replace(line))
	}
	return out
}

// runScript runs the script of the environment. The line "exit" ends it.
func runScript(r io.Reader, w io.Writer) int {
	var s script
	if json.Unmarshal([]byte(os.Getenv(scriptVariable)), &s) != nil {
		return 9
	}
	in := bufio.NewScanner(r)
	for in.Scan() {
		var q request
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		for _, line := range s.answers(q) {
			if line == "exit" {
				return 1
			}
			_, _ = fmt.Fprintln(w, line)
		}
	}
	return 0
}

// ServeHTTP answers with events, or at /json with the last message.
func (s script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if q.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	lines := s.answers(q)
	if r.URL.Path == "/json" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, lines[len(lines)-1])
		return
	}
	events(w)
	for _, line := range lines {
		_, _ = fmt.Fprintf(w, ": comment\nunknown\ndata: %s\r\n\r\n", line)
	}
}

// everywhere returns servers that run a script, by their transport.
func (s script) everywhere(t *testing.T) map[string]mcp.Server {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return map[string]mcp.Server{"program": s.program(t), "events": {URL: srv.URL + "/events"}, "json": {URL: srv.URL + "/json"}}
}

func (s script) program(t *testing.T) mcp.Server {
	t.Helper()
	data, err := json.Marshal(s)
	must(t, err)
	p := child(t, "script")
	p.Env[scriptVariable] = redact.Secret(data)
	return p
}

// result is an answer to a call.
func result(content string) string { return `{"jsonrpc":"2.0","id":$id,"result":` + content + `}` }

// One part of a result that cannot be read takes neither the rest nor the connection with it.
func TestEveryPartOfAResultThatCanBeReadReachesTheModel(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString([]byte(png))
	for name, tc := range map[string]struct{ result, want string }{
		"large numbers":                   {`{"content":[{"type":"text","text":"memory 725653563933458433"}],"structuredContent":{"memory_id":725653563933458433}}`, "memory 725653563933458433"},
		"large numbers in structure":      {`{"content":[],"structuredContent":{"a":725653563933458433,"b":[0.1000000000000000055,1e400,18446744073709551615]}}`, `{"a":725653563933458433,"b":[0.1000000000000000055,1e400,18446744073709551615]}`},
		"numbers that differ at the end":  {`{"content":[{"type":"text","text":"725653563933458432"}],"structuredContent":{"id":725653563933458433}}`, "725653563933458432\n\n" + `{"id":725653563933458433}`},
		"a number in another form":        {`{"content":[{"type":"text","text":"7 degrees"}],"structuredContent":{"n":7.0}}`, "7 degrees"},
		"a text that is the structure":    {`{"content":[{"type":"text","text":"{\"id\": 725653563933458433}"}],"structuredContent":{"id":725653563933458433}}`, `{"id": 725653563933458433}`},
		"json":                            {`{"content":[{"type":"text","text":"good"},{"type":"json","json":{"id":725653563933458433}}]}`, "good\n\n" + `[content of the kind "json", which is not known here] {"json":{"id":725653563933458433},"type":"json"}`},
		"an error among the content":      {`{"content":[{"type":"error","error":"no such row"},{"type":"text","text":"good"}]}`, `[content of the kind "error", which is not known here] {"error":"no such row","type":"error"}` + "\n\ngood"},
		"a picture as a data URL":         {`{"content":[{"type":"image","mimeType":"image/png","data":"data:image/png;base64,` + encoded + `"}]}`, "[picture saved as mcp/x/t-02a3e298.png, 16 bytes]"},
		"a picture in lines":              {`{"content":[{"type":"image","data":"` + encoded[:8] + `\n` + strings.TrimRight(encoded[8:], "=") + `"}]}`, "[picture saved as mcp/x/t-02a3e298.png, 16 bytes]"},
		"a picture by its address":        {`{"content":[{"type":"image","mimeType":"image/png","data":"https://example.com/a.png"},{"type":"text","text":"good"}]}`, "[picture at https://example.com/a.png]\n\ngood"},
		"a broken picture":                {`{"content":[{"type":"image","mimeType":"image/png","data":"?"},{"type":"audio","data":7},{"type":"text","text":"good"}]}`, "[picture that cannot be read: its data is not base64]\n\n[audio, 0 bytes, not kept: it is empty]\n\ngood"},
		"a broken resource":               {`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"?"}},{"type":"resource","resource":7},{"type":"resource","resource":{"uri":7,"text":"in"}}]}`, "[resource a:b that cannot be read: its data is not base64]\n\n" + `[content of the kind "resource", which is not known here] {"resource":7,"type":"resource"}` + "\n\n[resource ]\nin"},
		"null and texts among the pieces": {`{"content":[null,"plain",7,{"text":"no type"},{"type":"text","text":{"a":1}}]}`, "\n\nplain\n\n7\n\nno type\n\n" + `{"a":1}`},
		"one piece without a list":        {`{"content":{"type":"text","text":"good"}}`, "good"},
		"content that is a text":          {`{"content":"good"}`, "good"},
		"the form of the first version":   {`{"toolResult":{"id":725653563933458433}}`, `{"id":725653563933458433}`},
		"a text in that form":             {`{"toolResult":"good"}`, "good"},
		"only a text":                     {`"good"`, "good"},
		"only a list":                     {`[1,2]`, "[1,2]"},
		"something else":                  {`{"_meta":{},"answer":42}`, `{"answer":42}`},
		"null":                            {`null`, "Done. The server returned nothing."},
		"deep structure":                  {`{"content":[{"type":"text","text":"good"}],"structuredContent":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, "good\n\n" + strings.Repeat("[", 2000) + strings.Repeat("]", 2000)},
		"meta that is no object":          {`{"content":[{"type":"text","text":"good","annotations":7,"_meta":[]}],"_meta":7,"isError":"false"}`, "good"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, s := range (script{"tools/call": {result(tc.result)}}).everywhere(t) {
				c := discovered(t, mcp.Config{}, s)
				for range 2 {
					if got := call(t, c, "x_t", nil); got != tc.want {
						t.Errorf("%s: got %q, want %q", kind, got, tc.want)
					}
				}
				if !c.Status()[0].Connected {
					t.Errorf("%s: the connection was ended", kind)
				}
				must(t, c.Close())
			}
		})
	}
}

// Programs write their logs where their messages belong; only messages count.
func TestWhatIsNoMessageIsSkipped(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"logs in JSON":          {`{"level":30,"msg":"calling"}`, `["a","b"]`, `[]`, `"text"`, `7`, result(`{"content":"good"}`)},
		"an error for nothing":  {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, result(`{"content":"good"}`)},
		"another version":       {`{"jsonrpc":"1.0","id":$id,"result":{"content":"wrong"}}`, `{"id":$id,"result":{"content":"wrong"}}`, result(`{"content":"good"}`)},
		"a method that is none": {`{"jsonrpc":"2.0","method":7}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, result(`{"content":"good"}`)},
		"odd notifications": {
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[],"progress":"x"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":[]}`,
			`{"jsonrpc":"2.0","method":"no/such","params":"x"}`, `{"jsonrpc":"2.0","id":"z","method":"no/such"}`, `{"jsonrpc":"2.0","id":"y","method":"ping","params":[1]}`,
			`{"jsonrpc":"2.0","id":"w","method":"elicitation/create","params":[]}`, `{"jsonrpc":"2.0","id":9e99,"method":"ping"}`, `{"jsonrpc":"2.0","method":""}`,
			result(`{"content":"good"}`),
		},
		"answers to nothing":      {`{"jsonrpc":"2.0","id":4711,"result":{}}`, `{"jsonrpc":"2.0","id":"other","result":{}}`, `{"jsonrpc":"2.0","result":{}}`, result(`{"content":"good"}`)},
		"the id as a text":        {`{"jsonrpc":"2.0","id":$text,"result":{"content":"good"}}`},
		"the id with a point":     {`{"jsonrpc":"2.0","id":$id.0,"result":{"content":"good"}}`},
		"a list of messages":      {`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},` + result(`{"content":"good"}`) + `]`},
		"a mark before the first": {"\ufeff" + result(`{"content":"good"}`)},
		"no result":               {`{"jsonrpc":"2.0","id":$id,"result":{"content":"good"},"error":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, s := range (script{"tools/call": lines}).everywhere(t) {
				c := discovered(t, mcp.Config{}, s)
				for range 2 {
					if got := call(t, c, "x_t", nil); got != "good" {
						t.Errorf("%s: got %q", kind, got)
					}
				}
				if !c.Status()[0].Connected {
					t.Errorf("%s: the connection was ended", kind)
				}
				must(t, c.Close())
			}
		})
	}
}

// A server that logs before it is ready is as good as any other, as is one whose ids are texts everywhere.
func TestAServerMayLogAndAnswerWithTextsFromTheStart(t *testing.T) {
	t.Parallel()
	s := script{
		"server/discover": {`{"level":30}`, `{"jsonrpc":"2.0","id":$text,"error":{"code":-32601,"message":"no"}}`},
		"initialize":      {`{"level":30}`, `{"jsonrpc":"2.0","id":$text,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":7},"serverInfo":"x","instructions":["a"]}}`},
		"tools/list":      {`{"level":30}`, `{"jsonrpc":"2.0","id":$text,"result":{"tools":[{"name":"t"}],"nextCursor":null,"_meta":3}}`},
		"tools/call":      {`{"jsonrpc":"2.0","id":$text,"result":{"content":"good"}}`},
	}
	for _, version := range []string{"2025-06-18", "2024-10-07"} {
		s["initialize"][1] = strings.Replace(s["initialize"][1], "2025-06-18", version, 1)
		for kind, server := range s.everywhere(t) {
			c := discovered(t, mcp.Config{RetryDelay: time.Hour, MaxRetryDelay: time.Hour}, server)
			if got := call(t, c, "x_t", nil); got != "good" {
				t.Errorf("%s: got %q", kind, got)
			}
			must(t, c.Close())
		}
	}
}

// streams is a server whose answers come in the stream of events of their session.
type streams struct {
	script
	old      bool // HTTP with SSE of version 2024-11-05, whose first event names the address of the session
	last     atomic.Int32
	sessions sync.Map // from a name to a channel of messages
}

func (s *streams) begin() (name string, messages chan string) {
	name, messages = fmt.Sprint(s.last.Add(1)), make(chan string, 10)
	s.sessions.Store(name, messages)
	return name, messages
}

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("Mcp-Session-Id") + r.URL.Query().Get("session")
	known, _ := s.sessions.Load(name)
	messages, ok := known.(chan string)
	if r.Method == http.MethodGet {
		events(w)
		if s.old {
			name, messages = s.begin()
			_, _ = fmt.Fprintf(w, "event: endpoint\ndata: /mcp?session=%s\n\n", name)
		}
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case line := <-messages:
				_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", line)
			case <-r.Context().Done():
				return
			}
		}
	}
	var q request
	if r.Method != http.MethodPost || s.old && !ok || json.NewDecoder(r.Body).Decode(&q) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if q.ID != nil && !s.old && q.Method != "tools/call" {
		if q.Method == "initialize" {
			name, _ = s.begin()
			w.Header().Set("Mcp-Session-Id", name)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s.answers(q)[0])
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if q.ID == nil {
		return
	}
	for _, line := range s.answers(q) {
		messages <- line
	}
}

// Answers may come in the stream of events: always with HTTP and SSE of version 2024-11-05, and after the
// status 202 with streamable HTTP.
func TestAnswersInTheStreamOfEventsAreRead(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"streamable": false, "HTTP and SSE": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(&streams{old: old, script: script{"tools/call": {
				`{"level":30,"msg":"calling"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`,
				`{"jsonrpc":"2.0","id":$text,"result":{"content":[{"type":"json","json":1},{"type":"text","text":"good"}],"structuredContent":{"id":725653563933458433}}}`,
			}}})
			t.Cleanup(srv.Close)
			t.Cleanup(srv.CloseClientConnections)
			c := discovered(t, mcp.Config{}, mcp.Server{URL: srv.URL + "/mcp"})
			for range 2 {
				if got, want := call(t, c, "x_t", nil), `[content of the kind "json", which is not known here] {"json":1,"type":"json"}`+"\n\ngood\n\n"+`{"id":725653563933458433}`; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			must(t, c.Close())
		})
	}
}

// Wherever the values are, they are not decoded, and the connection stays.
func TestMessagesOfTooManyValuesAreBounded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("[],", 300_000) + "[]"
	members := `"a":1`
	for i := range 3000 {
		members += fmt.Sprintf(`,"m%d":[]`, i)
	}
	for name, tc := range map[string]struct{ answer, want string }{
		"content":             {result(`{"content":[` + many + `]}`), "[content of more than 200,000 values"},
		"a piece":             {result(`{"content":[{"type":"json","json":[` + many + `]}]}`), "[content of more than 200,000 values"},
		"another form":        {result(`{"toolResult":[` + many + `]}`), "[content of more than 200,000 values"},
		"only a list":         {result(`[` + many + `]`), "[content of more than 200,000 values"},
		"members of a result": {result(`{` + members + `}`), `{"a":1,"m0":[],"m1":[]`},
		"an error":            {`{"jsonrpc":"2.0","id":$id,"error":{"code":1,"message":"x","data":[` + many + `]}}`, "an error of too many values"},
		"questions":           {result(`{"resultType":"input_required","inputRequests":[` + many + `]}`), "it asked for too much at once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(script{"tools/call": {`{"jsonrpc":"2.0","method":"x","params":[` + many + `]}`, tc.answer}})
			t.Cleanup(srv.Close)
			for _, path := range []string{"/events", "/json"} {
				c := discovered(t, mcp.Config{}, mcp.Server{URL: srv.URL + path})
				res, fault := run(t, t.Context(), c, "x_t", nil, t.TempDir())
				text := res.Text
				if fault != nil {
					text = fault.Message
				}
				if !strings.Contains(text, tc.want) || !c.Status()[0].Connected {
					t.Errorf("%s: got %.200q, %+v", path, text, c.Status()[0].Problem)
				}
				must(t, c.Close())
			}
		})
	}
	c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": scripted(t, script{"tools/list": {result(`{"tools":[` + many + `]}`)}})}})
	fails(t, c, "x_connect", mcp.CodeUnavailable, "its answer has too many values")
}

// A server that never ends its list, or loses its place in it, has the tools that it has listed.
func TestAListThatDoesNotEndIsUsed(t *testing.T) {
	t.Parallel()
	for _, s := range (script{"tools/list": {result(`{"tools":[{"name":"t"}],"nextCursor":"again"}`)}}).everywhere(t) {
		c := discovered(t, mcp.Config{}, s)
		if got := strings.Join(naming(c.Groups()[0]), " "); got != "x_t" {
			t.Errorf("tools %s", got)
		}
		must(t, c.Close())
	}
}

// An error in whatever form is an answer to its call, and the connection stays.
func TestAnErrorInAnyFormIsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ answer, want string }{
		"a text":             {`{"jsonrpc":"2.0","id":$id,"error":"no such row"}`, "refused the call of 't': no such row"},
		"a code as a text":   {`{"jsonrpc":"2.0","id":$id,"error":{"code":"E7","message":"no such row"}}`, "refused the call of 't': no such row"},
		"no message":         {`{"jsonrpc":"2.0","id":$id,"error":{"reason":"no such row"}}`, `refused the call of 't': {"reason":"no such row"}`},
		"an unreadable wish": {result(`{"resultType":"input_required","inputRequests":[7]}`), "asked for something that cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range (script{"tools/call": {tc.answer}}).everywhere(t) {
				c := discovered(t, mcp.Config{}, s)
				for range 2 {
					fails(t, c, "x_t", toolgroups.CodeExecution, tc.want)
				}
				must(t, c.Close())
			}
		})
	}
}

// Over HTTP there is one answer for each request, so that one without an id can only belong to it.
func TestAnAnswerOverHTTPThatIsNoneFailsItsCallAlone(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`: "refused the call of 't': Parse error",
		`{"ok":true}`:  "its answer cannot be read, so whether the call had its effect is unknown",
		`<p>Hello</p>`: "its answer cannot be read, so whether the call had its effect is unknown",
		``:             "its answer cannot be read, so whether the call had its effect is unknown",
	} {
		srv := httptest.NewServer(script{"tools/call": {body}})
		t.Cleanup(srv.Close)
		c := discovered(t, mcp.Config{}, mcp.Server{URL: srv.URL + "/json"})
		for range 2 {
			fails(t, c, "x_t", toolgroups.CodeExecution, want)
		}
		must(t, c.Close())
	}
}

// Servers that were written before server/discover end at an unknown request, or ignore it.
func TestServersThatDoNotKnowTheNewestProtocolAreReachedAtOnce(t *testing.T) {
	t.Parallel()
	for name, said := range map[string][]string{"it ends": {"exit"}, "it is silent": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := (script{"server/discover": said, "tools/call": {result(`{"content":"good"}`)}}).program(t)
			s.StartTimeout = 15 * time.Second
			c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}, RetryDelay: time.Hour, MaxRetryDelay: time.Hour})
			call(t, c, "x_connect", nil)
			if got := call(t, c, "x_t", nil); got != "good" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// What one tool says wrongly of itself concerns that tool alone.
func TestOneOddToolDoesNotTakeItsServer(t *testing.T) {
	t.Parallel()
	tools := `[7,null,{"inputSchema":{}},{"name":5},` +
		`{"name":"hints","inputSchema":{},"annotations":{"readOnlyHint":"true","title":7}},{"name":"safe","inputSchema":{},"annotations":{"destructiveHint":"false"}},` +
		`{"name":"odd","title":[],"description":{"en":"x"},"inputSchema":"x","annotations":[],"icons":"x","_meta":5,"outputSchema":7,"execution":"x"},` +
		`{"name":"deep","inputSchema":{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 2000) + `{}` + strings.Repeat(`}`, 2000) + `}}},` +
		`{"name":"page","inputSchema":{},"_meta":{"ui":{"visibility":["app"]}}},{"name":"both","inputSchema":{},"_meta":{"ui":{"visibility":["app","model"]}}},` +
		`{"name":"task","inputSchema":{},"execution":{"taskSupport":"required"}},{"name":"maybe","inputSchema":{},"execution":{"taskSupport":"optional"}}]`
	for kind, s := range (script{"tools/list": {result(`{"tools":` + tools + `,"nextCursor":7}`)}}).everywhere(t) {
		var l logs
		c := discovered(t, mcp.Config{Logger: l.logger()}, s)
		if got, want := strings.Join(naming(c.Groups()[0]), " "), "x_both x_deep x_hints x_maybe x_safe"; got != want {
			t.Errorf("%s: tools %s, want %s", kind, got, want)
		}
		if find(t, c, "x_hints").Effect != toolgroups.ReadOnly || find(t, c, "x_safe").Effect != toolgroups.Changes {
			t.Errorf("%s: hints in texts do not count", kind)
		}
		for _, reason := range []string{"runs only as a task", "for the server's own pages", "not an object", "it has no name"} {
			if !strings.Contains(l.String(), reason) {
				t.Errorf("%s: the log does not say %q:\n%s", kind, reason, l.String())
			}
		}
		must(t, c.Close())
	}
}
