package mcp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/platformtest"
	"oneclaw/internal/redact"
	"oneclaw/storage/postgres/pgtest"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// hall is one of the servers in testdata/servers, which offer the same with different libraries.
type hall struct {
	command string
	args    []string
	env     map[string]redact.Secret
	tuples  bool // it says what is at which place of a list
	asks    bool // its resource hall://guests asks
}

const hallKey = "key-of-the-hall"

// halls are those servers by their library.
func halls(t *testing.T) map[string]hall {
	t.Helper()
	node, dir := installation(t)
	env := map[string]redact.Secret{"NODE_PATH": redact.Secret(filepath.Join(dir, "node_modules"))}
	all := map[string]hall{"mcp-go": {command: filepath.Join(dir, "mcpgo"), env: map[string]redact.Secret{}}}
	for library, needs := range map[string]string{"sdk1": "@modelcontextprotocol/sdk", "sdk2": "@modelcontextprotocol/server", "fastmcp": "fastmcp"} {
		require(t, filepath.Join(dir, "node_modules", needs))
		script, err := filepath.Abs("testdata/servers/" + library + ".cjs")
		must(t, err)
		all[library] = hall{node, []string{script}, env, true, strings.HasPrefix(library, "sdk")}
	}
	require(t, all["mcp-go"].command)
	for _, file := range []string{"hall.cjs", "sdk1.cjs", "sdk2.cjs", "fastmcp.cjs"} {
		_, err := os.ReadFile("testdata/servers/" + file) // so that go test runs this again when it changes
		must(t, err)
	}
	return all
}

// program is the hall as a program, with a key or without.
func (h hall) program(key string) mcp.Server {
	env := map[string]redact.Secret{"HALL_KEY": redact.Secret(key)}
	maps.Copy(env, h.env)
	return mcp.Server{Command: h.command, Args: h.args, Env: env}
}

// serve starts the hall over HTTP, and returns it for somebody who has a key.
func (h hall) serve(t *testing.T) func(key string) mcp.Server {
	t.Helper()
	port, err := pgtest.FreePort()
	must(t, err)
	env := []string{"HALL_KEY=" + hallKey}
	for name, value := range h.env {
		env = append(env, name+"="+string(value))
	}
	serveProgram(t, env, h.command, append(slices.Clone(h.args), strconv.Itoa(port))...)
	return func(key string) mcp.Server {
		s := mcp.Server{URL: "http://127.0.0.1:" + strconv.Itoa(port) + "/mcp"}
		if key != "" {
			s.Headers = map[string]redact.Secret{"Authorization": redact.Secret("Bearer " + key)}
		}
		return s
	}
}

func TestServersOnOtherLibraries(t *testing.T) {
	t.Parallel()
	for library, h := range halls(t) {
		t.Run(library+" as a program", func(t *testing.T) {
			t.Parallel()
			checkHall(t, h, h.program(hallKey), h.program(""), "HALL_KEY is not set: get one at the front desk")
		})
		t.Run(library+" over HTTP", func(t *testing.T) {
			t.Parallel()
			if library != "mcp-go" { // which starts at once
				platformtest.OnlyNightly(t)
			}
			with := h.serve(t)
			checkHall(t, h, with(hallKey), with(""), "it refuses access (401 Unauthorized): its key is missing or wrong: Bring your key.")
		})
	}
}

// checkHall uses all that a hall offers; without its key, a person is told why it does not work.
func checkHall(t *testing.T, h hall, s, locked mcp.Server, why string) {
	t.Helper()
	c := discovered(t, mcp.Config{}, s)
	registry(t, c)
	group := c.Groups()[0]
	if group.Description != "Books the hall" || !strings.Contains(group.Notes, "Ask before you book.") || len(group.LeftOut) > 0 {
		t.Errorf("the group is %q, %q, without %v", group.Description, group.Notes, group.LeftOut)
	}
	// Some libraries have results that are no objects.
	names := slices.DeleteFunc(naming(group), func(name string) bool { return name == "x_doors" })
	if want := []string{"x_ask", "x_book", "x_fail", "x_plan", "x_read_resource", "x_size"}; !slices.Equal(names, want) {
		t.Errorf("the tools are %v", names)
	}
	if len(names) < len(group.Tools) {
		if text := call(t, c, "x_doors", nil); !sameJSON(t, text, `[{"side":"north","wide":true},{"side":"east","wide":false}]`) {
			t.Errorf("a list as a result: %s", text)
		}
	}
	checkBookings(t, c, h.tuples, true)
	if text := call(t, c, "x_size", nil); strings.Count(text, "87.5") != 1 || !strings.Contains(text, "A large hall.") {
		t.Errorf("a result with structure: %s", text)
	}
	if find(t, c, "x_size").Effect != toolgroups.ReadOnly {
		t.Error("a tool that only reads is not known as one")
	}
	if text := call(t, c, "x_plan", nil); !strings.Contains(text, "[resource Plan: hall://plan]") {
		t.Errorf("a link to a resource: %s", text)
	}
	if text := call(t, c, "x_read_resource", map[string]any{"uri": "hall://plan"}); !strings.Contains(text, "north: stage\nsouth: bar") {
		t.Errorf("a resource: %s", text)
	}
	if text := call(t, c, "x_read_resource", map[string]any{"uri": "hall://rooms/blue"}); !strings.Contains(text, "the room blue") {
		t.Errorf("a resource of a template: %s", text)
	}
	res, fault := run(t, t.Context(), c, "x_read_resource", map[string]any{"uri": "hall://photo"}, t.TempDir())
	if fault != nil || len(res.Files) != 1 || filepath.Ext(res.Files[0].Path) != ".png" {
		t.Errorf("a picture: %v, %v", res, fault)
	}
	_, fault = run(t, t.Context(), c, "x_read_resource", map[string]any{"uri": "hall://roof"}, "")
	if fault == nil || fault.Code != toolgroups.CodeExecution || !strings.Contains(fault.Message, "hall://roof") {
		t.Errorf("a resource that is not there: %v", fault)
	}
	fails(t, c, "x_fail", toolgroups.CodeExecution, "The hall is closed on Mondays.")
	checkForm(t, c, "x_ask", nil)
	if h.asks {
		checkForm(t, c, "x_read_resource", map[string]any{"uri": "hall://guests"})
	}
	must(t, c.Close())

	outside := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": locked}})
	if st := outside.Probe(t.Context())[0]; !strings.Contains(st.Problem, why) {
		t.Errorf("without a key: %q", st.Problem)
	}
}

