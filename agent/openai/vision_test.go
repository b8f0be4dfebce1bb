package openai_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
)

// workspace is files by their names; reading honours the limit.
type workspace map[string][]byte

func (w workspace) read(name string, limit int64) ([]byte, error) {
	data, ok := w[name]
	switch {
	case !ok:
		return nil, errors.New("no such file")
	case int64(len(data)) > limit:
		return nil, errors.New("too large")
	}
	return data, nil
}

func pictures(t *testing.T) workspace {
	t.Helper()
	var p, j bytes.Buffer
	gray := image.NewGray(image.Rect(0, 0, 9, 9))
	if err := errors.Join(png.Encode(&p, gray), jpeg.Encode(&j, gray, nil)); err != nil {
		t.Fatal(err)
	}
	return workspace{
		"a.png": p.Bytes(), "b.jpg": j.Bytes(), "wrong.jpg": p.Bytes(), "none": p.Bytes(), "old.png": p.Bytes(),
		"text.png": []byte("no picture"), "doc.pdf": []byte("%PDF-1.7"),
		"large.png": append(bytes.Clone(p.Bytes()), make([]byte, 6<<20)...),
	}
}

func files(names ...string) (list []toolgroups.File) {
	for _, name := range names {
		list = append(list, toolgroups.File{Path: name, Picture: &toolgroups.Picture{Size: 1}})
	}
	return list
}

// seer asks a strict server over one of the APIs and returns what it understood.
func seer(t *testing.T, cfg openai.Config) func(agent.Request) []emulator.Message {
	t.Helper()
	srv, err := emulator.New(emulator.Config{Models: []string{cfg.Model}, Responder: emulator.ResponderFunc(func(context.Context, emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "fine"}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	if cfg.BaseURL, err = srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg.HTTPClient, cfg.Retry.MaxAttempts = &http.Client{Transport: transport}, 1
	c, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(req agent.Request) []emulator.Message {
		t.Helper()
		if _, err := c.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		all := srv.Requests()
		return all[len(all)-1].Messages
	}
}

func TestPicturesAreShownWithTheirMessages(t *testing.T) {
	saved := pictures(t)
	for api, model := range map[string]string{"chat": "gpt-4.1", "responses": "gpt-6-sol"} {
		ask := seer(t, openai.Config{Model: model})
		for name, tc := range map[string]struct {
			files []toolgroups.File
			text  string
			want  []string
		}{
			"one":            {files("a.png"), "look", []string{"a.png"}},
			"several":        {files("a.png", "b.jpg"), "look", []string{"a.png", "b.jpg"}},
			"without a text": {files("a.png"), "", []string{"a.png"}},
			"by its bytes":   {files("wrong.jpg", "none"), "look", []string{"a.png", "a.png"}},
			"vanished":       {files("gone.png", "a.png"), "look", []string{"a.png"}},
			"all vanished":   {files("gone.png"), "look", nil},
			"no pictures":    {files("text.png", "doc.pdf"), "look", nil},
			"too large":      {files("large.png"), "look", nil},
			"too many":       {files(strings.Fields(strings.Repeat("a.png ", 24))...), "look", strings.Fields(strings.Repeat("a.png ", 14))},
		} {
			t.Run(fmt.Sprint(api, " ", name), func(t *testing.T) {
				got := ask(agent.Request{System: "You help.", ReadFile: saved.read, Messages: []agent.Message{
					{Role: agent.RoleUser, Text: "before", Files: files("old.png")},
					{Role: agent.RoleAssistant, Text: "I saw.", Final: true},
					{Role: agent.RoleUser, Text: tc.text, Files: tc.files},
					{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "x", Arguments: "{}"}}},
					{Role: agent.RoleTool, CallID: "1", Text: "done"},
					{Role: agent.RoleUser, Text: "Answer now."},
				}})
				var want []emulator.Picture
				for _, name := range tc.want {
					want = append(want, emulator.Picture{MIME: http.DetectContentType(saved[name]), Data: saved[name]})
				}
				for i, m := range got {
					if want := i == 1 && name != "too many"; i != 3 && (len(m.Pictures) == 1) != want {
						t.Errorf("%s message %d has %d pictures", m.Role, i, len(m.Pictures))
					}
				}
				if diff := cmp.Diff(want, got[3].Pictures); diff != "" {
					t.Errorf("pictures (-want +got):\n%s", diff)
				}
				text := tc.text
				for _, f := range tc.files {
					text = strings.TrimPrefix(text+"\n[file: "+f.Path+"]", "\n")
				}
				if got[3].Content != text {
					t.Errorf("text %q", got[3].Content)
				}
			})
		}
	}
}

func TestPicturesOfJoinedMessages(t *testing.T) {
	saved := pictures(t)
	got := seer(t, openai.Config{Model: "claude-5"})(agent.Request{ReadFile: saved.read, Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "one", Files: files("old.png")},
		{Role: agent.RoleUser, Text: "two", Files: files("b.jpg")},
		{Role: agent.RoleUser, Text: "Your last reply was empty."},
	}})
	if len(got) != 1 || len(got[0].Pictures) != 2 || got[0].Pictures[1].MIME != "image/jpeg" {
		t.Errorf("got %+v", got)
	}
}

