package toolgroups_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

func TestRepairArguments(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", `{}`},
		{" \n", `{}`},
		{"null", `{}`},
		{`""`, `{}`},
		{`{ "a" : 1 }`, `{"a":1}`},
		{`{"a":[1,2,],}`, `{"a":[1,2]}`},
		{`{"a":"x"`, `{"a":"x"}`},
		{`{"a":{"b":["x"`, `{"a":{"b":["x"]}}`},
		{`{"a":{"b":1}`, `{"a":{"b":1}}`},
		{"```json\n{\"a\":1}\n```", `{"a":1}`},
		{"```\n{\"a\":\"x\"\n```", `{"a":"x"}`},
		{`"{\"a\":1}"`, `{"a":1}`},
		{"\ufeff{}", `{}`},
		{`{"a":"x,}","b":"\"]"}`, `{"a":"x,}","b":"\"]"}`},
		{"{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}"},
	} {
		got, err := toolgroups.RepairArguments(json.RawMessage(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v", tc.in, got, err)
		}
	}
}

func TestRepairArgumentsDoesNotGuess(t *testing.T) {
	for _, in := range []string{
		`{"a":"cut of`, `{"a":`, `{"a"`, `{"a":1`, `{"a":tru`, `{"a":"x",`, `{"a":"x",,}`, `{"a":"x"]`, `{"a":"x"}}`,
		`{'a':1}`, `{a:1}`, `[1]`, `7`, `true`, `"text"`, `"\"{}\""`, `not json`, "```", `{"a":1}{"b":2}`, `{"a":1 2}`,
	} {
		if got, err := toolgroups.RepairArguments(json.RawMessage(in)); err == nil {
			t.Errorf("%s became %s", in, got)
		}
	}
}

const wide = `{"type":"object","properties":{
	"s":{"type":"string"},"i":{"type":"integer","minimum":1,"maximum":9},"n":{"type":"number"},"b":{"type":"boolean"},
	"e":{"type":"string","enum":["RAW","USER"]},"k":{"type":"integer","enum":[1,2]},
	"o":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},
	"l":{"type":"array","items":{"type":"string"}},
	"rows":{"type":"array","items":{"type":"array","items":{"type":["string","number","boolean","null"]}}},
	"maybe":{"type":["string","null"]},"any":{},"yes":true}}`

func validated(schema, args string) (string, *toolgroups.Error) {
	got, fault := toolgroups.ValidateArguments(toolgroups.Tool{Name: "t", Parameters: json.RawMessage(schema)}, json.RawMessage(args))
	return string(got), fault
}

