package models_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/bridge/turn"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/models"
	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// free charges nothing.
func free(_ toolgroups.Scope, m agent.Model, _ string) agent.Model { return m }

func listener(t *testing.T, s models.VoiceSettings, charge func(toolgroups.Scope, agent.Model, string) agent.Model) (*models.Transcriber, *openai.Server) {
	t.Helper()
	server, err := openai.New(openai.Config{Key: "k", Models: []string{"ears"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	address, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	l, err := models.NewTranscriber(s, models.MediaConfig{BaseURL: address, APIKey: "k", HTTPClient: &http.Client{Transport: transport}, Logger: slog.New(slog.DiscardHandler)}, charge)
	if err != nil {
		t.Fatal(err)
	}
	return l, server
}

func recording(sound []byte) turn.Recording {
	return turn.Recording{Name: "inbox/voice.bin", Size: int64(len(sound)), Length: 3 * time.Second, Content: bytes.NewReader(sound)}
}

func TestRecordingsAreWrittenDown(t *testing.T) {
	charged := 0
	l, _ := listener(t, models.VoiceSettings{Model: "ears"}, func(scope toolgroups.Scope, m agent.Model, name string) agent.Model {
		if scope.User != "ann" || name != "ears" {
			t.Errorf("%+v, %s", scope, name)
		}
		return counted{m, &charged}
	})
	text, err := l.Transcribe(t.Context(), toolgroups.Scope{User: "ann"}, recording(openai.Speech("Buy milk, é")))
	if text != "Buy milk, é" || err != nil || charged != 30 {
		t.Errorf("%q, %v, %d tokens", text, err, charged)
	}
}

// What a recording costs is in the accounts of who sent it, and not as tokens of tools.
func TestARecordingIsNoTool(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: "any"})
	l, _ := listener(t, models.VoiceSettings{Model: "ears"}, w.Charge)
	scope := toolgroups.Scope{User: "telegram:1", Chat: "telegram:1"}
	if _, err := l.Transcribe(t.Context(), scope, recording(openai.Speech("Buy milk"))); err != nil {
		t.Fatal(err)
	}
	r, err := w.Ledger.Report(t.Context(), w.Payer(scope))
	if got := r.ChatTotal; err != nil || got.Calls != 1 || got.Input == 0 || got.ToolTokens != 0 {
		t.Errorf("charged %+v, %v", got, err)
	}
}

type counted struct {
	agent.Model
	tokens *int
}

func (c counted) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	*c.tokens += req.ToolTokens
	return c.Model.Complete(ctx, req, onDelta)
}

func TestWhatIsNotHeardIsSaid(t *testing.T) {
	l, server := listener(t, models.VoiceSettings{Model: "ears", MaxLength: time.Minute}, free)
	long, large := recording(openai.Speech("x")), recording(openai.Speech("x"))
	long.Length, large.Size = 61*time.Second, 26<<20
	broke, _ := listener(t, models.VoiceSettings{Model: "ears"}, func(toolgroups.Scope, agent.Model, string) agent.Model { return noBudget{} })
	off, _ := listener(t, models.VoiceSettings{Model: models.VoiceOff}, free)
	for name, c := range map[string]struct {
		l    *models.Transcriber
		r    turn.Recording
		want string
	}{
		"too long":       {l, long, "is longer than the minute that I listen to"},
		"too large":      {l, large, "is larger than the 25 MB that I listen to"},
		"no sound":       {l, recording([]byte("%PDF-1.7")), "is of a kind that I cannot listen to, or damaged"},
		"empty":          {l, recording(nil), "is of a kind that I cannot listen to, or damaged"},
		"damaged":        {l, recording([]byte("RIFFxxxxWAV")), "is of a kind that I cannot listen to, or damaged"},
		"no budget":      {broke, recording(openai.Speech("x")), "was not listened to: Nothing is left."},
		"not configured": {off, recording(openai.Speech("x")), ""},
	} {
		text, err := c.l.Transcribe(t.Context(), toolgroups.Scope{}, c.r)
		told, ok := errors.AsType[*turn.TranscriptionError](err)
		if text != "" || !ok || told.Reason != c.want || told.NotConfigured != (c.want == "") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if n := server.TranscriptionCount(); n != 0 {
		t.Errorf("%d recordings were sent", n)
	}
}

// A key that Gemini refuses with the status of an invalid request is no damaged recording, and costs
// nothing.
func TestAWrongKeyIsNoDamagedRecording(t *testing.T) {
	gemini, _ := openai.ProfileByName("gemini")
	server, err := openai.New(openai.Config{Key: "another", Profile: gemini})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	base, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var used agent.Usage
	l, err := models.NewTranscriber(models.VoiceSettings{BaseURL: base, APIKey: "k", Model: "ears"}, models.MediaConfig{HTTPClient: &http.Client{Transport: transport}, Logger: slog.New(slog.DiscardHandler)},
		func(_ toolgroups.Scope, m agent.Model, _ string) agent.Model { return noting{m, &used} })
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Transcribe(t.Context(), toolgroups.Scope{}, recording(openai.Speech("x")))
	if failure, ok := errors.AsType[*agent.ModelError](err); !ok || failure.Kind != agent.KindAuth || used != (agent.Usage{}) {
		t.Errorf("%v, %+v", err, used)
	}
}

type noBudget struct{}

func (noBudget) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{}, &agent.ModelError{Kind: agent.KindBudget, Notice: "Nothing is left.", Err: errors.New("budget")}
}

