package anthropic_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/provider"
	"oneclaw/internal/emulator/npmtest"
)

// named returns events as the service sends them.
func named(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, e)
	}
	return b.String()
}

// Streams that Anthropic's types and documentation describe are read here as Anthropic's own library reads them.
func TestStreamsAreReadAsByAnthropicsLibrary(t *testing.T) {
	t.Parallel()
	const start = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}`
	begin := func(index int, block string) string {
		return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
	}
	delta := func(index int, of string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, of)
	}
	end := func(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }
	words := func(index int, text string) string {
		return delta(index, `{"type":"text_delta","text":"`+text+`"}`)
	}
	input := func(index int, piece string) string {
		raw, _ := json.Marshal(piece)
		return delta(index, `{"type":"input_json_delta","partial_json":`+string(raw)+`}`)
	}
	tool := func(index int, input string) string {
		return begin(index, fmt.Sprintf(`{"type":"tool_use","id":"c%d","name":"a","input":%s}`, index, input))
	}
	stop := func(reason, more string) []string {
		return []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{` + more + `"output_tokens":7}}`, `{"type":"message_stop"}`}
	}
	const text, thought = `{"type":"text","text":""}`, `{"type":"thinking","thinking":"","signature":""}`
	spoken := []string{begin(0, text), words(0, "Hel"), words(0, "lo"), end(0)}
	streams := map[string][]string{
		"text":                  append(slices.Concat([]string{`{"type":"ping"}`}, spoken), stop("end_turn", "")...),
		"a text that has begun": append([]string{begin(0, `{"type":"text","text":"Hel"}`), words(0, "lo"), end(0)}, stop("end_turn", "")...),
		"several texts":         append([]string{begin(0, text), words(0, "Hel"), end(0), begin(1, text), words(1, "lo"), end(1)}, stop("end_turn", "")...),
		"citations":             append([]string{begin(0, `{"type":"text","text":"","citations":[]}`), delta(0, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1}}`), words(0, "Hello"), end(0)}, stop("end_turn", "")...),
		"thoughts":              append([]string{begin(0, thought), delta(0, `{"type":"thinking_delta","thinking":"Is it"}`), delta(0, `{"type":"thinking_delta","thinking":"?"}`), delta(0, `{"type":"signature_delta","signature":"c2ln"}`), end(0), begin(1, text), words(1, "Hello"), end(1)}, stop("end_turn", "")...),
		"a signature again":     append([]string{begin(0, thought), delta(0, `{"type":"thinking_delta","thinking":"Yes"}`), delta(0, `{"type":"signature_delta","signature":"c2ln"}`), delta(0, `{"type":"signature_delta","signature":"bmV3"}`), end(0), begin(1, text), words(1, "Hello"), end(1)}, stop("end_turn", "")...),
		"a thought not shown":   append([]string{begin(0, thought), delta(0, `{"type":"signature_delta","signature":"c2ln"}`), end(0), begin(1, text), words(1, "Hello"), end(1)}, stop("end_turn", "")...),
		"calls":                 append([]string{begin(0, text), words(0, "Now."), end(0), tool(1, "{}"), input(1, ""), input(1, `{"text"`), input(1, `:"ä"}`), end(1), tool(2, "{}"), input(2, ""), end(2)}, stop("tool_use", "")...),
		"calls by turns":        append([]string{tool(0, "{}"), tool(1, "{}"), input(1, `{"te`), input(0, `{"text":`), input(1, `xt":2}`), input(0, `1}`), end(1), end(0)}, stop("tool_use", "")...),
		"a call in one piece":   append([]string{tool(0, `{"text":"ä"}`), end(0)}, stop("tool_use", "")...),
		"tools of the service":  append([]string{begin(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), input(0, `{"query":"x"}`), end(0), begin(1, `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`), end(1), begin(2, text), words(2, "Hello"), end(2)}, stop("end_turn", "")...),
		"kinds of tomorrow":     append(slices.Concat(spoken, []string{`{"type":"news","x":1}`, begin(1, `{"type":"hologram","text":"x"}`), delta(1, `{"type":"hologram_delta","text":"x"}`), end(1)}), stop("end_turn", "")...),
		"a pause":               append(slices.Clone(spoken), stop("pause_turn", "")...),
		"a stop sequence":       append(slices.Clone(spoken), stop("stop_sequence", "")...),
		"the output limit":      append(slices.Clone(spoken), stop("max_tokens", "")...),
		"the window":            append(slices.Clone(spoken), stop("model_context_window_exceeded", "")...),
		"tokens at the end":     append(slices.Clone(spoken), stop("end_turn", `"input_tokens":20,"cache_read_input_tokens":6,"cache_creation_input_tokens":null,`)...),
		"an error":              append(slices.Clone(spoken), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		"cut":                   spoken[:2],
		"cut before the end":    spoken,
		"nothing":               stop("end_turn", ""),
	}
	names := slices.Sorted(maps.Keys(streams))
	var bodies []string
	for _, name := range names {
		bodies = append(bodies, named(append([]string{start}, streams[name]...)...))
	}
	plain := bodies[slices.Index(names, "text")]
	for name, body := range map[string]string{
		"lines with CR": strings.ReplaceAll(plain, "\n", "\r\n"), "lines of CR alone": strings.ReplaceAll(plain, "\n", "\r"), "a byte order mark": "\ufeff" + plain,
		"comments": ": hello\n\nretry: 5\n" + plain, "more after the end": plain + named(words(0, "!")), "data in two lines": strings.ReplaceAll(plain, `"index":0,`, "\"index\":0,\ndata: "),
	} {
		names, bodies = append(names, name), append(bodies, body)
	}
	for name, content := range map[string]string{
		"end_turn": `{"type":"thinking","thinking":"Is it?","signature":"c2ln"},{"type":"text","text":"Hel","citations":null},{"type":"text","text":"lo"}`,
		"tool_use": `{"type":"text","text":"Now."},{"type":"tool_use","id":"c1","name":"a","input":{"text":"ä"}},{"type":"tool_use","id":"c2","name":"a","input":{}}`, "max_tokens": `{"type":"text","text":"Hel"}`,
	} {
		names = append(names, "no stream, "+name)
		bodies = append(bodies, `{"id":"m","type":"message","role":"assistant","model":"m","content":[`+content+`],"stop_reason":"`+name+`","stop_sequence":null,"usage":{"input_tokens":9,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":7}}`)
	}
	client, asked, answers := npmtest.ReadByLibraries(t, bodies, func(int) (string, bool) { return "messages", true })
	for i, theirs := range answers {
		c, err := anthropic.New(anthropic.Config{BaseURL: asked[i].URL, APIKey: key, Model: "m", HTTPClient: client, Retry: provider.Retry{MaxAttempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		var shown strings.Builder
		ours, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Hi"}}}, func(d agent.Delta) { shown.WriteString(d.Text) })
		if err != nil || theirs.Error != "" {
			if (err != nil) != (theirs.Error != "") {
				t.Errorf("%s: %v, the library: %q %+v", names[i], err, theirs.Error, theirs)
			}
			continue
		}
		read := npmtest.Answer{Text: ours.Text, Shown: shown.String(), Thinking: thoughts(ours.Reasoning), Input: ours.Usage.Input, Output: ours.Usage.Output, Stop: theirs.Stop}
		for _, c := range ours.Calls {
			read.Calls = append(read.Calls, npmtest.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		if names[i] == "a text that has begun" || names[i] == "more after the end" || asked[i].Way == "whole" {
			read.Shown = theirs.Shown // the library shows neither a beginning nor what is no stream, and does not stop at the end
		}
		if diff := cmp.Diff(theirs, read); diff != "" {
			t.Errorf("%s (-library +ours):\n%s", names[i], diff)
		}
		if cut := slices.Contains([]string{"max_tokens", "model_context_window_exceeded"}, theirs.Stop); ours.Truncated != cut {
			t.Errorf("%s: cut off %v, the library: %s", names[i], ours.Truncated, theirs.Stop)
		}
	}
}

// thoughts returns the thoughts that go back, with their signatures.
func thoughts(reasoning string) string {
	var blocks []struct {
		Raw struct{ Type, Thinking, Signature string }
	}
	if at := strings.Index(reasoning, "["); at < 0 || json.Unmarshal([]byte(reasoning[at:]), &blocks) != nil {
		return ""
	}
	var all string
	for _, b := range blocks {
		if b.Raw.Type == "thinking" {
			all += b.Raw.Thinking + " " + b.Raw.Signature
		}
	}
	return all
}

// No kind of event, block or delta that the newest types describe costs an answer, or is taken for a part of it.
func TestEachKindThatTheTypesDescribeIsRead(t *testing.T) {
	t.Parallel()
	contract, err := os.ReadFile("../../internal/emulator/anthropic/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	say := []string{began(1), `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}`}
	rest := append([]string{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`}, ended("end_turn", 1)...)
	streams := map[string][]string{}
	for kind, sample := range npmtest.Samples(t, contract, "ContentBlock") {
		if kind != "text" && kind != "tool_use" {
			streams[kind] = []string{`{"type":"content_block_start","index":1,"content_block":` + sample + `}`, `{"type":"content_block_stop","index":1}`}
		}
	}
	for kind, sample := range npmtest.Samples(t, contract, "RawContentBlockDelta") {
		if kind != "text_delta" {
			streams[kind] = []string{`{"type":"content_block_delta","index":0,"delta":` + sample + `}`}
		}
	}
	for kind, sample := range npmtest.Samples(t, contract, "RawMessageStreamEvent") {
		if kind == "message_start" || kind == "content_block_stop" {
			streams[kind] = []string{strings.ReplaceAll(sample, `"index":1`, `"index":0`)}
		}
	}
	for kind, events := range streams {
		c, _ := played(t, slices.Concat(say, events, rest))
		var shown strings.Builder
		got, err := c.Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "Hi"}}}, func(d agent.Delta) { shown.WriteString(d.Text) })
		if err != nil || got.Text != "Hello" || shown.String() != "Hello" || len(got.Calls) > 0 || got.Truncated {
			t.Errorf("%s: %+v, shown %q, %v", kind, got, shown.String(), err)
		}
	}
}
