package config_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/config"
)

// Headers for a gateway come from the file, the environment or a file of their own, go to the model's server
// alone, and those that look like secrets are masked.
func TestHeadersOfTheModel(t *testing.T) {
	const secret = "pk-live-1234567890"
	seen := make(chan http.Header, 2)
	own := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer own.Close()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer other.Close()
	dir := t.TempDir()
	lines := "x-portkey-provider: openai\n\nX-Portkey-Api-Key: " + secret + "\n"
	file := filepath.Join(dir, "headers")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	section := filepath.Join(dir, "oneclaw.yaml")
	if err := os.WriteFile(section, []byte("model:\n  headers:\n    x-portkey-provider: openai\n    X-Portkey-Api-Key: "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file    string
		environ []string
	}{
		"environment": {"", []string{"ONECLAW_MODEL_HEADERS=" + lines}},
		"a file":      {"", []string{"ONECLAW_MODEL_HEADERS_FILE=" + file}},
		"settings":    {section, nil},
	} {
		cfg, err := config.Load(c.file, append(c.environ, "OPENAI_BASE_URL="+own.URL+"/v1", "ONECLAW_DATA_DIR="+t.TempDir()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client := cfg.ModelClient()
		for at, want := range map[string]string{own.URL: "openai", other.URL: ""} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/v1/models", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got := <-seen
			if got.Get("X-Portkey-Provider") != want || (got.Get("X-Portkey-Api-Key") == secret) != (want != "") || req.Header.Get("X-Portkey-Provider") != "" {
				t.Errorf("%s: sent %v", name, got)
			}
		}
		client.CloseIdleConnections()
		all, err := yaml.Marshal(cfg.ForDisplay())
		if err != nil {
			t.Fatal(err)
		}
		shown := string(all)
		if strings.Contains(shown, secret) || !strings.Contains(shown, "headers:") || cfg.Redact.Text("openai "+secret) == "openai "+secret || !strings.HasPrefix(cfg.Redact.Text("openai "+secret), "openai ") {
			t.Errorf("%s: shown %q, masked %q", name, shown, cfg.Redact.Text("openai "+secret))
		}
	}
	for _, wrong := range []string{"no colon " + secret, "a b: " + secret, "Content-Type: " + secret, "x-empty:"} {
		if _, err := config.Load("", []string{"ONECLAW_MODEL_HEADERS=" + wrong, "ONECLAW_DATA_DIR=" + t.TempDir()}); err == nil || !strings.Contains(err.Error(), "MODEL_HEADERS") || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
