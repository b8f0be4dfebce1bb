package toolgroups_test

import (
	"encoding/json"
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
		{`{"n":"3.5"}`, `{"n":3.5}`},
		{`{"n":7}`, `{"n":7}`},
		{`{"b":"True"}`, `{"b":true}`},
		{`{"e":"RAW","k":2}`, `{"e":"RAW","k":2}`},
		{`{"k":"2"}`, `{"k":2}`},
		{`{"o":"{\"x\":1}","l":"[\"a\"]"}`, `{"l":["a"],"o":{"x":1}}`},
		{`{"o":{"x":"1"}}`, `{"o":{"x":1}}`},
		{`{"rows":[["a",1,true,null],[]]}`, `{"rows":[["a",1,true,null],[]]}`},
		{`{"s":null,"maybe":null}`, `{"maybe":null}`},
		{`{"unknown":{"a":[1]}}`, `{"unknown":{"a":[1]}}`},
		{`{"s":"x","S":"y"}`, `{"s":"x"}`},
		{`{"any":[1,"<b>"],"yes":7}`, `{"any":[1,"<b>"],"yes":7}`},
		{``, `{}`},
	} {
		if got, fault := validated(wide, tc.in); fault != nil || got != tc.want {
			t.Errorf("%s: %s, %v", tc.in, got, fault)
		}
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

// Servers generate such schemas, and fill in the default themselves (E3).
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
