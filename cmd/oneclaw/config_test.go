package main

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"oneclaw/internal/config"
)

// FuzzConfig reads any settings file: an error is one line, and what is accepted prints
// as settings that are accepted again.
func FuzzConfig(f *testing.F) {
	for _, file := range []string{
		"", "data_dir: /x\nlisten: 127.0.0.1:0\n", "telegram: {token: \"1:x\"}\nslack: {channels: [C1]}\n",
		"tools: {routing: search, tool_search: {enabled: on, embeddings: preset/x}}\n",
		"access: {allow: [\"telegram:1\", \"*\"], admins: [\"slack:U1@T2\"]}\n",
		"approvals:\n  - {tool: exec, role: admin, policy: allow}\n  - {group: core, chat: direct, policy: ask, approvers: both}\napproval_timeout: 5m\n",
		"budget: {user_usd: 0.5, total_tokens: 100}\nprices: {a-*: {input: 1, output: 2}}\n",
		"mcp:\n  servers:\n    files: {command: npx, args: [a], env: {A: \"${B}\"}, exclude: [\"x_*\"], trust: full}\n    web: {url: \"https://e.example/mcp\", headers: {A: b}}\n",
		"google: {client_id: a, subjects: {\"telegram:1\": a@b.c}}\n", "a: &a [*a]\n", "unknown: 1\n", "listen: [1]\n", "- 1\n", "\x00", "a: 1\na: 2\n",
	} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		cfg := config.Default()
		err := config.DecodeConfig(file, &cfg)
		if err == nil {
			err = cfg.Check()
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			return
		}
		printed, err := yaml.Marshal(cfg)
		if err != nil {
			t.Fatalf("accepted settings cannot be printed: %v", err)
		}
		again := config.Default()
		if err := config.DecodeConfig(printed, &again); err != nil {
			t.Errorf("printed settings are refused: %v\n%s", err, printed)
		}
	})
}
