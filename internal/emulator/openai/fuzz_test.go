package openai_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/internal/emulator/openai"
)

// FuzzChat sends anything as a request: it is answered or refused, never more.
func FuzzChat(f *testing.F) {
	f.Add(`{"model":"emulator","messages":[` + user + `]}`)
	f.Add(`{"model":"emulator","stream":true,"messages":[` + user + "," + calls + "," + resA + "," + resB + `],"tools":[` + tool("x", `{"type":"object"}`) + `]}`)
	f.Add(`{"model":"emulator","messages":[{"role":"user","content":[{"type":"text"}]}],"tools":[{}]}`)
	s, err := openai.New(openai.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch w.Code {
		case 200, 400, 404, 413:
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

// TestOfflineCallsOnlyWhatIsOffered lets the offline model meet any mix of tools,
// groups and results.
func TestOfflineCallsOnlyWhatIsOffered(t *testing.T) {
	known := []string{"load_tool_group", "pdf_info", "pdf_extract_text", "get_current_time", "save_memory", "read_file", "write_file", "gmail_search"}
	said := []string{
		"hi", "summarise the pdf a.pdf", "how many pages?", "page 3 of the document", "find x in it", "what time is it",
		"remember that I am tall", "new mail?", "load pdf", `write "a" to b.txt`, "read file b.txt", "list groups", "qwerty",
	}
	results := []string{"", "Loaded 3 tools from group 'PDF Tools':", "Pages: 3\nTitle: T", "--- Page 1 ---\nText. More text.", "Error: no"}
	rapid.Check(t, func(t *rapid.T) {
		req := openai.Request{Messages: []openai.Message{
			{Role: "system", Content: "## Available Tool Groups\n\nx\n\n- pdf: PDF\n- google_gmail: mail"},
			{Role: "user", Content: rapid.SampledFrom(said).Draw(t, "said") + rapid.SampledFrom([]string{"", "\n[file: inbox/a.pdf]"}).Draw(t, "file")},
		}}
		for _, name := range known {
			if rapid.Bool().Draw(t, name) {
				req.Tools = append(req.Tools, openai.Tool{Name: name})
			}
		}
		for round := range 10 {
			reply, err := openai.Offline{}.Reply(context.Background(), req)
			if err != nil || reply.Text == "" && len(reply.Calls) == 0 {
				t.Fatalf("no answer: %v", err)
			}
			if len(reply.Calls) == 0 {
				return
			}
			if round >= 6 {
				t.Fatal("more than six rounds")
			}
			req.Messages = append(req.Messages, openai.Message{Role: "assistant", ToolCalls: reply.Calls})
			for _, c := range reply.Calls {
				if !slices.Contains(req.ToolNames(), c.Name) {
					t.Fatalf("%s is not offered", c.Name)
				}
				req.Messages = append(req.Messages, openai.Message{Role: "tool", Content: rapid.SampledFrom(results).Draw(t, "result")})
			}
		}
	})
}

// BenchmarkStream is a streamed answer of a fixed brain, without the network.
func BenchmarkStream(b *testing.B) {
	s, err := openai.New(openai.Config{Responder: openai.ResponderFunc(say(strings.Repeat("Ten words of an answer that is not very long. ", 5)))})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	body := `{"model":"emulator","stream":true,"user":"u","messages":[{"role":"system","content":"` + strings.Repeat("words ", 1500) + `"},` + user + `],"tools":[` + tool("x", `{"type":"object"}`) + `]}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Body.String())
		}
	}
}
