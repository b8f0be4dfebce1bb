package admin_test

import (
	"strings"
	"testing"

	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

func TestTheToolsPageShowsServersWhoseChangesWait(t *testing.T) {
	r := newRig(t, func(cfg *admin.Config) {
		registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Tools = admin.ToolSource{Registry: func() *toolgroups.Registry { return registry }, Servers: func() []mcp.Status {
			return []mcp.Status{{Name: "notes", PendingChanges: []mcp.Change{{Tool: "send", Description: "says now that it only reads"}}, ChangesCode: "abc"}}
		}}
	})
	if page := r.get(frame.Root + "tools"); !strings.Contains(page, "describes tools otherwise than when it was allowed: /mcp notes shows how") {
		t.Error("the page says nothing of what waits")
	}
}
