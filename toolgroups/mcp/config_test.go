package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups/mcp"
)

func TestConfigurationOfServers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		server string
		yaml   string
		want   string // part of the error
	}{
		{"neither", "x", "{}", `mcp: server "x": command or url: give one of them`},
		{"both", "x", "{command: a, url: 'http://a'}", `mcp: server "x": command and url: keep one of them`},
		{"name", "x y", "{command: a}", `mcp: server "x y": the name must match`},
		{"long name", strings.Repeat("x", 33), "{command: a}", "the name must match"},
		{"scheme", "x", "{url: 'ftp://a'}", `mcp: server "x": url: not a usable URL: it must begin with http:// or https://`},
		{"password in url", "x", "{url: 'http://u:p@a'}", "url: not a usable URL: a user name or password must not stand in it"},
		{"args for url", "x", "{url: 'http://a', args: [b]}", "args, env, pass_env and dir: they need command"},
		{"headers for command", "x", "{command: a, headers: {A: b}}", "headers and allow_private: they need url"},
		{"header name", "x", "{url: 'http://a', headers: {'A B': b}}", `headers: "A B" is not a header name`},
		{"header value", "x", `{url: 'http://a', headers: {A: "b\nC: d"}}`, "headers: the value of A must be one line"},
		{"variable", "x", "{command: a, pass_env: ['A=B']}", `env and pass_env: "A=B" is not a variable name`},
		{"pattern", "x", "{command: a, include: ['[']}", `include: "[" is not a pattern such as get_*`},
		{"role", "x", "{command: a, role: boss}", `role: "boss" is not user, admin or owner`},
		{"trust", "x", "{command: a, trust: some}", `trust: "some" is not hints, none or full`},
		{"timeout", "x", "{command: a, timeout: 1h}", "timeout: 1h0m0s is not between 0 and 10m0s"},
		{"start timeout", "x", "{command: a, start_timeout: -1s}", "start_timeout: -1s is not between 0 and 10m0s"},
		{"unset variable", "x", "{command: a, env: {A: '${ONECLAW_TEST_NOT_SET}'}}", `mcp: server "x": env: A names ${ONECLAW_TEST_NOT_SET}, which is not set`},
		{"good command", "x-1_y", "{command: a, args: [b], env: {A: b}, dir: /tmp, include: ['get_*'], timeout: 5s, description: d, role: admin}", ""},
		{"good url", "x", "{url: 'https://a/mcp?k=v', headers: {Authorization: b}, allow_private: true, trust: full, read_only: ['*']}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var cfg mcp.Config
			must(t, yaml.Unmarshal(fmt.Appendf(nil, "servers: {%q: %s}", tc.server, tc.yaml), &cfg))
			c, err := mcp.New(cfg)
			if err == nil {
				must(t, c.Close())
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	err := mcp.Config{Servers: map[string]mcp.Server{
		"a": {}, "B": {Command: "x"}, "b": {Command: "x", Role: "y", Trust: "z", Timeout: -time.Second},
	}}.Validate()
	want := `mcp: server "a": command or url: give one of them
mcp: server "b": the name differs from "B" only in case
mcp: server "b": role: "y" is not user, admin or owner
mcp: server "b": timeout: -1s is not between 0 and 10m0s
mcp: server "b": trust: "z" is not hints, none or full`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	cfg := mcp.Config{Servers: map[string]mcp.Server{
		"x": {Command: "a", PassEnv: []string{"X_TOKEN", "LANG"}, Env: map[string]redact.Secret{
			"A_KEY": "hidden-1", "B_KEY": "", "MODE": "information", "FOLDER": "/srv/data/2026", "LOOKS": "hidden1234567890", "DB_PASS": "${OTHER}-5",
		}},
		"y": {URL: "http://a", Headers: map[string]redact.Secret{"A": "Bearer hidden-2"}},
	}, LookupEnv: func(name string) (string, bool) { return "hidden-" + name, true }}
	asYAML, err := yaml.Marshal(cfg)
	must(t, err)
	asJSON, err := json.Marshal(cfg.Servers)
	must(t, err)
	for _, text := range []string{string(asYAML), string(asJSON), fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg)} {
		if strings.Contains(text, "hidden") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if got := strings.Join(cfg.Secrets(), " "); got != "Bearer Bearer hidden-2 hidden-1 hidden-2 hidden-OTHER-5 hidden-X_TOKEN hidden1234567890" {
		t.Errorf("secrets %q", got)
	}
}

// TestANameInAnAddressIsNoSecret has keys beside it, which are.
func TestANameInAnAddressIsNoSecret(t *testing.T) {
	for part, secret := range map[string]bool{
		"langgraph-101-course":                 false,
		"2026_handbook_of_the_house":           false,
		"pl4nted-secret-of-a-test":             true,
		"3f2b8c1e-9a4d-4e2b-8c1d-0a9b8c7d6e5f": true,
		"hidden1234567890":                     true,
	} {
		cfg := mcp.Config{Servers: map[string]mcp.Server{"x": {URL: "https://host.example/team/" + part + "/mcp"}}}
		if got := strings.Join(cfg.Secrets(), " "); got != map[bool]string{true: part}[secret] {
			t.Errorf("%s: secrets %q", part, got)
		}
	}
}
