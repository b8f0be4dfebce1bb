package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// FuzzParameters: what comes through can be registered, and means the same when it
// comes through again.
func FuzzParameters(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"type":["object","null"],"properties":[]}`, `{"$ref":"#/$defs/A","$defs":{"A":{"properties":{"a":true}}}}`,
		`{"anyOf":[{"properties":{"a":{}}},null,1],"required":["a"]}`, `{"allOf":[{"required":["a"]}],"properties":{"a":{"type":"array"}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		out, err := mcp.Parameters(json.RawMessage(schema))
		if err != nil {
			return
		}
		again, err := mcp.Parameters(out)
		var first, second any
		if err != nil || json.Unmarshal(out, &first) != nil || json.Unmarshal(again, &second) != nil || !cmp.Equal(first, second) {
			t.Errorf("%s\nbecame %s\nand then %s, %v", schema, out, again, err)
		}
		nothing := func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return toolgroups.TextResult("") }
		_, err = toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{
			Name: "g", Tools: []toolgroups.Tool{{Name: "t", Parameters: out, Run: nothing}},
		}}})
		if err != nil {
			t.Errorf("%s\nbecame %s: %v", schema, out, err)
		}
	})
}

// FuzzMessages: what comes through are the lines that are JSON objects or lists, in
// order, each whole.
func FuzzMessages(f *testing.F) {
	f.Add("{}\n[info] x\n\n{\"a\":1}\r\n{")
	f.Add(strings.Repeat("x", 100) + "\n[1]\n")
	f.Fuzz(func(t *testing.T, output string) {
		const limit = 64
		got, err := io.ReadAll(mcp.Messages(strings.NewReader(output), limit))
		var want []byte
		for line := range strings.Lines(output) {
			if len(line) > limit {
				if err == nil {
					t.Error("a line above the limit came through")
				}
				break
			}
			trimmed := bytes.TrimSpace([]byte(line))
			if strings.HasSuffix(line, "\n") && len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) {
				want = append(want, line...)
			}
		}
		if string(got) != string(want) {
			t.Errorf("of %q\ncame    %q\ninstead %q", output, got, want)
		}
	})
}