// TestVoiceSettings says which model listens, and that no other server gets the key of the
// program's own model.
func TestVoiceSettings(t *testing.T) {
	const own, other = "https://api.openai.com/v1", "http://127.0.0.1:9/v1"
	for _, c := range []struct {
		own      string
		settings models.VoiceSettings
		hears    bool
		err      string
	}{
		{own, models.VoiceSettings{}, true, ""},
		{own, models.VoiceSettings{Model: models.VoiceOff}, false, ""},
		{other, models.VoiceSettings{}, false, ""},
		{other, models.VoiceSettings{Model: "whisper"}, true, ""},
		{own, models.VoiceSettings{BaseURL: other}, false, "voice.model"},
		{own, models.VoiceSettings{BaseURL: "no address", Model: "whisper"}, false, "voice"},
		{own, models.VoiceSettings{MaxLength: -1}, false, "voice.max_length"},
	} {
		l, err := models.NewTranscriber(c.settings, models.MediaConfig{BaseURL: c.own, APIKey: "k"}, free)
		if (l != nil) != c.hears || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v at %s: %v, %v", c.settings, c.own, l, err)
		}
	}
	got := ""
	web := &http.Client{Transport: answers(func(r *http.Request) { got = r.Header.Get("Authorization") })}
	l, err := models.NewTranscriber(models.VoiceSettings{BaseURL: other, Model: "whisper"}, models.MediaConfig{BaseURL: own, APIKey: "secret", HTTPClient: web, Logger: slog.New(slog.DiscardHandler)}, free)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Transcribe(t.Context(), toolgroups.Scope{}, recording(openai.Speech("x"))); err == nil || got != "" {
		t.Errorf("%v, sent with %q", err, got)
	}
}

// answers refuses all requests.
type answers func(*http.Request)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a(r)
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// How long a recording is says whoever sends it; what is charged says who has heard it.
func TestARecordingIsChargedAsItWasHeard(t *testing.T) {
	for usage, want := range map[string]int{
		`{"type":"duration","seconds":3600}`:                      36_000,
		`{"type":"tokens","input_tokens":777,"output_tokens":12}`: 777,
		`null`: 30,
	} {
		var used agent.Usage
		l, err := models.NewTranscriber(models.VoiceSettings{Model: "ears"}, models.MediaConfig{
			BaseURL: "http://ears.example/v1", Logger: slog.New(slog.DiscardHandler),
			HTTPClient: &http.Client{Transport: says(`{"text":"a long story","usage":` + usage + `}`)},
		}, func(_ toolgroups.Scope, m agent.Model, _ string) agent.Model { return noting{m, &used} })
		if err != nil {
			t.Fatal(err)
		}
		text, err := l.Transcribe(t.Context(), toolgroups.Scope{}, recording(openai.Speech("x")))
		if text != "a long story" || err != nil || used.Input != want || used.Output < 4 {
			t.Errorf("%s: %q, %v, charged %+v", usage, text, err, used)
		}
	}
}

// says answers all requests.
type says string

func (s says) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(s))), Request: r}, nil
}

// noting notes what a model says it used.
type noting struct {
	agent.Model
	used *agent.Usage
}

func (n noting) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	reply, err := n.Model.Complete(ctx, req, onDelta)
	*n.used = reply.Usage
	return reply, err
}