func TestValidateArgumentsAccepts(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"s":"x","i":5,"n":1.5,"b":true}`, `{"b":true,"i":5,"n":1.5,"s":"x"}`},
		{`{"i":5.0}`, `{"i":5}`},
		{`{"i":1e2}`, `{"i":100}`},
		{`{"i":"42"}`, `{"i":42}`},
		{`{"i":" -7 "}`, `{"i":-7}`},
		{`{"i":99}`, `{"i":99}`},
		{`{"i":9007199254740993}`, `{"i":9007199254740993}`},
		{`{"i":"18446744073709551615"}`, `{"i":18446744073709551615}`},
		{`{"i":725653563933458433.0}`, `{"i":725653563933458433}`},
		{`{"i":"+007"}`, `{"i":7}`},
		{`{"n":"725653563933458433.10"}`, `{"n":725653563933458433.10}`},
		{`{"n":"3.5"}`, `{"n":3.5}`},
		{`{"n":7}`, `{"n":7}`},
		{`{"b":"True"}`, `{"b":true}`},
		{`{"e":"RAW","k":2}`, `{"e":"RAW","k":2}`},
		{`{"k":"2"}`, `{"k":2}`},
		{`{"o":"{\"x\":1}","l":"[\"a\"]"}`, `{"l":["a"],"o":{"x":1}}`},
		{`{"o":{"x":"1"}}`, `{"o":{"x":1}}`},
		{`{"rows":[["a",1,true,null],[]]}`, `{"rows":[["a",1,true,null],[]]}`},
		{`{"s":null,"maybe":null}`, `{"maybe":null}`},
		{`{"unknown":{"a":[1]}}`, `{}`},
		{`{"s":"x","S":"y"}`, `{"s":"x"}`},
		{`{"any":[1,"<b>"],"yes":7}`, `{"any":[1,"<b>"],"yes":7}`},
		{``, `{}`},
	} {
		if got, fault := validated(wide, tc.in); fault != nil || got != tc.want {
			t.Errorf("%s: %s, %v", tc.in, got, fault)
		}
	}
}

// A card shows the arguments of a call, and what stands on it has to count.
func TestWhatAToolDoesNotDeclareIsDropped(t *testing.T) {
	const (
		nested = `{"type":"object","properties":{"o":{"type":"object","properties":{"x":{"type":"integer"}}},"l":{"type":"array","items":{"type":"object","properties":{"y":{}}}}}}`
		opened = `{"type":"object","properties":{"headers":{"type":"object","additionalProperties":{"type":"object","properties":{"v":{}}}},"free":{"type":"object"},` +
			`"named":{"type":"object","properties":{"a":{}},"patternProperties":{"^x-":{}}},"shut":{"type":"object","properties":{},"additionalProperties":false},"far":{"properties":{"a":{}},"$ref":"https://s.example/x"}}}`
		several = `{"type":"object","$defs":{"A":{"properties":{"a":{},"again":{"$ref":"#/$defs/A"}}}},"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{}}}],"anyOf":[{"required":["c"]},{"properties":{"d":{}}}],"dependentSchemas":{"a":{"properties":{"e":{}}}}}`
	)
	for _, tc := range []struct{ schema, in, want, undeclared string }{
		{`{"type":"object","properties":{}}`, `{"dry_run":true}`, `{}`, "dry_run"},
		{`{"type":"object"}`, `{"a":1}`, `{"a":1}`, ""},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":true}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`, ""},
		{nested, `{"o":{"x":1,"z":2},"l":[{"y":1,"z":2},{}],"z":3}`, `{"l":[{"y":1},{}],"o":{"x":1}}`, "l[].z o.z z"},
		{nested, `{"o":"{\"x\":1,\"z\":2}"}`, `{"o":{"x":1}}`, "o.z"},
		{
			opened, `{"headers":{"X-A":{"v":1,"w":2}},"free":{"a":{"b":1}},"named":{"x-a":1},"shut":{"a":1},"far":{"b":1}}`,
			`{"far":{"b":1},"free":{"a":{"b":1}},"headers":{"X-A":{"v":1}},"named":{"x-a":1},"shut":{}}`, "headers.X-A.w shut.a",
		},
		{`{"properties":{"a":{}},"dependencies":{"a":{"properties":{"b":{}}},"b":["a"]}}`, `{"a":1,"b":2,"c":3}`, `{"a":1,"b":2}`, "c"},
		{several, `{"a":1,"again":{"a":1,"b":2},"b":2,"c":3,"d":4,"e":5,"f":6}`, `{"a":1,"again":{"a":1},"b":2,"c":3,"d":4,"e":5}`, "again.b f"},
	} {
		if got, fault := validated(tc.schema, tc.in); fault != nil || got != tc.want {
			t.Errorf("%s\nwith %s: %s, %v", tc.schema, tc.in, got, fault)
		}
		// A server may know more than it says, so its calls keep all, and a card says what the server has not declared.
		tool := toolgroups.Tool{Name: "t", Parameters: json.RawMessage(tc.schema), External: true}
		kept, fault := toolgroups.ValidateArguments(tool, json.RawMessage(tc.in))
		if got := strings.Join(toolgroups.Undeclared(tool, kept), " "); fault != nil || got != tc.undeclared {
			t.Errorf("%s\nwith %s: %q in %s, %v", tc.schema, tc.in, got, kept, fault)
		}
	}
}

