package toolgroups_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

func TestEncodeTools(t *testing.T) {
	tools := []toolgroups.Tool{
		{Name: "a", Description: `says "<hi>" & ü`, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
		{Name: "b"},
	}
	want := `[{"type":"function","function":{"name":"a","description":"says \"<hi>\" & ü","parameters":{"type":"object","properties":{}}}},` +
		`{"type":"function","function":{"name":"b","description":"","parameters":{"type":"object","properties":{}}}}]`
	if diff := cmp.Diff(want, string(toolgroups.EncodeTools(tools))); diff != "" {
		t.Error(diff)
	}
	if got := string(toolgroups.EncodeTools(nil)); got != "[]" {
		t.Errorf("nothing: %s", got)
	}
}

// Sizes are estimated by four characters a token.
func TestEstimateIsCharactersOverFour(t *testing.T) {
	tools := []toolgroups.Tool{{Name: "a", Description: strings.Repeat("ü", 400)}}
	empty := len(toolgroups.EncodeTools([]toolgroups.Tool{{Name: "a"}}))
	if got, want := toolgroups.EstimateTokens(tools), (empty+400)/4; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestNormalizeParameters(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":         {``, `{"type":"object","properties":{}}`},
		"no properties":   {`{ "type" : "object" }`, `{"type":"object","properties":{}}`},
		"array":           {`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`},
		"array or null":   {`{"type":"object","properties":{"a":{"type":["array","null"]}}}`, `{"type":"object","properties":{"a":{"type":["array","null"],"items":{}}}}`},
		"array of arrays": {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array"}}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"array","items":{}}}}}`},
		"items true":      {`{"type":"object","properties":{"a":{"items":true,"type":"array"}}}`, `{"type":"object","properties":{"a":{"items":{},"type":"array"}}}`},
		"items false":     {`{"type":"object","properties":{"a":{"items":false}}}`, `{"type":"object","properties":{"a":{"items":{}}}}`},
		"tuple": {
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"},{"type":"number"}],"items":false,"maxItems":3}}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{"type":"string"},{"type":"number"}],"items":{"anyOf":[{"type":"number"},{"type":"string"}]},"maxItems":3}}}`,
		},
		"tuple without items": {
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{ "type":"number"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":{"type":"number"}}}}`,
		},
		"tuple of draft 07": {
			`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"number"},{"type":"array"}],"additionalItems":false,"minItems":2}}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"number"},{"type":"array","items":{}}],"items":{"anyOf":[{"type":"number"},{"type":"array","items":{}}]},"minItems":2}}}`,
		},
		"empty tuple":      {`{"type":"object","properties":{"a":{"type":"array","items":[]}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`},
		"array in any of":  {`{"type":"object","properties":{"a":{"anyOf":[{"type":"array"},true]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":{}},true]}}}`},
		"defaults go":      {`{"type":"object","properties":{"a":{"type":"integer","default":5}}}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`},
		"a property named": {`{"type":"object","properties":{"default":{"type":"string"},"items":{"type":"string"},"required":{"type":"array","items":{}}}}`, `{"type":"object","properties":{"default":{"type":"string"},"items":{"type":"string"},"required":{"type":"array","items":{}}}}`},
		"limits stay":      {`{"type":"object","properties":{"a":{"type":"array","minItems":2,"items":{"type":"integer","minimum":1}}},"required":["a"]}`, `{"type":"object","properties":{"a":{"type":"array","minItems":2,"items":{"type":"integer","minimum":1}}},"required":["a"]}`},
		"empty required":   {`{"type":"object","properties":{},"required":[]}`, `{"type":"object","properties":{}}`},
		"order stays":      {`{"type":"object","properties":{"z":{"type":"string"},"a":{"description":"<ü>","type":"string"}}}`, `{"type":"object","properties":{"z":{"type":"string"},"a":{"description":"<ü>","type":"string"}}}`},
		"definitions":      {`{"type":"object","properties":{},"$defs":{"x":{"type":"array"}}}`, `{"type":"object","properties":{},"$defs":{"x":{"type":"array","items":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := toolgroups.NormalizeParameters(json.RawMessage(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNormalizeParametersRefuses(t *testing.T) {
	for _, in := range []string{
		`{`, `[]`, `"object"`, `null`, `{}`, `{"type":"string"}`, `{"type":["object"]}`, `{"Type":"object"}`,
		`{"type":"object","properties":[]}`, `{"type":"object","properties":{"a":{},"a":{}}}`,
		`{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 40) + `{}` + strings.Repeat(`}`, 40) + `}}`,
	} {
		if got, err := toolgroups.NormalizeParameters(json.RawMessage(in)); err == nil {
			t.Errorf("%s: %s", in, got)
		}
	}
}
