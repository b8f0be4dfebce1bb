package openai_test

import (
	"testing"

	"oneclaw/internal/emulator/openai"
)

// Behind a bridge the offline model finds a tool, calls it through the bridge, and reads
// the answer as if it had called it itself.
func TestOfflineBehindABridge(t *testing.T) {
	system := openai.Message{Role: "system", Content: "You help.\n\n## Available Tool Groups\n\n- pdf: Read PDF files"}
	question := openai.Message{Role: "user", Content: "How many pages does the PDF have?\n[file: report.pdf]"}
	loaded := "Loaded 1 tools from group 'Pdf'. Not listed as tools of their own.\n- pdf_info(path) — Facts."
	for name, tc := range map[string]struct {
		tools  []string
		find   openai.ToolCall
		answer string
	}{
		"by a load": {
			tools: []string{"load_tool_group", "tool_call"}, answer: loaded,
			find: openai.ToolCall{Name: "load_tool_group", Arguments: `{"group_name":"pdf"}`},
		},
		"by a search": {
			tools: []string{"load_tool_group", "tool_search", "tool_describe", "tool_call"}, answer: `{"matches":[{"name":"pdf_info"}]}`,
			find: openai.ToolCall{Name: "tool_search", Arguments: `{"query":"pdf info"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := openai.Request{Messages: []openai.Message{system, question}}
			for _, tool := range tc.tools {
				req.Tools = append(req.Tools, openai.Tool{Name: tool})
			}
			step := func(want openai.ToolCall, result string) {
				t.Helper()
				reply, err := openai.Offline{}.Reply(t.Context(), req)
				if err != nil || len(reply.Calls) != 1 || reply.Calls[0].Name != want.Name || reply.Calls[0].Arguments != want.Arguments {
					t.Fatalf("replied %+v, %v; want %+v", reply, err, want)
				}
				req.Messages = append(req.Messages,
					openai.Message{Role: "assistant", ToolCalls: []openai.ToolCall{{ID: want.Name, Name: want.Name, Arguments: want.Arguments}}},
					openai.Message{Role: "tool", ToolCallID: want.Name, Content: result})
			}
			step(tc.find, tc.answer)
			step(openai.ToolCall{Name: "tool_call", Arguments: `{"arguments":{"path":"report.pdf"},"name":"pdf_info"}`}, `{"page_count":3}`)
			reply, err := openai.Offline{}.Reply(t.Context(), req)
			if err != nil || len(reply.Calls) != 0 || reply.Text == "" {
				t.Errorf("answered %+v, %v", reply, err)
			}
		})
	}
}
