package house

import (
	"path"
	"slices"
	"strings"
)

// layers says what a package may import of ours. Patterns are those of path.Match;
// the first line that fits counts. A package that is in no line, or imports what
// its line does not name, fails. Changing this table is a decision about the
// architecture: it belongs into ARCHITECTURE.md, and into a commit of its own.
var layers = []layer{
	{"internal/telemetry", []string{"agent", "bridge/queue", "internal/redact", "internal/wording", "toolgroups", "bridge/chats", "internal/cache", "bridge/outbox", "bridge/receipts"}},
	{"storage/folder", nil},
	{"storage/replicas", []string{"storage"}},
	{"toolgroups", []string{"internal/wording"}},
	{"storage", nil},
	{"internal/wording", nil},
	{"internal/formula", nil},
	{"internal/markdown", []string{"internal/wording"}},
	{"toolgroups/documents/office", []string{"internal/formula", "internal/readable", "internal/wording"}},
	{"internal/house", nil},
	{"internal/workspace", []string{"internal/cache", "storage/folder", "storage"}},
	{"internal/guard", nil},
	{"internal/sandbox", []string{"internal/named", "internal/rescue"}},
	{"internal/named", nil},
	{"internal/readable", []string{"internal/formula", "internal/sandbox", "internal/named", "internal/wording"}},
	{"internal/redact", []string{"internal/wording"}},
	{"internal/doctor", nil},
	{"internal/rescue", []string{"internal/retry"}},
	{"internal/retry", nil},
	{"internal/cache", nil},
	{"internal/settings", []string{"storage", "internal/wording", "internal/redact"}},
	{"agent", []string{"toolgroups", "internal/cache", "internal/rescue", "internal/wording"}},
	{"agent/provider", []string{"agent", "toolgroups", "internal/cache", "internal/retry", "internal/wording"}},
	{"agent/openai", []string{"agent", "agent/provider", "toolgroups"}},
	{"agent/anthropic", []string{"agent", "agent/provider", "toolgroups", "internal/cache"}},
	{"internal/budget", []string{"agent", "toolgroups", "storage", "internal/retry", "internal/wording", "bridge", "bridge/interact", "bridge/chats", "bridge/queue", "bridge/conversation"}},
	{"bridge/chats", []string{"internal/wording", "toolgroups"}},
	{"bridge/audit", []string{"storage"}},
	{"bridge/receipts", []string{"bridge/chats", "internal/retry", "storage"}},
	{"bridge/queue", []string{"bridge/audit", "bridge/chats", "agent", "storage/replicas", "internal/rescue", "storage", "bridge/receipts"}},
	{"bridge/conversation", []string{"bridge/chats", "bridge/queue", "internal/wording", "agent", "storage", "bridge/receipts"}},
	{"bridge/outbox", []string{"bridge/chats", "bridge/queue", "internal/wording", "agent", "internal/markdown", "internal/rescue", "internal/retry", "internal/workspace", "storage", "toolgroups", "bridge/receipts"}},
	{"bridge/turn", []string{"bridge/chats", "bridge/provenance", "bridge/conversation", "bridge/queue", "internal/wording", "agent", "internal/cache", "internal/retry", "internal/workspace", "storage", "toolgroups", "bridge/outbox", "bridge/receipts"}},
	{"bridge/provenance", []string{"agent", "internal/markdown", "internal/wording", "toolgroups"}},
	{"bridge/interact", []string{"bridge/audit", "bridge/provenance", "bridge/chats", "bridge/conversation", "bridge/queue", "bridge/turn", "internal/guard", "internal/wording", "agent", "internal/rescue", "storage", "toolgroups", "bridge/outbox", "bridge/receipts"}},
	{"bridge/access", []string{"bridge/audit", "bridge/chats", "bridge/interact", "bridge/queue", "internal/wording", "storage", "toolgroups", "bridge/outbox", "bridge/turn"}},
	{"bridge/privacy", []string{"bridge/chats", "bridge/conversation", "bridge/interact", "bridge/queue", "internal/retry", "internal/wording", "storage", "bridge/outbox", "bridge/receipts"}},
	{"bridge/why", []string{"bridge/chats", "bridge/queue", "bridge/conversation", "internal/wording", "agent", "storage", "toolgroups", "bridge/receipts"}},
	{"bridge/platformtest", []string{"bridge", "bridge/*", "internal/wording", "agent", "toolgroups", "storage", "storage/bolt"}},
	{"bridge", []string{"bridge/interact", "bridge/audit", "bridge/chats", "bridge/outbox", "bridge/privacy", "bridge/queue", "bridge/access", "bridge/conversation", "bridge/turn", "bridge/why", "internal/wording", "agent", "toolgroups", "storage", "internal/cache", "internal/named", "storage/replicas", "internal/rescue", "internal/retry", "internal/workspace", "bridge/receipts"}},
	{"telegram", []string{"bridge/chats", "storage", "internal/cache", "internal/retry", "internal/doctor", "internal/markdown", "internal/redact", "internal/rescue", "internal/wording"}},
	{"slack/manifest", nil},
	{"slack/shared", []string{"bridge/chats", "storage", "internal/cache", "internal/redact"}},
	{"slack/blocks", []string{"bridge/chats", "internal/markdown", "internal/wording"}},
	{"slack/surface", []string{"bridge/chats", "internal/markdown", "internal/retry", "internal/rescue", "internal/wording"}},
	{"slack", []string{"slack/blocks", "slack/surface", "slack/manifest", "slack/shared", "bridge/chats", "storage", "internal/cache", "internal/retry", "internal/doctor", "internal/markdown", "internal/redact", "internal/rescue", "internal/wording"}},
	{"toolgroups/google", []string{"toolgroups", "toolgroups/google/*", "toolgroups/signin", "storage", "internal/named", "internal/readable", "internal/retry", "internal/redact"}},
	{"toolgroups/mcp/oauth", []string{"toolgroups", "toolgroups/signin", "storage", "internal/guard", "internal/named", "internal/retry", "internal/wording", "internal/redact"}},
	{"toolgroups/mcp", []string{"toolgroups", "toolgroups/files", "toolgroups/mcp/oauth", "storage", "storage/folder", "internal/guard", "internal/redact", "internal/rescue", "internal/retry", "internal/wording"}},
	{"toolgroups/signin", []string{"storage", "internal/wording", "internal/redact"}},
	{"toolgroups/files", []string{"toolgroups", "internal/wording", "internal/workspace"}},
	{"toolgroups/documents", []string{"toolgroups", "toolgroups/files", "internal/markdown", "internal/named", "toolgroups/documents/office", "internal/sandbox", "internal/wording"}},
	{"toolgroups/search", []string{"toolgroups", "toolgroups/search/meaning", "internal/cache", "internal/wording"}},
	{"toolgroups/search/meaning", nil},
	{"toolgroups/search/meaning/generate", []string{"toolgroups/search/meaning"}},
	{"toolgroups/google/service", []string{"toolgroups", "toolgroups/files", "internal/readable", "internal/rescue", "internal/retry", "internal/wording", "internal/workspace"}},
	{"toolgroups/google/*", []string{"toolgroups", "toolgroups/files", "toolgroups/google/service", "internal/readable", "internal/retry", "internal/wording", "internal/workspace"}},
	{"toolgroups/memory", []string{"toolgroups", "toolgroups/search", "internal/wording", "storage"}},
	{"toolgroups/*", []string{"toolgroups", "toolgroups/files", "storage", "internal/cache", "internal/settings", "internal/rescue", "internal/workspace", "storage/folder", "internal/guard", "internal/sandbox", "internal/named", "internal/readable", "internal/redact", "internal/retry", "internal/wording"}},
	{"storage/*", []string{"storage", "storage/folder"}},
	{"storage/postgres/pgtest", nil},
	{"internal/sandbox/sandboxtest", nil},
	{"internal/emulator/wire", nil},
	{"internal/emulator/anthropic", []string{"internal/emulator/openai", "internal/emulator/wire"}},
	{"internal/emulator/slack/blockkit", nil},
	{"internal/emulator/slack/delivery", []string{"internal/emulator/wire"}},
	{"internal/emulator/slack/manifest", nil},
	{"internal/emulator/slack", []string{"internal/emulator/slack/*", "internal/emulator/wire"}},
	{"internal/emulator/telegram/botapi", nil},
	{"internal/emulator/telegram/markup", []string{"internal/emulator/telegram/botapi"}},
	{"internal/emulator/telegram", []string{"internal/emulator/telegram/*", "internal/emulator/wire"}},
	{"internal/emulator/*", []string{"internal/emulator/wire"}},
	{"internal/service", nil},
	{"deploy/release", []string{"internal/service"}},
	{"internal/database", []string{"storage", "storage/folder", "storage/replicas", "storage/bolt", "storage/postgres"}},
	{"internal/models", []string{"agent", "agent/anthropic", "agent/openai", "agent/provider", "bridge", "bridge/chats", "bridge/interact", "bridge/turn", "internal/wording", "internal/budget", "internal/telemetry", "internal/redact", "internal/settings", "toolgroups", "toolgroups/search"}},
	{"internal/hooks", []string{"bridge", "bridge/chats", "bridge/provenance", "bridge/queue", "internal/cache", "internal/wording", "internal/redact", "storage", "toolgroups", "bridge/receipts"}},
	{"internal/connections", []string{"bridge", "bridge/chats", "bridge/interact", "internal/wording", "internal/retry", "storage", "toolgroups", "toolgroups/google", "toolgroups/mcp", "toolgroups/mcp/oauth", "toolgroups/signin"}},
	{"internal/admin/signin", []string{"bridge", "bridge/audit", "bridge/chats", "bridge/queue", "internal/wording", "internal/cache", "storage", "toolgroups"}},
	{"internal/personal", []string{"agent", "bridge", "bridge/chats", "bridge/interact", "toolgroups/memory", "bridge/queue", "bridge/conversation", "internal/wording", "internal/rescue", "internal/workspace", "storage", "toolgroups", "bridge/receipts"}},
	{"internal/moving", []string{"bridge/access", "bridge/chats", "internal/connections", "internal/redact", "internal/sandbox", "internal/settings", "internal/wording", "storage", "storage/folder", "toolgroups/memory", "toolgroups/schedule", "toolgroups/skills"}},
	{"internal/admin", []string{"bridge/interact", "bridge/audit", "bridge/queue", "bridge/access", "internal/admin/signin", "storage", "toolgroups", "internal/telemetry", "agent", "bridge/chats", "bridge/conversation", "bridge/why", "internal/budget", "internal/doctor", "internal/retry", "internal/wording", "toolgroups/google", "toolgroups/mcp", "toolgroups/mcp/oauth", "bridge/receipts"}},
	{"internal/doctor/live", []string{"agent", "bridge/chats", "internal/retry", "internal/wording", "toolgroups"}},
	{"internal/lab/scale", []string{"agent", "bridge", "bridge/access", "bridge/chats", "bridge/queue", "bridge/turn", "internal/budget", "internal/database", "storage", "storage/bolt", "storage/postgres", "storage/replicas", "toolgroups"}},
	{"internal/lab/demo", []string{"bridge/chats", "agent", "internal/app", "internal/config", "internal/emulator/*", "internal/models", "internal/redact", "internal/retry"}},
	{"internal/config", []string{"*", "*/*"}},
	{"internal/cli", []string{"internal/config", "internal/moving", "internal/sandbox", "internal/readable", "internal/redact", "toolgroups/documents", "toolgroups/pdf"}},
	{"internal/app", []string{"*", "*/*", "*/*/*"}},
	{"internal/lab", []string{"*", "*/*", "*/*/*"}},
	{"cmd/oneclaw", []string{"*", "*/*", "*/*/*"}},
	{"cmd/oneclaw-lab", []string{"internal/cli", "internal/lab"}},
}

