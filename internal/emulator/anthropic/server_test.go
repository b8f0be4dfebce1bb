package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/emulator/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen starts a server, and returns it and its address.
func listen(t *testing.T, cfg anthropic.Config) (*anthropic.Server, string) {
	t.Helper()
	s, err := anthropic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	base, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, base
}

// start starts a server, and returns what posts a request to it.
func start(t *testing.T, cfg anthropic.Config) (*anthropic.Server, func(body string) (int, string)) {
	t.Helper()
	s, base := listen(t, cfg)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return s, func(body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "key")
		r.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
}

const mark = `"cache_control":{"type":"ephemeral"}`

// said is a request with a system prompt that has a mark, and blocks of one message.
func said(prompt string, blocks ...string) string {
	return fmt.Sprintf(`{"model":"claude-sonnet-5","max_tokens":100,"system":[{"type":"text","text":%q,%s}],"messages":[{"role":"user","content":[%s]}]}`,
		prompt, mark, strings.Join(blocks, ","))
}

func text(s, more string) string { return fmt.Sprintf(`{"type":"text","text":%q%s}`, s, more) }

// What the documentation says is refused, is.
func TestRefusals(t *testing.T) {
	s, post := start(t, anthropic.Config{})
	hello, marked := text("hello", ""), text("hello", ","+mark)
	tool := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"input_schema":{"type":"object"}%s}`, name, more)
	}
	with := func(field string) string { return strings.Replace(said("Be kind.", hello), "{", "{"+field+",", 1) }
	for name, c := range map[string]struct{ body, want string }{
		"five marks":            {said("Be kind.", marked, marked, marked, marked), "4"},
		"an unknown field":      {with(`"stop_word":"x"`), "unknown field"},
		"another model":         {strings.Replace(said("x", hello), "claude-sonnet-5", "claude-2", 1), "not_found_error"},
		"an empty text":         {said("Be kind.", text(" ", "")), "non-whitespace"},
		"a temperature":         {with(`"temperature":0.5`), "deprecated"},
		"no such effort":        {with(`"output_config":{"effort":"minimal"}`), "output_config.effort"},
		"a name twice":          {with(`"tools":[` + tool("a", "") + "," + tool("a", "") + "]"), "unique"},
		"a result without call": {said("Be kind.", `{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}`), "tool_use"},
	} {
		status, answer := post(c.body)
		if status < 400 || !strings.Contains(strings.ToLower(answer), strings.ToLower(c.want)) {
			t.Errorf("%s: %d %s, want %q", name, status, answer, c.want)
		}
	}
	if status, answer := post(said("Be kind.", marked, marked, marked)); status != http.StatusOK {
		t.Errorf("four marks: %d %s", status, answer)
	}
	if all := s.Requests(); all[len(all)-1].Header.Get("X-Api-Key") != "" {
		t.Error("the key is kept")
	}
}

// What is billed: written at the first time, read at the next within five minutes of the
// last use, and nothing of a prompt that is too short.
func TestWhatIsBilled(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	s, post := start(t, anthropic.Config{Now: func() time.Time { return now }})
	long := strings.Repeat("word ", 4*anthropic.MinCacheTokens(anthropic.DefaultModel)/5+100)
	for _, step := range []struct {
		name, prompt  string
		after         time.Duration
		written, read bool
	}{
		{"too short", "Be kind.", 0, false, false},
		{"too short again", "Be kind.", 0, false, false},
		{"the first time", long, 0, true, false},
		{"again", long, 4 * time.Minute, false, true},
		{"each use counts", long, 4 * time.Minute, false, true},
		{"too late", long, 6 * time.Minute, true, false},
		{"another beginning", "Now: " + long, 0, true, false},
	} {
		now = now.Add(step.after)
		if status, answer := post(said(step.prompt, text("hello", ""))); status != http.StatusOK {
			t.Fatalf("%s: %d %s", step.name, status, answer)
		}
		all := s.Requests()
		u := all[len(all)-1].Usage
		if u.CacheWritten > 0 != step.written || u.CacheRead > 0 != step.read || u.Input == 0 {
			t.Errorf("%s: %+v", step.name, u)
		}
	}
}

// A reply is a stream of events, each named as its type.
func TestAReply(t *testing.T) {
	_, post := start(t, anthropic.Config{})
	_, answer := post(strings.Replace(said("Be kind.", text("hello", "")), "{", `{"stream":true,`, 1))
	var kinds []string
	for event := range strings.SplitSeq(strings.TrimSpace(answer), "\n\n") {
		name, data, _ := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		var fields struct{ Type string }
		if err := json.Unmarshal([]byte(data), &fields); err != nil || fields.Type != name {
			t.Errorf("%q: %v", event, err)
		}
		kinds = append(kinds, name)
	}
	if len(kinds) < 5 || kinds[0] != "message_start" || kinds[len(kinds)-2] != "message_delta" || kinds[len(kinds)-1] != "message_stop" {
		t.Errorf("%q", kinds)
	}
}