// checkBookings calls a tool with tuples and choices: what fits arrives as it was, and what does not is refused, by a
// server that checks.
func checkBookings(t *testing.T, c *mcp.Client, tuples, checks bool) {
	t.Helper()
	for _, args := range []string{
		`{"extras":["piano"],"pay":{"by":"cash"},"when":["monday",9],"who":"Ann"}`,
		`{"pay":{"by":"card","holder":"Ann"},"when":["monday",9],"who":{"firm":"Lee","number":9007199254740991}}`,
	} {
		if text := call(t, c, "x_book", json.RawMessage(args)); !sameJSON(t, text, args) {
			t.Errorf("of %s arrived %s", args, text)
		}
	}
	when, refused := `["monday",9]`, map[string]string{
		`{"pay":{"by":"cash"},"when":["monday",9]}`:                                "who",
		`{"pay":{"by":"cash"},"when":["monday",9],"who":"Ann","extras":["organ"]}`: "extras",
	}
	if tuples {
		when = `["monday","9"]`
		refused[`{"pay":{"by":"cash"},"when":["monday","nine"],"who":"Ann"}`] = "'when[1]' must be of type integer"
	}
	text := call(t, c, "x_book", json.RawMessage(`{"pay":"{\"by\":\"cash\"}","when":`+when+`,"who":"Ann","extras":null}`))
	if !sameJSON(t, text, `{"pay":{"by":"cash"},"when":["monday",9],"who":"Ann"}`) {
		t.Errorf("of arguments as a model writes them arrived %s", text)
	}
	if checks {
		maps.Copy(refused, map[string]string{
			`{"pay":{"by":"cash"},"when":["monday"],"who":"Ann"}`:   "when",
			`{"pay":{"by":"gold"},"when":["monday",9],"who":"Ann"}`: "pay",
			`{"pay":{"by":"cash"},"when":["monday",9],"who":7}`:     "who",
		})
	}
	for args, part := range refused {
		_, fault := run(t, t.Context(), c, "x_book", json.RawMessage(args), "")
		if fault == nil || fault.Code != toolgroups.CodeInvalid && fault.Code != toolgroups.CodeExecution || !strings.Contains(fault.Message, part) {
			t.Errorf("%s: %v", args, fault)
		}
	}
}

// sameJSON reports whether two texts are the same JSON, with the same digits.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, text := range []string{a, b} {
		value, err := toolgroups.DecodeJSON([]byte(text))
		if err != nil {
			return false
		}
		data, err := toolgroups.EncodeJSON(value)
		must(t, err)
		texts[i] = string(data)
	}
	return texts[0] == texts[1]
}