// forTests is what the tests of every package may import besides what its line
// names, itself, and what the packages of its line may import in turn.
var forTests = []string{"agent", "toolgroups", "bridge", "internal/emulator/*", "internal/emulator/telegram/markup", "storage/bolt", "storage/storetest", "storage/postgres", "storage/postgres/pgtest", "internal/sandbox/sandboxtest", "bridge/*", "toolgroups/search"}

// clients are the libraries that stay inside one package, with the packages whose
// tests may use them too: an emulator is tested with the client it has to satisfy.
var clients = []client{
	{"github.com/sashabaranov/go-openai", "agent/openai", []string{"internal/emulator/openai"}},
	{"github.com/go-telegram-bot-api/telegram-bot-api/v5", "telegram", []string{"internal/emulator/telegram"}},
	{"github.com/slack-go/slack", "slack", []string{"internal/emulator/slack", "slack/manifest"}},
	{"go.etcd.io/bbolt", "storage/bolt", nil},
	{"github.com/jackc/pgx/v5", "storage/postgres", []string{"internal/lab/scale"}}, // what it counts is compared with what a server counts
	{"go.opentelemetry.io/otel", "internal/telemetry", nil},
	{"go.opentelemetry.io/proto", "internal/emulator/collector", nil},
	{"github.com/VictoriaMetrics/metricsql", "internal/telemetry", nil},
	// For the packages alone: who imports it is a program of its own, so that this one does not grow by it.
	{"github.com/google/go-containerregistry", "deploy/release", nil},
	// For tests alone: nothing that the program is built from may import its owner.
	{"github.com/zitadel/oidc/v3", "internal/emulator/mcp", nil},
}

