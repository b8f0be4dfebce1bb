package jstools_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// A script and what it downloads keep to the quota of the workspace.
func TestScriptsKeepToTheQuota(t *testing.T) {
	h := newHouse(t)
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 32 {
			_, _ = w.Write(make([]byte, 64<<10))
		}
	})
	scope := toolgroups.Scope{User: "telegram:1", Owner: "telegram:1", Role: toolgroups.RoleUser, Workspace: h.workspace, Quota: 1 << 20, Reserve: 1}
	for _, code := range []string{
		`await downloadToFile("` + url + `", "large")`,
		`for (let i = 0; ; i++) fs.writeFile("f" + i, "x".repeat(200000))`,
	} {
		got, fault := h.callAs(t, scope, "js_eval", args{"code": code, "timeout_seconds": patience})
		if fault != nil {
			got = fault.Message
		}
		if !strings.Contains(got, "the workspace is full") {
			t.Errorf("%s: %s", code, got)
		}
	}
	entries, err := os.ReadDir(h.workspace)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		if strings.HasPrefix(e.Name(), ".part") || e.Name() == "large" {
			t.Errorf("%s is left of a download that was refused", e.Name())
		}
	}
	if total > 1<<20 {
		t.Errorf("%d bytes are stored", total)
	}
}