// A server chooses its schema, and its texts ask for the call: looking for undeclared values takes no more steps than a check.
func TestLookingForUndeclaredValuesIsBounded(t *testing.T) {
	alternatives := `{"anyOf":[` + strings.Repeat(`{"properties":{"a":{}}},`, 1200) + `{"properties":{"b":{}}}]}`
	many := `{"type":"object","properties":{"l":{"type":"array","items":` + alternatives + `},"m":{"type":"object","additionalProperties":` + alternatives + `}}}`
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":{"a":1,"c":2},`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, tc := range map[string]struct {
		in         string
		undeclared string
		refused    bool
	}{
		"a few keys":            {`{"m":{` + keys(2) + `}}`, "m.k0.c m.k1.c", false},
		"more than are checked": {`{"m":{` + keys(2000) + `}}`, "", true},
		"elements of a list":    {`{"l":[` + strings.Repeat(`{"a":1},`, 5000) + `{"c":1}]}`, "l[].c", false},
	} {
		tool := toolgroups.Tool{Name: "t", Parameters: json.RawMessage(many), External: true}
		if got := strings.Join(toolgroups.Undeclared(tool, json.RawMessage(tc.in)), " "); got != tc.undeclared {
			t.Errorf("%s: %q", name, got)
		}
		tool.External = false // whose undeclared values are dropped, so that a card shows what counts
		if got, fault := toolgroups.ValidateArguments(tool, json.RawMessage(tc.in)); (fault != nil) != tc.refused || strings.Contains(string(got), `"c":`) {
			t.Errorf("%s: %.200s, %v", name, got, fault)
		}
	}
}

// Servers publish such schemas; what they would accept is not refused here.
func TestArgumentsAreCheckedAgainstTheToolsOwnSchema(t *testing.T) {
	const (
		pair  = `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}],"items":false}}}`
		older = `{"type":"object","properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"string"}],"additionalItems":{"type":"boolean"}}}}`
		issue = `{"type":"object","properties":{"i":{"$ref":"#/$defs/Issue"}},"required":["i"],"$defs":{"Issue":{"$ref":"#/definitions/a~1b"}},"definitions":{"a/b":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/Issue"}},"required":["n"]}}}`
		kinds = `{"type":"object","oneOf":[{"properties":{"kind":{"const":"card"},"ID":{"type":"integer"}},"required":["kind","ID"]},{"properties":{"kind":{"const":"bank"},"id":{"type":"string"}},"required":["kind","id"]}]}`
	)
	for _, tc := range []struct{ schema, in, want string }{
		{pair, `{"p":[1,"a"]}`, `{"p":[1,"a"]}`},
		{pair, `{"p":["1","a",{"more":true}]}`, `{"p":[1,"a",{"more":true}]}`},
		{pair, `{"p":["x","a"]}`, `'p[0]' must be of type number, not string`},
		{older, `{"p":[1,"a",true]}`, `{"p":[1,"a",true]}`},
		{older, `{"p":[1,"a","true"]}`, `{"p":[1,"a",true]}`},
		{older, `{"p":[1,2]}`, `'p[1]' must be of type string, not number`},
		{`{"type":"object","properties":{"p":{"type":"array"}}}`, `{"p":[1,{"a":[]}]}`, `{"p":[1,{"a":[]}]}`},
		{`{"type":"object","properties":{"p":{"type":"array","items":true}}}`, `{"p":[1]}`, `{"p":[1]}`},
		{issue, `{"i":"{\"n\":\"7\",\"next\":{\"n\":8}}"}`, `{"i":{"n":7,"next":{"n":8}}}`},
		{issue, `{"i":{"n":1,"next":{}}}`, `required parameter 'i.next.n' is missing`},
		{kinds, `{"kind":"bank","id":"x"}`, `{"id":"x","kind":"bank"}`},
		{kinds, `{"kind":"card","ID":"5"}`, `{"ID":5,"kind":"card"}`},
		{kinds, `{"kind":"other"}`, `{"kind":"other"}`},
		{`{"properties":{"userId":{"type":"string"},"n":{"type":"integer"}},"required":["userId"]}`, `{"userid":"x","N":"5"}`, `{"n":5,"userId":"x"}`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"N":2,"n":1}`, `{"n":1}`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"N":null}`, `{}`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"N":"x"}`, `'n' must be of type integer, not string`},
		{`{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`, `{"v":"42"}`, `{"v":"42"}`},
		{`{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"boolean"}]}}}`, `{"v":"42"}`, `{"v":42}`},
		{`{"properties":{"v":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"v":null}`, `{"v":null}`},
		{`{"properties":{"v":{"anyOf":[{"type":"string"}]}}}`, `{"v":null}`, `{}`},
		{`{"properties":{"v":{"type":"string","nullable":true}},"required":["v"]}`, `{"v":null}`, `{"v":null}`},
		{`{"properties":{"v":{"type":"date"}}}`, `{"v":"2026-01-01"}`, `{"v":"2026-01-01"}`},
		{`{"properties":{"v":{"exclusiveMinimum":true,"type":"integer"}},"required":true}`, `{"v":"1"}`, `{"v":1}`},
		{`{"properties":{"v":{"enum":[725653563933458433]}}}`, `{"v":725653563933458433}`, `{"v":725653563933458433}`},
		{`{"properties":{"v":{"enum":[725653563933458433]}}}`, `{"v":725653563933458434}`, `'v' must be one of [725653563933458433]`},
		{`{"properties":{"v":{"const":"a"}}}`, `{"v":"b"}`, `'v' must be one of ["a"]`},
		{`{"properties":{"v":{"type":"string","allOf":[{"type":"integer"}]}}}`, `{"v":"42"}`, `{"v":"42"}`}, // contradicts itself
		{`{"properties":{"v":{"$ref":"#/nowhere"},"w":{"$ref":"#/properties/w"}}}`, `{"v":1,"w":2}`, `{"v":1,"w":2}`},
	} {
		for _, schemas := range []toolgroups.Tool{
			{Name: "t", Parameters: json.RawMessage(tc.schema)},
			{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{}}`), Accepts: json.RawMessage(tc.schema)},
		} {
			got, fault := toolgroups.ValidateArguments(schemas, json.RawMessage(tc.in))
			if fault != nil {
				why, _ := strings.CutPrefix(fault.Message, "Invalid arguments for 't': ")
				got = json.RawMessage(why[:min(len(why), len(tc.want))])
			}
			if string(got) != tc.want {
				t.Errorf("%s\nwith %s: %s, %v", tc.schema, tc.in, got, fault)
			}
		}
	}
}