// checkForm has a tool ask somebody who fills in its form except for one field, and somebody who declines.
func checkForm(t *testing.T, c *mcp.Client, tool string, args any) {
	t.Helper()
	ann := &person{answer: says(map[string]any{
		"name": "Ann", "seats": json.Number("3"), "row": "back", "aisle": true, "mail": "ann@example.org", "meal": "veg", "days": []string{"friday"},
	})}
	bob := &person{answer: func(toolgroups.Question) (toolgroups.Answer, error) {
		return toolgroups.Answer{Action: toolgroups.AnswerDecline}, nil
	}}
	for who, want := range map[*person][2]string{
		ann: {"accept", `{"aisle":true,"days":["friday"],"mail":"ann@example.org","meal":"veg","name":"Ann","row":"back","seats":3}`},
		bob: {"decline", "null"},
	} {
		res, fault := run(t, who.context(t), c, tool, args, "")
		text := strings.TrimPrefix(res.Text, "[resource hall://guests]\n")
		if action, values, _ := strings.Cut(text, " "); fault != nil || action != want[0] || !sameJSON(t, values, want[1]) {
			t.Errorf("%s: instead of %s: %q, %v", tool, want, res.Text, fault)
		}
		if len(who.asked) != 1 || who.asked[0].Text != "Who comes?" || len(who.asked[0].Fields) != 8 {
			t.Errorf("%s: asked was %+v", tool, who.asked)
			continue
		}
		fields := map[string]toolgroups.Field{}
		for _, f := range who.asked[0].Fields {
			fields[f.Name] = f
		}
		seats, meal := fields["seats"], fields["meal"]
		if who.asked[0].Fields[0].Title != "Name" || seats.Default != json.Number("2") || seats.Max == nil || *seats.Max != 120 ||
			len(fields["row"].Choices) != 2 || fields["mail"].Format != "email" || len(fields["days"].Choices) != 2 ||
			!slices.Equal(meal.Choices, []toolgroups.FieldChoice{{Value: "veg", Title: "Vegetarian"}, {Value: "fish", Title: "Fish"}}) {
			t.Errorf("%s: the form is %+v", tool, fields)
		}
	}
}

// A bridge makes tools of an API that somebody describes.
func TestServerThatBridgesToAnAPI(t *testing.T) {
	t.Parallel()
	node, dir := installation(t)
	script := filepath.Join(dir, "node_modules", "@ivotoby", "openapi-mcp-server", "bin", "mcp-server.js")
	require(t, script)
	description, err := filepath.Abs("testdata/servers/hall.openapi.json")
	must(t, err)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var body json.RawMessage
		switch _ = json.NewDecoder(r.Body).Decode(&body); {
		case r.Header.Get("X-Key") != hallKey:
			w.WriteHeader(http.StatusUnauthorized)
			body = json.RawMessage(`{"message":"Bring your key."}`)
		case r.Method == http.MethodGet && r.URL.Path == "/size":
			body = json.RawMessage(`{"seats":120,"area":87.5,"floor":"` + r.URL.Query().Get("floor") + `"}`)
		case r.URL.Path == "/days/monday":
			w.WriteHeader(http.StatusConflict)
			body = json.RawMessage(`{"message":"The hall is closed on Mondays."}`)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(api.Close)
	bridge := func(key string) *mcp.Client {
		h := hall{command: node, args: []string{script}, env: map[string]redact.Secret{
			"API_BASE_URL": redact.Secret(api.URL), "OPENAPI_SPEC_PATH": redact.Secret(description), "API_HEADERS": redact.Secret("X-Key:" + key),
			"RESOURCES_INLINE": `[{"uri":"hall://plan","name":"Plan","mimeType":"text/plain","text":"north: stage\nsouth: bar"}]`,
		}}
		if !platformtest.Nightly() {
			return discovered(t, mcp.Config{}, h.program(""))
		}
		h.args = append(h.args, "--transport", "http", "--port")
		return discovered(t, mcp.Config{}, h.serve(t)(""))
	}
	bare := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": {Command: node, Args: []string{script}}}})
	if said := bare.Probe(t.Context())[0].Problem; !strings.Contains(said, "OpenAPI spec is required") || strings.Contains(said, "loadConfig") {
		t.Errorf("without a description: %q", said)
	}
	c := bridge(hallKey)
	registry(t, c)
	if want := []string{"x_book", "x_fail", "x_pay", "x_read_resource", "x_size"}; !slices.Equal(naming(c.Groups()[0]), want) {
		t.Errorf("the tools are %v", naming(c.Groups()[0]))
	}
	if offered := string(find(t, c, "x_pay").Parameters); !strings.Contains(offered, `"holder"`) || !strings.Contains(offered, `"cash"`) {
		t.Errorf("a choice at the top is offered as %s", offered)
	}
	checkBookings(t, c, true, false)
	if text := call(t, c, "x_pay", map[string]any{"by": "card", "holder": "Ann"}); !strings.Contains(text, `"holder": "Ann"`) {
		t.Errorf("a choice at the top: %s", text)
	}
	if text := call(t, c, "x_size", map[string]any{"floor": "2"}); !strings.Contains(text, "87.5") || !strings.Contains(text, `"floor": "2"`) {
		t.Errorf("a parameter in the address: %s", text)
	}
	if text := call(t, c, "x_read_resource", map[string]any{"uri": "hall://plan"}); !strings.Contains(text, "north: stage\nsouth: bar") {
		t.Errorf("a resource: %s", text)
	}
	for _, c := range []struct {
		bot       *mcp.Client
		tool, why string
		args      map[string]any
	}{{c, "x_fail", "The hall is closed on Mondays.", map[string]any{"day": "monday"}}, {bridge("none"), "x_size", "401", nil}} {
		if _, fault := run(t, t.Context(), c.bot, c.tool, c.args, ""); fault == nil || fault.Code != toolgroups.CodeExecution || !strings.Contains(fault.Message, c.why) {
			t.Errorf("%s: %v", c.tool, fault)
		}
	}
}