func TestWhoSees(t *testing.T) {
	saved := pictures(t)
	req := agent.Request{ReadFile: saved.read, Messages: []agent.Message{{Role: agent.RoleUser, Text: "look", Files: files("a.png")}}}
	for model, sees := range map[string]bool{
		"gpt-4o": true, "gpt-4o-mini": true, "chatgpt-4o-latest": true, "gpt-4.1-mini": true, "gpt-5.2": true, "gpt-6": true, "gpt-12": true,
		"ft:gpt-4o:acme": true, "openai/gpt-5": true, "claude-sonnet-4-5": true, "anthropic/claude-3.5-sonnet": true,
		"models/gemini-2.5-pro": true, "Gemini-3-Flash": true,
		"o3": true, "qwen2.5-vl-72b": true, "pixtral-large": true, "grok-4": true, "llama-4-scout": true,
		// Of whom nothing is known, that is tried.
		"gpt-4": true, "llama-3": true, "my-gpt-4o-clone": true,
		"gpt-3.5-turbo": false, "claude-2.1": false, "claude-instant-1": false, "gemini-pro": false,
		"gpt-4o-audio-preview": false, "deepseek-chat": false, "o3-mini": false,
	} {
		body := sent(t, openai.Config{Model: model}, req)
		if got := strings.Contains(body, `"image_url":{"url":"data:image/png;base64,iVBOR`); got != sees {
			t.Errorf("%s is shown pictures: %v", model, got)
		}
	}
	if body := sent(t, openai.Config{Model: "gpt-4o"}, agent.Request{Messages: req.Messages}); strings.Contains(body, "image_url") {
		t.Error("a picture came without a reader")
	}
}

// A model that takes no pictures after all still answers the text.
func TestRefusedPicturesAreLeftOut(t *testing.T) {
	saved := pictures(t)
	c, p := client(t, openai.Config{Model: "gpt-4o", Retry: provider.Retry{MaxAttempts: 1}}, refusal(400, "invalid_value", "image input is not supported"), stream(hello, stop))
	got, err := c.Complete(t.Context(), agent.Request{ReadFile: saved.read, Messages: []agent.Message{{Role: agent.RoleUser, Text: "look", Files: files("a.png")}}}, nil)
	if err != nil || got.Text != "Hel" {
		t.Fatalf("%+v, %v", got, err)
	}
	if !strings.Contains(p.bodies[0], "image_url") || strings.Contains(p.bodies[1], "image_url") || !strings.Contains(p.bodies[1], "[file: a.png, a picture, which you cannot see]") {
		t.Errorf("asked %q", p.bodies)
	}
	c, _ = client(t, openai.Config{Model: "gpt-4o"}, refusal(400, "", "no"), refusal(400, "", "still no"))
	_, err = c.Complete(t.Context(), agent.Request{ReadFile: saved.read, Messages: []agent.Message{{Role: agent.RoleUser, Files: files("a.png")}}}, nil)
	if kindOf(t, err).Kind != agent.KindRejected {
		t.Errorf("got %v", err)
	}
}