// The tool that a registry offers is adapted; its calls are not.
func TestARegistryKeepsTheSchemaThatCallsAreCheckedAgainst(t *testing.T) {
	const own = `{"type":"object","properties":{"p":{"type":"array","items":[{"type":"number"}]},"n":{"type":"integer","default":1}},"required":["n"]}`
	r, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "t", Parameters: json.RawMessage(own), Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("") },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := r.Tool("t")
	if got, fault := toolgroups.ValidateArguments(tool, json.RawMessage(`{"p":[1,"a"]}`)); fault != nil || string(got) != `{"p":[1,"a"]}` {
		t.Errorf("%s, %v", got, fault)
	}
}

func TestLargeArgumentsAreCheckedToTheEnd(t *testing.T) {
	const schema = `{"type":"object","properties":{"l":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"z":{"type":"integer"}}}`
	args := `{"l":[` + strings.Repeat("1,", 100_000) + `"2"],"z":"3"}`
	if got, fault := validated(schema, args); fault != nil || !strings.HasSuffix(got, `,1,2],"z":3}`) {
		t.Errorf("%.50s, %v", got[max(0, len(got)-50):], fault)
	}
}

// What a schema makes of a few bytes is bounded: the tool judges such arguments.
func TestASchemaThatRefersToItselfInManyWaysIsNotFollowedForEver(t *testing.T) {
	const bomb = `{"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"},{"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}]}]}},"properties":{"a":{"$ref":"#/$defs/A"}}}`
	if got, fault := validated(bomb, `{"a":[1,[2,[725653563933458433]]],"b":1}`); fault != nil || got != `{"a":[1,[2,[725653563933458433]]]}` {
		t.Errorf("%s, %v", got, fault)
	}
}