type layer struct {
	pattern string
	imports []string
}

type client struct {
	library string
	owner   string
	testers []string
}

func checkImports(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		allowed, ok := allowedImports(s.dir, s.test)
		if !ok {
			found = append(found, m.at(s.Package, "", "package %s is not in the import table: decide what it may import and add it to layers in internal/house", s.dir))
			continue
		}
		for _, spec := range s.Imports {
			target, ours := m.ours(strings.Trim(spec.Path.Value, `"`))
			if ours && target != s.dir && !matchAny(allowed, target) {
				found = append(found, m.at(spec.Pos(), "", "%s may not import %s: move the code, or declare the port it needs as an interface and wire it in internal/app", s.dir, target))
			}
		}
	}
	return found
}

func checkClients(m *module) []finding {
	var found []finding
	for _, s := range m.sources {
		for _, spec := range s.Imports {
			target := strings.Trim(spec.Path.Value, `"`)
			for _, c := range clients {
				within := target == c.library || strings.HasPrefix(target, c.library+"/")
				if !within || s.dir == c.owner || strings.HasPrefix(s.dir, c.owner+"/") || s.test && slices.Contains(c.testers, s.dir) {
					continue
				}
				found = append(found, m.at(spec.Pos(), "", "%s is used in %s alone: use what that package offers", c.library, c.owner))
			}
		}
	}
	return found
}

// ours turns an import path into a folder of this module.
func (m *module) ours(importPath string) (string, bool) {
	if importPath == m.path {
		return ".", true
	}
	return strings.CutPrefix(importPath, m.path+"/")
}

func allowedImports(dir string, test bool) ([]string, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return matchAny([]string{l.pattern}, dir) })
	if i < 0 {
		return nil, false
	}
	allowed := slices.Clone(layers[i].imports)
	if !test {
		return allowed, true
	}
	for n := 0; n < len(allowed); n++ {
		for _, below := range layers {
			if allowed[n] == below.pattern {
				allowed = appendNew(allowed, below.imports...)
			}
		}
	}
	return append(allowed, forTests...), true
}

func appendNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}
