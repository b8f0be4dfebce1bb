package openai_test

import (
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// gif is a picture of one pixel.
const gif = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="

func TestPicturesAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		part string
		ok   bool
	}{
		"held":             {`{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + gif + `"}}`, true},
		"elsewhere":        {`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`, true},
		"no address":       {`{"type":"image_url","image_url":{"url":"a.png"}}`, false},
		"address alone":    {`{"type":"image_url","image_url":"https://example.com/a.png"}`, false},
		"nothing":          {`{"type":"image_url"}`, false},
		"not what it says": {`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + gif + `"}}`, false},
		"no picture":       {`{"type":"image_url","image_url":{"url":"data:text/plain;base64,aGk="}}`, false},
		"broken base64":    {`{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lG!"}}`, false},
		"of another api":   {`{"type":"input_image","image_url":"data:image/gif;base64,` + gif + `"}`, false},
	} {
		for _, role := range []string{"user", "assistant"} {
			t.Run(role+" "+name, func(t *testing.T) {
				s := start(t, openai.Config{})
				status, _ := s.post(`{"model":"` + openai.DefaultModel + `","messages":[{"role":"` + role + `","content":[{"type":"text","text":"look"},` + tt.part + `]}]}`)
				want := 400
				if tt.ok && role == "user" {
					want = 200
				}
				if status != want {
					t.Errorf("status %d, want %d", status, want)
				}
				if got := s.Requests()[0]; want == 200 && (len(got.Messages[0].Pictures) != 1 || got.Messages[0].Content != "look") {
					t.Errorf("understood %+v", got.Messages)
				}
			})
		}
	}
}

// The Responses API has another part for pictures, and wants to be told in which detail.
func TestPicturesOfTheResponsesAPIHaveADetail(t *testing.T) {
	for detail, want := range map[string]int{`"detail":"auto",`: 200, `"detail":"high",`: 200, "": 400, `"detail":"best",`: 400} {
		s := start(t, openai.Config{})
		body := `{"model":"` + openai.DefaultModel + `","store":false,"input":[{"role":"user","content":[{"type":"input_image",` + detail + `"image_url":"data:image/gif;base64,` + gif + `"}]}]}`
		if status, _ := s.respond(body); status != want {
			t.Errorf("with %q status %d, want %d", detail, status, want)
		}
	}
}

func TestPicturesAreNoText(t *testing.T) {
	s := start(t, openai.Config{})
	much := gif[:len(gif)-1] + "A" + strings.Repeat("A", 4_000_000)
	body := `{"model":"` + openai.DefaultModel + `","store":false,"input":[{"role":"user","content":[{"type":"input_text","text":"look"},` +
		`{"type":"input_image","detail":"auto","image_url":"data:image/gif;base64,` + much + `"}]}]}`
	if status, answer := s.respond(body); status != 200 {
		t.Fatalf("status %d, %s", status, answer)
	}
	got := s.Requests()[0]
	if got.Usage.Prompt > 100 || len(got.Messages[0].Pictures) != 1 || got.Messages[0].Pictures[0].MIME != "image/gif" {
		t.Errorf("%d tokens", got.Usage.Prompt)
	}
}

// Of a prompt with a picture that is sent again, no more is cached than it has tokens.
func TestNoMoreOfAPromptIsCachedThanItHas(t *testing.T) {
	t.Parallel()
	s := start(t, openai.Config{})
	body := `{"model":"` + openai.DefaultModel + `","store":false,"prompt_cache_key":"k","input":[{"role":"user","content":[{"type":"input_text","text":"look` +
		strings.Repeat(" again", 1000) + `"},{"type":"input_image","detail":"auto","image_url":"data:image/gif;base64,` + gif[:len(gif)-1] + "A" + strings.Repeat("A", 100_000) + `"}]}]}`
	for range 2 {
		if status, answer := s.respond(body); status != 200 {
			t.Fatalf("status %d, %s", status, answer)
		}
	}
	if got := s.Requests()[1].Usage; got.Cached == 0 || got.Cached > got.Prompt {
		t.Errorf("%d of %d tokens are cached", got.Cached, got.Prompt)
	}
}