func TestValidateArgumentsRefuses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"s":1}`, `'s' must be of type string, not number`},
		{`{"i":5.5}`, `'i' must be of type integer, not number`},
		{`{"i":"five"}`, `'i' must be of type integer, not string`},
		{`{"i":"0x10"}`, `'i' must be of type integer, not string`},
		{`{"i":1e400}`, `'i' must be of type integer, not number`},
		{`{"n":"NaN"}`, `'n' must be of type number, not string`},
		{`{"b":1}`, `'b' must be of type boolean, not number`},
		{`{"b":"1"}`, `'b' must be of type boolean, not string`},
		{`{"e":"raw"}`, `'e' must be one of ["RAW","USER"]`},
		{`{"k":3}`, `'k' must be one of [1,2]`},
		{`{"o":[]}`, `'o' must be of type object, not array`},
		{`{"o":{}}`, `required parameter 'o.x' is missing`},
		{`{"o":{"x":null}}`, `required parameter 'o.x' is missing`},
		{`{"l":"a"}`, `'l' must be of type array, not string`},
		{`{"l":["a",{"b":1}]}`, `'l[1]' must be of type string, not object`},
		{`{"rows":[["a"],[{}]]}`, `'rows[1][0]' must be of type string or number or boolean or null, not object`},
		{`[]`, `arguments must be one JSON object`},
		{`{"s`, `arguments are not valid JSON`},
	} {
		got, fault := validated(wide, tc.in)
		want := "Invalid arguments for 't': " + tc.want + ". Its parameters: {"
		if fault == nil || fault.Code != "validation_error" || !strings.HasPrefix(fault.Message, want) {
			t.Errorf("%s: %s, %v", tc.in, got, fault)
		}
	}
}

func TestValidateArgumentsFailsOpenOnOddSchemas(t *testing.T) {
	for _, schema := range []string{``, `{"type":7}`, `nonsense`} {
		if got, fault := validated(schema, `{"a": 1}`); fault != nil || got != `{"a":1}` {
			t.Errorf("%s: %s, %v", schema, got, fault)
		}
	}
	long := `{"type":"object","description":"` + strings.Repeat("ü", 5000) + `","properties":{},"required":["a"]}`
	if _, fault := validated(long, ``); fault == nil || len(fault.Message) > 9000 || !strings.HasSuffix(fault.Message, "…") {
		t.Errorf("a long schema is repeated whole: %v", fault)
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{``, `{"a":[1,],}`, `{"a":{"b":"x"`, `"{\"a\":1}"`, "```json\n{}\n```", `{"a":"\u00`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := toolgroups.RepairArguments(in)
		if err != nil {
			return
		}
		var object map[string]any
		if err := json.Unmarshal(got, &object); err != nil || object == nil {
			t.Fatalf("%q became %q: %v", in, got, err)
		}
		again, err := toolgroups.RepairArguments(got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("repaired again: %q, %v", again, err)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(wide), []byte(`{"i":"42","o":"{\"x\":1}","rows":[[null]]}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"anyOf":[{"type":"array"}]}}}`), []byte(`{"a":[{}]}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"items":[{"$ref":"#"}],"allOf":[{"type":"integer"}]}}}`), []byte(`{"a":"5"}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		params, err := toolgroups.NormalizeParameters(schema)
		if err != nil {
			params = schema
		} else if again, err := toolgroups.NormalizeParameters(params); err != nil || string(again) != string(params) {
			t.Fatalf("normalized again: %s, %v", again, err)
		}
		tool := toolgroups.Tool{Name: "t", Parameters: params}
		got, fault := toolgroups.ValidateArguments(tool, args)
		if fault != nil {
			return
		}
		again, fault := toolgroups.ValidateArguments(tool, got)
		if fault != nil || string(again) != string(got) {
			t.Fatalf("%s, validated again: %s, %v", got, again, fault)
		}
	})
}

// Servers generate such schemas, and fill in the default themselves.
func TestARequiredParameterWithADefaultMayBeMissing(t *testing.T) {
	const schema = `{"type":"object","properties":{"url":{"type":"string"},"full":{"type":"boolean","default":false},` +
		`"in":{"type":"object","properties":{"depth":{"type":"integer","default":1},"at":{"type":"string"}},"required":["depth","at"]}},"required":["url","full"]}`
	for _, args := range []string{`{"url":"x"}`, `{"full":true,"url":"x"}`, `{"in":{"at":"x"},"url":"x"}`} {
		if got, fault := validated(schema, args); fault != nil || got != args {
			t.Errorf("%s became %s, %v", args, got, fault)
		}
	}
	for args, want := range map[string]string{`{"full":true}`: "'url' is missing", `{"url":"x","in":{"depth":2}}`: "'in.at' is missing"} {
		if _, fault := validated(schema, args); fault == nil || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %v", args, fault)
		}
	}
}
