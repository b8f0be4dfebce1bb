package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

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

// FuzzMessages: each line that comes through is a message that the library can decode, and comes through
// again.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		"{}\n[info] x\n\n" + `{"jsonrpc":"2.0","method":"a","id":1}` + "\r\n{",
		`[{"jsonrpc":"2.0","id":"1","result":{}},{"jsonrpc":"2.0","id":2,"error":"no"}]` + "\n",
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":1},null]},"error":{"code":"x"}}` + "\n",
		`{"level":30,"msg":"x"}` + "\n" + `{"jsonrpc":"2.0","id":null,"error":{}}` + "\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, output string) {
		const limit = 200
		got, err := io.ReadAll(mcp.Messages(strings.NewReader(output), limit))
		for line := range strings.Lines(output) {
			if len(line) > limit && err == nil {
				t.Error("a line above the limit came through")
			}
		}
		for line := range bytes.Lines(got) {
			if _, err := jsonrpc.DecodeMessage(line); err != nil {
				t.Errorf("of %q came %q: %v", output, line, err)
			}
		}
		again, err := io.ReadAll(mcp.Messages(bytes.NewReader(got), 10*limit))
		if err != nil || string(again) != string(got) {
			t.Errorf("of %q came %q, %v", got, again, err)
		}
	})
}

// FuzzEvents: the data of each event without a name is a message that the library can decode, on one line.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		": comment\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"a\"}\n\n", "event: endpoint\ndata: /messages\n\n",
		"data\nretry:5\r\n\r\ndata: {}", "event:message\ndata:[{\"jsonrpc\":\"2.0\",\"id\":1},{\"jsonrpc\":\"2.0\",\"method\":\"b\"}]\n\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		const limit = 200
		got, err := io.ReadAll(mcp.Events(strings.NewReader(stream), limit))
		if err != nil && len(stream) <= limit {
			t.Errorf("%q: %v", stream, err)
		}
		for event := range strings.SplitSeq(string(got), "\n\n") {
			name := ""
			for line := range strings.SplitSeq(event, "\n") {
				if value, ok := strings.CutPrefix(line, "event: "); ok {
					name = value
				}
			}
			for line := range strings.SplitSeq(event, "\n") {
				data, ok := strings.CutPrefix(line, "data: ")
				if !ok || name != "" && name != "message" {
					continue
				}
				if _, err := jsonrpc.DecodeMessage([]byte(data)); err != nil {
					t.Errorf("of %q came %q: %v", stream, got, err)
				}
			}
		}
	})
}
