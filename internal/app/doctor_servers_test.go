package app

import (
	"strings"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/toolgroups/mcp"
)

// Doctor starts the programs of the settings, and says what those that end say.
func TestDoctorTriesMCPServers(t *testing.T) {
	t.Parallel()
	const good = `while read -r line; do case "$line" in
		*initialize\"*) echo '{"jsonrpc":"2.0","id":"2","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
		*tools/list*) echo '{"jsonrpc":"2.0","id":"3","result":{"tools":[{"name":"t"},{"name":"odd","inputSchema":7}]}}';;
		*discover*) echo '{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no"}}';; esac; done`
	for name, tc := range map[string]struct {
		servers map[string]mcp.Server
		want    *doctor.Finding
	}{
		"none": {nil, nil},
		"one that works": {
			map[string]mcp.Server{"good": {Command: "/bin/sh", Args: []string{"-c", good}}}, doctor.OK("good has 1 of 2 tools"),
		},
		"one that lacks a key": {
			map[string]mcp.Server{
				"bad": {Command: "/bin/sh", Args: []string{"-c", "echo 'SLACK_KEY is not set' >&2; exit 1"}}, "good": {Command: "/bin/sh", Args: []string{"-c", good}},
			},
			doctor.Warn("bad does not work: its process ended (exit status 1): SLACK_KEY is not set; good has 1 of 2 tools"),
		},
		"one with accounts": {
			map[string]mcp.Server{"own": {URL: "https://mcp.example/mcp", Auth: mcp.AuthOAuth}}, doctor.OK("each person connects an account"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			cfg.DataDir, cfg.MCP.Servers = t.TempDir(), tc.servers
			for _, check := range Checks(cfg) {
				if check.Name != "mcp" {
					continue
				}
				got := check.Run(t.Context())
				if (got == nil) != (tc.want == nil) || got != nil && (got.Status != tc.want.Status || !strings.Contains(got.Text, tc.want.Text)) {
					t.Errorf("got %+v, want %+v", got, tc.want)
				}
			}
		})
	}
}
