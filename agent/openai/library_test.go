package openai_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/internal/emulator/npmtest"
)

// sse returns server-sent events; those of the Responses API have names.
func sse(named bool, events ...string) string {
	var b strings.Builder
	for _, e := range events {
		if name, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`); named {
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + e + "\n\n")
	}
	if !named {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

// Streams that OpenAI's types and documentation describe are read here as OpenAI's own library reads them.
func TestStreamsAreReadAsByOpenAIsLibrary(t *testing.T) {
	t.Parallel()
	streams := map[string]string{}
	for name, choices := range map[string][]string{
		"text":                      {`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`, `{"index":0,"delta":{"content":"Hel"}}`, `{"index":0,"delta":{"content":"lo"}}`, `{"index":0,"delta":{},"finish_reason":"stop"}`},
		"reason beside the text":    {`{"index":0,"delta":{"content":"Hel"},"finish_reason":null}`, `{"index":0,"delta":{"content":"lo"},"finish_reason":"length"}`},
		"refusal":                   {`{"index":0,"delta":{"role":"assistant","refusal":"I"}}`, `{"index":0,"delta":{"refusal":" won't."}}`, `{"index":0,"delta":{},"finish_reason":"stop"}`},
		"filtered":                  {`{"index":0,"delta":{"content":"Hel"}}`, `{"index":0,"delta":{},"finish_reason":"content_filter"}`},
		"two choices":               {`{"index":1,"delta":{"role":"assistant","content":"No"}}`, `{"index":0,"delta":{"content":"Hel"}},{"index":1,"delta":{"content":"pe"}}`, `{"index":0,"delta":{"content":"lo"}}`, `{"index":1,"delta":{},"finish_reason":"length"}`, `{"index":0,"delta":{},"finish_reason":"stop"}`},
		"calls one by one":          {call(0, "one", "a", ""), call(0, "", "", `{\"text\":`), call(0, "", "", `\"ä\"}`), call(1, "two", "b", "{}"), calling},
		"calls by turns":            {call(1, "two", "b", ""), call(0, "one", "a", ""), call(1, "", "", "{"), call(0, "", "", `{\"text\":`), call(1, "", "", "}"), call(0, "", "", `\"ä\"}`), calling},
		"calls in one piece":        {`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"one","type":"function","function":{"name":"a","arguments":"{}"}},{"index":1,"id":"two","type":"function","function":{"name":"b","arguments":"{}"}}]}}`, calling},
		"text between calls":        {call(0, "one", "a", "{"), `{"index":0,"delta":{"content":"Hello"}}`, call(0, "", "", "}"), calling},
		"a call that is cut":        {call(0, "one", "a", `{\"text\":`), `{"index":0,"delta":{},"finish_reason":"length"}`},
		"the same id in each":       {call(0, "one", "a", "{"), call(0, "one", "", "}"), calling},
		"calls with another reason": {call(0, "one", "a", "{}"), `{"index":0,"delta":{},"finish_reason":"stop"}`},
	} {
		events := []string{
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"prompt_filter_results":[]}`,
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null},"finish_reason":null}],"usage":null}`,
		}
		for _, c := range choices {
			events = append(events, `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","obfuscation":"x1","choices":[`+c+`],"usage":null}`)
		}
		events = append(events, `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
		streams["chat, "+name] = sse(false, events...)
	}
	text := streams["chat, text"]
	streams["chat, lines with CR"] = strings.ReplaceAll(text, "\n", "\r\n")
	streams["chat, lines of CR alone"] = strings.ReplaceAll(text, "\n", "\r")
	streams["chat, a byte order mark"] = "\ufeff" + sse(false, `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"}}]}`, `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	streams["chat, comments and other fields"] = ": hello\n\nretry: 5\nid: 1\n" + strings.ReplaceAll(text, "data: ", "id:2\ndata:")
	streams["chat, more after the end"] = text + "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"}}]}\n\n"
	streams["chat, an error"] = sse(false, `{"id":"c","choices":[{"index":0,"delta":{"content":"Hel"}}]}`, `{"error":{"message":"No.","type":"server_error","code":null,"param":null}}`)
	streams["chat, a named error"] = "event: error\n" + sse(false, `{"message":"No.","type":"server_error"}`)
	streams["chat, cut"] = "data: " + `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}` + "\n\n"
	for name, choice := range map[string]string{
		"text":    `"message":{"role":"assistant","content":"Hello","refusal":null,"annotations":[]},"finish_reason":"stop"`,
		"refusal": `"message":{"role":"assistant","content":null,"refusal":"No."},"finish_reason":"stop"`,
		"calls":   `"message":{"role":"assistant","content":null,"tool_calls":[{"id":"one","type":"function","function":{"name":"a","arguments":"{\"text\":1}"}},{"id":"two","type":"function","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"tool_calls"`,
		"limit":   `"message":{"role":"assistant","content":"Hel"},"finish_reason":"length"`,
	} {
		streams["chat, no stream, "+name] = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"logprobs":null,` + choice + `}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
	}
	maps.Copy(streams, responseStreams())

	names := slices.Sorted(maps.Keys(streams))
	var bodies []string
	for _, name := range names {
		bodies = append(bodies, streams[name])
	}
	client, asked, answers := npmtest.ReadByLibraries(t, bodies, func(i int) (string, bool) {
		api, _, _ := strings.Cut(names[i], ",")
		return api, strings.Contains(names[i], "call")
	})
	for i, theirs := range answers {
		c, err := openai.New(openai.Config{BaseURL: asked[i].URL, Model: "m", APIKey: key, API: asked[i].API, HTTPClient: client, Retry: provider.Retry{MaxAttempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		var deltas []agent.Delta
		ours, err := c.Complete(t.Context(), question(), func(d agent.Delta) { deltas = append(deltas, d) })
		if err != nil || theirs.Error != "" {
			// finalResponse of openai 7.59.0 takes a response that breaks off for an answer, its other helpers do not.
			if (err != nil) != (theirs.Error != "" || names[i] == "responses, cut") {
				t.Errorf("%s: %v, the library: %q %+v", names[i], err, theirs.Error, ours)
			}
			continue
		}
		read := npmtest.Answer{Text: ours.Text, Shown: visible(deltas), Input: ours.Usage.Input, Output: ours.Usage.Output, Stop: theirs.Stop}
		for _, c := range ours.Calls {
			read.Calls = append(read.Calls, npmtest.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		if names[i] == "chat, two choices" || asked[i].Way == "whole" {
			theirs.Shown = read.Shown // the library shows all choices, and nothing without a stream
		}
		if diff := cmp.Diff(theirs, read); diff != "" {
			t.Errorf("%s (-library +ours):\n%s", names[i], diff)
		}
		if cut := slices.Contains([]string{"length", "content_filter", "max_output_tokens"}, theirs.Stop); ours.Truncated != cut {
			t.Errorf("%s: cut off %v, the library: %s", names[i], ours.Truncated, theirs.Stop)
		}
	}
}

const calling = `{"index":0,"delta":{},"finish_reason":"tool_calls"}`

// call returns a choice with a piece of a call, whose first one has its id and name.
func call(index int, id, name, arguments string) string {
	piece := `{"index":` + string(rune('0'+index))
	if id != "" {
		piece += `,"id":"` + id + `","type":"function"`
	}
	function := `"arguments":"` + arguments + `"`
	if name != "" {
		function = `"name":"` + name + `",` + function
	}
	return `{"index":0,"delta":{"tool_calls":[` + piece + `,"function":{` + function + `}}]}}`
}

// responseStreams returns streams of the Responses API.
func responseStreams() map[string]string {
	const tokens = `"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}`
	response := func(kind, status, more string) string {
		return `{"type":"response.` + kind + `","sequence_number":1,"response":{"id":"resp","object":"response","status":"` + status + `","model":"m",` + more + `}}`
	}
	began := response("created", "in_progress", `"output":[]`)
	item := func(index, kind, item string) string {
		return `{"type":"response.output_item.` + kind + `","sequence_number":1,"output_index":` + index + `,"item":` + item + `}`
	}
	about := func(index, kind, more string) string {
		return `{"type":"response.` + kind + `","sequence_number":1,"output_index":` + index + `,"item_id":"i` + index + `",` + more + `}`
	}
	message := func(status, content string) string {
		return `{"type":"message","id":"i0","role":"assistant","status":"` + status + `","content":[` + content + `]}`
	}
	part := func(text string) string {
		return `{"type":"output_text","text":"` + text + `","annotations":[],"logprobs":[]}`
	}
	function := func(index, name, arguments string) string {
		return `{"type":"function_call","id":"i` + index + `","call_id":"c` + index + `","name":"` + name + `","arguments":"` + arguments + `","status":"completed"}`
	}
	begun := []string{item("0", "added", message("in_progress", "")), about("0", "content_part.added", `"content_index":0,"part":`+part("")), about("0", "output_text.delta", `"content_index":0,"delta":"Hel"`)}
	spoken := slices.Concat(begun, []string{about("0", "output_text.delta", `"content_index":0,"delta":"lo"`), about("0", "output_text.done", `"content_index":0,"text":"Hello"`), about("0", "content_part.done", `"content_index":0,"part":`+part("Hello")), item("0", "done", message("completed", part("Hello")))})
	calls := []string{
		item("0", "added", function("0", "a", "")), item("1", "added", function("1", "b", "")),
		about("1", "function_call_arguments.delta", `"delta":"{"`), about("0", "function_call_arguments.delta", `"delta":"{\"text\":"`),
		about("1", "function_call_arguments.delta", `"delta":"}"`), about("1", "function_call_arguments.done", `"arguments":"{}"`), item("1", "done", function("1", "b", "{}")),
		about("0", "function_call_arguments.delta", `"delta":"1}"`), about("0", "function_call_arguments.done", `"arguments":"{\"text\":1}"`), item("0", "done", function("0", "a", `{\"text\":1}`)),
	}
	both := function("0", "a", `{\"text\":1}`) + "," + function("1", "b", "{}")
	streams := map[string][]string{
		"text":                       append(spoken, response("completed", "completed", `"output":[`+message("completed", part("Hello"))+`],`+tokens)),
		"text, the output left out":  append(spoken, response("completed", "completed", tokens)),
		"calls by turns":             append(calls, response("completed", "completed", `"output":[`+both+`],`+tokens)),
		"calls, the output left out": append(calls, response("completed", "completed", tokens)),
		"a whole answer alone":       {response("completed", "completed", `"output":[`+message("completed", part("Hello"))+`],`+tokens)},
		"a message of two parts":     {response("completed", "completed", `"output":[`+message("completed", part("Hel")+","+part("lo"))+`],`+tokens)},
		"a refusal":                  {response("completed", "completed", `"output":[`+message("completed", `{"type":"refusal","refusal":"No."}`)+`],`+tokens)},
		"incomplete":                 append(begun, response("incomplete", "incomplete", `"incomplete_details":{"reason":"max_output_tokens"},"output":[`+message("incomplete", part("Hel"))+`],`+tokens)),
		"incomplete, no output":      append(begun, response("incomplete", "incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`+tokens)),
		"filtered":                   append(begun, response("incomplete", "incomplete", `"incomplete_details":{"reason":"content_filter"},"output":[`+message("incomplete", part("Hel"))+`],`+tokens)),
		"failed":                     append(begun, response("failed", "failed", `"error":{"code":"server_error","message":"No."},"output":[]`)),
		"an error":                   append(begun, `{"type":"error","sequence_number":1,"code":"server_error","message":"No.","param":null}`),
		"cut":                        begun,
		"a call that is cut":         {item("0", "added", function("0", "a", "")), about("0", "function_call_arguments.delta", `"delta":"{\"text\":"`), response("incomplete", "incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`+tokens)},
	}
	out := map[string]string{}
	for name, events := range streams {
		out["responses, "+name] = sse(true, append([]string{began, response("in_progress", "in_progress", `"output":[]`)}, events...)...)
	}
	for name, output := range map[string]string{"text": message("completed", part("Hello")), "calls": both} {
		out["responses, no stream, "+name] = `{"id":"resp","object":"response","created_at":1,"status":"completed","model":"m","error":null,"incomplete_details":null,"output":[` + output + `],` + tokens + `}`
	}
	out["responses, no stream, limit"] = `{"id":"resp","object":"response","created_at":1,"status":"incomplete","model":"m","error":null,"incomplete_details":{"reason":"max_output_tokens"},"output":[` + message("incomplete", part("Hel")) + `],` + tokens + `}`
	return out
}

// No kind of event and no kind of item that the newest types describe costs an answer, or is taken for a part of it.
func TestEachKindThatTheTypesDescribeIsRead(t *testing.T) {
	t.Parallel()
	contract, err := os.ReadFile("../../internal/emulator/openai/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string]answer{}
	for kind, sample := range npmtest.Samples(t, contract, "ResponseStreamEvent") {
		switch kind {
		case "response.completed", "response.failed", "response.incomplete", "error", "response.output_text.delta", "response.refusal.delta": // are about the answer
		default:
			streams[kind] = events(created, textHel, sample, textLo, completed(itemText))
			if !strings.HasPrefix(kind, "response.output_item.") {
				streams[kind+", deltas alone"] = events(created, textHel, sample, textLo, completed())
			}
		}
	}
	for kind, sample := range npmtest.Samples(t, contract, "ResponseOutputItem") {
		if kind != "message" && kind != "function_call" {
			streams["item "+kind] = events(created, textHel, textLo, done(sample), completed(sample, itemText, sample))
		}
	}
	for kind, a := range streams {
		c, _ := client(t, openai.Config{Model: "gpt-6-sol", Retry: provider.Retry{MaxAttempts: 1}}, a)
		var deltas []agent.Delta
		got, err := c.Complete(t.Context(), question(), func(d agent.Delta) { deltas = append(deltas, d) })
		if err != nil || got.Text != "Hello" || visible(deltas) != "Hello" || len(got.Calls) > 0 || got.Truncated {
			t.Errorf("%s: %+v, shown %q, %v", kind, got, visible(deltas), err)
		}
	}
}