// TestKeptPicturesKeepThePrefix says that each request of a conversation with pictures, of
// people and of tools, with quotes and with what is said while tools run, begins like the one
// before it.
func TestKeptPicturesKeepThePrefix(t *testing.T) {
	saved := pictures(t)
	history := []agent.Message{
		{Role: agent.RoleUser, Text: "what is it?", Files: files("a.png", "b.jpg")},
		{Role: agent.RoleAssistant, Text: "A square.", Final: true},
		{Role: agent.RoleUser, Text: "show me the page"},
		{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "x", Arguments: "{}"}, {ID: "2", Name: "x", Arguments: "{}"}}},
		{Role: agent.RoleTool, CallID: "1", Text: "done", Files: files("old.png")},
		{Role: agent.RoleTool, CallID: "2", Text: "done"},
		{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "3", Name: "x", Arguments: "{}"}}},
		{Role: agent.RoleTool, CallID: "3", Text: "done", Files: files("none")},
		{Role: agent.RoleUser, Text: "and its colour?"}, // the turn before it failed
		{Role: agent.RoleAssistant, Text: "Gray.", Final: true},
		{Role: agent.RoleUser, Text: "thanks", Quoted: "[quoted, replied to, by you]\n> Gray.\n[End of what is quoted.]"},
		{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "4", Name: "x", Arguments: "{}"}}},
		{Role: agent.RoleTool, CallID: "4", Text: "done"},
		{Role: agent.RoleUser, Text: "first this", JoinedRef: "b"},
		{Role: agent.RoleUser, Text: "", Sender: "Ann", Quoted: "[quoted, forwarded, first written by somebody]\n> x\n[End of what is quoted.]", JoinedRef: "c"},
		{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "5", Name: "x", Arguments: "{}"}}},
		{Role: agent.RoleTool, CallID: "5", Text: "done"},
		{Role: agent.RoleUser, Text: "then that", JoinedRef: "d"},
		{Role: agent.RoleAssistant, Text: "Yes.", Final: true},
		{Role: agent.RoleUser, Text: "[earlier]", Quoted: "[quoted, earlier in this thread, by \"Bob\"]\n> y\n[End of what is quoted.]", Recalled: "Ann likes gray."},
	}
	for _, model := range []string{"gpt-4.1", "mistral-large-latest"} {
		before := ""
		for n := range history {
			if history[n].Role == agent.RoleAssistant || n+1 < len(history) && (history[n+1].Role == agent.RoleTool || history[n+1].JoinedRef != "") || n == 7 {
				continue // no request is made there, or its last message grows
			}
			body := sent(t, openai.Config{Model: model}, agent.Request{ReadFile: saved.read, Messages: history[:n+1]})
			body = strings.TrimSuffix(body, "]}")
			if !strings.HasPrefix(body, before) {
				t.Errorf("%s: the request of message %d does not begin like the one before it", model, n)
			}
			before = body
		}
		if n := strings.Count(before, "base64,"); n != 4 {
			t.Errorf("%s is shown %d pictures", model, n)
		}
	}
	for _, model := range []string{"gpt-4.1", "gpt-6-sol"} { // strict servers of both APIs
		n := 0
		for _, m := range seer(t, openai.Config{Model: model})(agent.Request{ReadFile: saved.read, Messages: history}) {
			n += len(m.Pictures)
		}
		if n != 4 {
			t.Errorf("%s is shown %d pictures", model, n)
		}
	}
}

// TestBlindModelsAreTold says what a model reads that cannot see, or is not shown a picture any
// more, and that of a file that has changed.
func TestBlindModelsAreTold(t *testing.T) {
	saved := pictures(t)
	gone, other := files("a.png"), files("b.jpg")
	gone[0].Picture.Gone, other[0].Picture.Sum = true, "00"
	req := agent.Request{ReadFile: saved.read, Messages: []agent.Message{
		{Role: agent.RoleUser, Text: "before", Files: gone},
		{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "1", Name: "x", Arguments: "{}"}}},
		{Role: agent.RoleTool, CallID: "1", Text: "done", Files: files("old.png")},
		{Role: agent.RoleUser, Text: "look", Files: other},
	}}
	blind, sees := sent(t, openai.Config{Model: "gpt-3.5-turbo"}, req), sent(t, openai.Config{Model: "gpt-4o"}, req)
	for _, want := range []string{`before\n[file: a.png, a picture, which you cannot see]`, `done\n[file: old.png, a picture, which you cannot see]`, `[file: b.jpg, a picture, which you cannot see]`} {
		if !strings.Contains(blind, want) || strings.Contains(sees, want) {
			t.Errorf("%q is missing, or told a model that sees\n%s\n%s", want, blind, sees)
		}
	}
	if strings.Count(sees, "base64,") != 1 || !strings.Contains(sees, `a.png, a picture, which you are not shown any more]`) || !strings.Contains(sees, "[made by tools: old.png]") {
		t.Errorf("a model that sees reads %s", sees)
	}
}

// A picture that is refused within the stream of the Responses API is left out of the next request, which
// is sent at once.
func TestAPictureRefusedInAStreamIsLeftOut(t *testing.T) {
	p, _ := emulator.ProfileByName("openai-responses")
	l := newLive(t, p)
	l.think = func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		if len(req.Messages[len(req.Messages)-1].Pictures) > 0 {
			return emulator.Reply{End: emulator.EndError, StreamError: &emulator.Error{Code: "image_parse_error", Message: "The image could not be parsed."}}, nil
		}
		return emulator.Reply{Text: "I cannot see it."}, nil
	}
	got, err := l.model(once).Complete(t.Context(), agent.Request{
		Messages: []agent.Message{{Role: agent.RoleUser, Text: "look", Files: files("a.png")}}, ReadFile: pictures(t).read,
	}, nil)
	if err != nil || got.Text != "I cannot see it." {
		t.Errorf("%+v, %v", got, err)
	}
}
