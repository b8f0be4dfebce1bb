package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// raw is a server whose tools array is given.
func raw(t testing.TB, tools string) mcp.Server {
	s := child(t, "raw")
	s.Env["RAW_TOOLS"] = redact.Secret(tools)
	return s
}

func TestIncludeExcludeAndTrust(t *testing.T) {
	const tools = `[{"name":"get_a","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"get_b","inputSchema":{}},` +
		`{"name":"set_a","inputSchema":{},"annotations":{"destructiveHint":false}},{"name":"del_a","inputSchema":{}}]`
	ro, ch, co := toolgroups.ReadOnly, toolgroups.Changes, toolgroups.Consequential
	for name, tc := range map[string]struct {
		change func(*mcp.Server)
		want   map[string]toolgroups.Effect
	}{
		"all":     {func(*mcp.Server) {}, map[string]toolgroups.Effect{"x_del_a": co, "x_get_a": ro, "x_get_b": co, "x_set_a": ch}},
		"include": {func(s *mcp.Server) { s.Include = []string{"get_*"} }, map[string]toolgroups.Effect{"x_get_a": ro, "x_get_b": co}},
		"exclude": {func(s *mcp.Server) { s.Exclude = []string{"get_*", "del_?"} }, map[string]toolgroups.Effect{"x_set_a": ch}},
		"both": {
			func(s *mcp.Server) { s.Include, s.Exclude = []string{"get_*"}, []string{"*_b"} },
			map[string]toolgroups.Effect{"x_get_a": ro},
		},
		"no trust": {
			func(s *mcp.Server) { s.Trust, s.ReadOnly = mcp.TrustNone, []string{"get_b"} },
			map[string]toolgroups.Effect{"x_del_a": co, "x_get_a": co, "x_get_b": ro, "x_set_a": co},
		},
		"full trust": {
			func(s *mcp.Server) { s.Trust = mcp.TrustFull },
			map[string]toolgroups.Effect{"x_del_a": ch, "x_get_a": ro, "x_get_b": ch, "x_set_a": ch},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := raw(t, tools)
			tc.change(&s)
			got := map[string]toolgroups.Effect{}
			for _, tool := range discovered(t, mcp.Config{}, s).Groups()[0].Tools {
				got[tool.Name] = tool.Effect
				if asks := tool.NeedsApproval(toolgroups.Call{}); asks != (s.Trust != mcp.TrustFull) {
					t.Errorf("%s asks %t with trust %q", tool.Name, asks, s.Trust)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesNeverClash(t *testing.T) {
	c := client(t, mcp.Config{
		Servers: map[string]mcp.Server{
			"x":   raw(t, `[{"name":"a_b","inputSchema":{}},{"name":"info","inputSchema":{}},{"name":"connect","inputSchema":{}},{"name":"a.c","inputSchema":{}},{"name":"a c","inputSchema":{}},{"name":"info","inputSchema":{}}]`),
			"x_a": raw(t, `[{"name":"b","inputSchema":{}}]`),
		},
		TakenNames: []string{"x_info"},
	})
	registry(t, c) // Both are unknown yet.
	c.Discover(t.Context())
	var got []string
	for _, g := range registry(t, c).Groups() {
		got = append(got, g.Name+": "+strings.Join(naming(g), " "))
	}
	want := []string{
		"mcp_x: x_a_b_44a8d47c x_a_c_3d225049 x_a_c_886a5e2c x_connect_938247db x_info_f0441af7",
		"mcp_x_a: x_a_b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"property_%d":{}`, i)
	}
	return b.String()
}

func TestOddSchemas(t *testing.T) {
	const empty = `{"properties":{},"type":"object"}`
	for name, tc := range map[string]struct{ schema, want string }{
		"none":               {`null`, empty},
		"true":               {`true`, empty},
		"no type":            {`{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"type among others":  {`{"type":["null","object"]}`, empty},
		"a list of nothing":  {`{"type":"object","properties":[],"required":null}`, empty},
		"draft and default":  {`{"$schema":"x","$id":"y","type":"object","properties":{"a":{"default":1}}}`, `{"properties":{"a":{}},"type":"object"}`},
		"list without items": {`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"properties":{"a":{"type":"array","items":{}}},"type":"object"}`},
		"alternatives":       {`{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`, `{"properties":{"a":{},"b":{}},"type":"object"}`},
		"all of them":        {`{"allOf":[{"properties":{"a":{}},"required":["a"]}]}`, `{"properties":{"a":{}},"required":["a"],"type":"object"}`},
		"a reference":        {`{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{}}}}}`, `{"$defs":{"A":{"properties":{"a":{}},"type":"object"}},"properties":{"a":{}},"type":"object"}`},
		"a large number":     {`{"type":"object","properties":{"a":{"maximum":9007199254740993}}}`, `{"properties":{"a":{"maximum":9007199254740993}},"type":"object"}`},
		"a string":           {`{"type":"string"}`, ""},
		"a list":             {`[]`, ""},
		"lost reference":     {`{"$ref":"#/$defs/A"}`, ""},
		"circular reference": {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`, ""},
		"a choice of two": {
			`{"oneOf":[{"type":"object","properties":{"kind":{"type":"string","const":"card"},"number":{"type":"string"}},"required":["kind","number"]},{"properties":{"kind":{"const":"bank"},"iban":{}},"required":["iban","kind"]}]}`,
			`{"properties":{"iban":{},"kind":{"enum":["card","bank"],"type":"string"},"number":{"type":"string"}},"required":["kind"],"type":"object"}`,
		},
		"a choice beside own properties": {
			`{"type":"object","properties":{"kind":{"type":"string","description":"Which"},"id":{}},"required":["id"],"anyOf":[{"properties":{"kind":{"enum":["a","b"]}},"required":["kind"]},{"properties":{"kind":{"enum":["b","c"]}},"required":["kind"]}]}`,
			`{"properties":{"id":{},"kind":{"description":"Which","enum":["a","b","c"],"type":"string"}},"required":["id","kind"],"type":"object"}`,
		},
		"other types by choice": {
			`{"oneOf":[{"properties":{"v":{"type":"integer"}}},{"properties":{"v":{"type":"array"}}},{"properties":{"v":{"type":"integer","description":"again"}}},{"type":"string"},null,false]}`,
			`{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"array","items":{}}]}},"type":"object"}`,
		},
		"choices that are referred to": {
			`{"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"$defs":{"A":{"properties":{"n":{"const":1}},"required":["n"]},"B":{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"n":{"const":2},"m":{}}}]}}}`,
			`{"$defs":{"A":{"properties":{"n":{"const":1}},"required":["n"]},"B":{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"m":{},"n":{"const":2}}}]}},"properties":{"m":{},"n":{"enum":[1,2],"type":"number"}},"required":["n"],"type":"object"}`,
		},
		"conditions": {
			`{"type":"object","properties":{"a":{}},"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{}},"required":["b"]},"else":{"properties":{"c":{}}},"dependentSchemas":{"a":{"properties":{"d":{}}}}}`,
			`{"properties":{"a":{},"b":{},"c":{},"d":{}},"type":"object"}`,
		},
		"long descriptions": {
			`{"type":"object","description":"` + strings.Repeat("x", 40_000) + `","properties":{"description":{"type":"string"},"a":{"description":"short"}},"required":["a"]}`,
			`{"description":"` + strings.Repeat("x", 299) + `…","properties":{"a":{"description":"short"},"description":{"type":"string"}},"required":["a"],"type":"object"}`,
		},
		"deep levels": {
			`{"type":"object","properties":{"a":` + strings.Repeat(`{"type":"object","properties":{"b":`, 60) + `{"type":"string"}` + strings.Repeat(`}}`, 60) + `}}`,
			`{"properties":{"a":` + strings.Repeat(`{"properties":{"b":`, 14) + `{"additionalProperties":true,"type":"object"}` + strings.Repeat(`},"type":"object"}`, 14) + `},"type":"object"}`,
		},
		"too large": {`{"type":"object","properties":{"a":{}` + manyProperties(5000) + `}}`, ""},
		"a bomb": {
			`{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"properties":{"a":{}},"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"},{"$ref":"#"}]}}}`,
			`{"$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"},{"$ref":"#"}],"properties":{"a":{}}}},"properties":{"a":{}},"type":"object"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l logs
			s := raw(t, `[{"name":"good","inputSchema":{}},{"name":"odd","inputSchema":`+tc.schema+`}]`)
			c := discovered(t, mcp.Config{Logger: l.logger()}, s)
			var got string
			for _, tool := range c.Groups()[0].Tools {
				if tool.Name == "x_odd" {
					got = string(tool.Parameters)
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if said := strings.Contains(l.String(), "tool of an MCP server left out"); said != (tc.want == "") {
				t.Errorf("log:\n%s", l.String())
			}
		})
	}
}

// The names of parameters are no keywords of a schema.
func TestParametersNamedLikeKeywordsStayInALargeSchema(t *testing.T) {
	long := strings.Repeat("It says more. ", 4000)
	accepts, err := mcp.Accepts(json.RawMessage(`{"type":"object","properties":{"properties":{"type":"object","description":"` + long + `"},"not":{"type":"string"},"if":{"type":"object"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(accepts, &schema); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, []string{"if", "not", "properties"}) {
		t.Errorf("parameters are %q", got)
	}
}

// A card says of a parameter that the server does not have it, which is to be true of a large schema, too.
func TestWhatIsTrimmedOffASchemaIsNotUndeclared(t *testing.T) {
	fields := func(end string) string {
		var all strings.Builder
		for i := range 120 {
			fmt.Fprintf(&all, `,"field_%d":{"type":"object","properties":{`, i)
			for k := range 6 {
				fmt.Fprintf(&all, `"option_number_%d_of_field_%d":{"type":"string"},`, k, i)
			}
			all.WriteString(end + `}}`)
		}
		return all.String()
	}
	for _, share := range []string{
		`{"type":"object","properties":{"with":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"string"}}`,
		`{"type":"object","properties":{"a":{}},"patternProperties":{"^w":{}}}`,
		`{"type":"object","properties":{"a":{}},"allOf":[{"anyOf":[{"properties":{"with":{}}}]}]}`,
		`{"type":"object","properties":{"a":{}},"additionalProperties":false,"dependencies":{"a":{"properties":{"with":{}}}}}`,
	} {
		schema := `{"type":"object","properties":{"changes":{"type":"array","items":{"type":"object","properties":{"share":` + share + fields(`"z":{}`) + `}}}}}`
		accepts, err := mcp.Accepts(json.RawMessage(schema))
		if err != nil || len(accepts) >= len(schema) {
			t.Fatal(len(accepts), len(schema), err)
		}
		tool := toolgroups.Tool{Name: "t", Parameters: json.RawMessage(`{"type":"object"}`), Accepts: accepts, External: true}
		if got := toolgroups.Undeclared(tool, json.RawMessage(`{"changes":[{"share":{"with":"eve@evil.example"}}]}`)); len(got) > 0 {
			t.Errorf("%s: called undeclared: %q", share, got)
		}
	}
}

// What the server takes is not refused here, however its schema is shown to models.
func TestCallsAreCheckedAgainstTheServersOwnSchema(t *testing.T) {
	c := discovered(t, mcp.Config{}, raw(t, `[{"name":"pay","inputSchema":{"oneOf":[`+
		`{"properties":{"kind":{"const":"card"},"pair":{"type":"array","items":[{"type":"number"},{"type":"string"}]}},"required":["kind","pair"]},`+
		`{"properties":{"kind":{"const":"bank"},"amount":{"type":"number"}},"required":["kind"]}]}}]`))
	tool, _ := registry(t, c).Tool("x_pay")
	for args, want := range map[string]string{
		`{"kind":"card","pair":[1,"a"]}`:     `{"kind":"card","pair":[1,"a"]}`,
		`{"kind":"bank","amount":"1.50"}`:    `{"amount":1.50,"kind":"bank"}`,
		`{"kind":"card","pair":"[1,\"a\"]"}`: `{"kind":"card","pair":[1,"a"]}`,
	} {
		if got, fault := toolgroups.ValidateArguments(tool, json.RawMessage(args)); fault != nil || string(got) != want {
			t.Errorf("%s: %s, %v", args, got, fault)
		}
	}
}

func TestDescriptionsAreCleaned(t *testing.T) {
	s := raw(t, `[{"name":"a","inputSchema":{},"description":"Does\u200b a\u202e\u0000 thing\ud83d\ude00\udb40\udc41"},{"name":"b","inputSchema":{}},{"name":"c","title":"See","inputSchema":{}}]`)
	g := discovered(t, mcp.Config{}, s).Groups()[0]
	var got []string
	for _, tool := range g.Tools {
		got = append(got, tool.Description)
	}
	if diff := cmp.Diff([]string{"Does a thing😀", "The tool b of the MCP server x", "See"}, got); diff != "" {
		t.Errorf("descriptions (-want +got):\n%s", diff)
	}
	if g.Description != "Tools of the MCP server x: a, b, c" || g.DisplayName != "x (MCP)" {
		t.Errorf("group: %q, %q", g.Description, g.DisplayName)
	}
}
