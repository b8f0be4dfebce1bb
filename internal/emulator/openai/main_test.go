package openai_test

import (
	"net/http"
	"testing"

	client "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"oneclaw/internal/emulator/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running server with the client library that the product uses.
type fixture struct {
	*openai.Server
	t      *testing.T
	url    string
	http   *http.Client
	client *client.Client
}

func start(t *testing.T, cfg openai.Config) *fixture {
	t.Helper()
	s, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	url, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hc := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		hc.CloseIdleConnections()
	})
	conf := client.DefaultConfig("sk-test")
	conf.BaseURL, conf.HTTPClient = url, hc
	return &fixture{Server: s, t: t, url: url, http: hc, client: client.NewClientWithConfig(conf)}
}

func ask(text string) client.ChatCompletionRequest {
	return client.ChatCompletionRequest{
		Model:    openai.DefaultModel,
		Messages: []client.ChatCompletionMessage{{Role: "user", Content: text}},
	}
}
