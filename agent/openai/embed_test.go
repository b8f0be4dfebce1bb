package openai_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	emulator "oneclaw/internal/emulator/openai"
)

func TestEmbedder(t *testing.T) {
	srv, err := emulator.New(emulator.Config{Key: "sk-right"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	base, err := srv.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	embedder := func(key, model string) *openai.Client {
		e, err := openai.New(openai.Config{BaseURL: base, APIKey: key, Model: model, HTTPClient: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	right := embedder("sk-right", emulator.DefaultModel)
	got, err := right.Embed(t.Context(), []string{"send a mail", "read the sky", "send a mail"})
	if err != nil || len(got) != 3 || len(got[0]) != len(got[1]) {
		t.Fatalf("%d vectors, %v", len(got), err)
	}
	for i := range got[0] {
		if got[0][i] != got[2][i] {
			t.Fatal("the same text has two vectors")
		}
	}
	if got, err := right.Embed(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("no texts: %v, %v", got, err)
	}
	for _, e := range []*openai.Client{embedder("sk-wrong-secret", emulator.DefaultModel), embedder("sk-right", "other")} {
		_, err := e.Embed(t.Context(), []string{"x"})
		if _, ok := errors.AsType[*agent.ModelError](err); !ok || strings.Contains(err.Error(), "sk-wrong-secret") {
			t.Errorf("got %v", err)
		}
	}
}

func TestEmbedderRefusesWhatDoesNotFit(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"data":[]}`, `{"data":[{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`, `not JSON`,
	} {
		p := &playedServer{t: t, answers: []answer{respond(200, "application/json", body)}}
		e, err := openai.New(openai.Config{Model: "m", HTTPClient: &http.Client{Transport: p}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Embed(t.Context(), []string{"a", "b"}); err == nil {
			t.Errorf("%s is taken for %v", body, got)
		}
	}
}
