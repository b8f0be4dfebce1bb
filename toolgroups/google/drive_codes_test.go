package google

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// filesAndPeople are the groups whose tools are run here, all of them, each with an
// example of its arguments.
func filesAndPeople() []string {
	return []string{"google_drive", "google_contacts", "google_docs", "google_slides", "google_forms"}
}

// examples are the arguments of every tool of the groups.
func examples(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, group := range filesAndPeople() {
		data, err := os.ReadFile(filepath.Join("testdata", "calls", group+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var calls map[string]json.RawMessage
		if err := json.Unmarshal(data, &calls); err != nil {
			t.Fatal(err)
		}
		for tool, args := range calls {
			out[tool] = string(args)
		}
	}
	return out
}

// toolsOf are the tools of the groups by name.
func (d *driveHarness) toolsOf(t *testing.T, names []string) map[string]toolgroups.Tool {
	t.Helper()
	out := map[string]toolgroups.Tool{}
	groups, err := d.g.Groups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		if slices.Contains(names, group.Name) {
			for _, tool := range group.Tools {
				out[tool.Name] = tool
			}
		}
	}
	return out
}

func TestEveryToolHasAnExample(t *testing.T) {
	d := newDesk(t)
	tools := slices.Sorted(maps.Keys(d.toolsOf(t, filesAndPeople())))
	if got := slices.Sorted(maps.Keys(examples(t))); !slices.Equal(got, tools) || len(tools) != 15+7+8+7+5 {
		t.Errorf("examples for %q, tools are %q", got, tools)
	}
}

// TestErrorsOfEveryTool has Google answer every request of every tool with the same
// refusal.
func TestErrorsOfEveryTool(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, code string
		status     int
		body       string
	}{
		{"400", "validation_error", 400, `{"error":{"code":400,"message":"Bad."}}`},
		{"401", "permission_denied", 401, `{"error":{"code":401,"message":"Bad token."}}`},
		{"403", "permission_denied", 403, `{"error":{"code":403,"message":"Not yours.","errors":[{"reason":"forbidden"}]}}`},
		{"403 for the scope", "permission_denied", 403, `{"error":{"code":403,"message":"No.","details":[{"reason":"ACCESS_TOKEN_SCOPE_INSUFFICIENT"}]}}`},
		{"403 for the rate", service.CodeRateLimited, 403, `{"error":{"code":403,"message":"Slow.","errors":[{"reason":"userRateLimitExceeded"}]}}`},
		{"404", service.CodeNotFound, 404, `{"error":{"code":404,"message":"None."}}`},
		{"409", service.CodeConflict, 409, `{"error":{"code":409,"message":"There."}}`},
		{"412", service.CodeConflict, 412, `{"error":{"code":412,"message":"Changed."}}`},
		{"429", service.CodeRateLimited, 429, `{"error":{"code":429,"message":"Slow."}}`},
		{"500", service.CodeUnavailable, 500, `<html>`},
		{"503", service.CodeUnavailable, 503, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t)
			d.put(t, "upload.txt", []byte("x"))
			d.reply("POST /token", `{"access_token":"good","expires_in":3600,"token_type":"Bearer"}`)
			d.answering(func(r *http.Request) (*http.Response, error) {
				if r.Body != nil {
					defer func() { _ = r.Body.Close() }()
				}
				return httpAnswer(tc.status, strings.NewReader(tc.body)), nil
			})
			for tool, args := range examples(t) {
				_, fault := d.run(t.Context(), tool, args)
				if codeOf(fault) != tc.code {
					t.Errorf("%s: %+v, want %s", tool, fault, tc.code)
				} else if tc.code == service.CodeRateLimited && !strings.Contains(fault.Message, "Try again in") {
					t.Errorf("%s does not say when to try again: %s", tool, fault.Message)
				}
			}
			noRemains(t, filepath.Join(d.dir, "drive"))
		})
	}
}

// TestToolsWithoutAnAccount runs every tool for a user who connected nothing, and for
// one who did not grant what the tool needs.
func TestToolsWithoutAnAccount(t *testing.T) {
	d := newDesk(t)
	d.connect(t, "telegram:3", account{AccessToken: "good", Expiry: time.Now().Add(time.Hour), RefreshToken: "r", Scopes: []string{scopeEmail}})
	for tool, args := range examples(t) {
		for user, want := range map[string]string{"telegram:2": service.CodeNotConnected, "telegram:3": "permission_denied"} {
			_, fault := d.runAs(t.Context(), toolgroups.Scope{User: user, Owner: user, Direct: true, Workspace: d.dir}, tool, args)
			if codeOf(fault) != want {
				t.Errorf("%s: %+v, want %s", tool, fault, want)
			}
		}
	}
	if got := d.take(); len(got) > 0 {
		t.Errorf("something was sent: %q", got)
	}
}

// TestSharedChatsUseTheAccountOfWhoAsks tries in a shared chat what reaches others or
// deletes: it is done with the account of the user of the turn, or not at all.
func TestSharedChatsUseTheAccountOfWhoAsks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, args := range examples(t) {
		if d.toolsOf(t, filesAndPeople())[name].Effect != toolgroups.Consequential {
			continue
		}
		d.take()
		_, fault := d.runAs(t.Context(), toolgroups.Scope{User: testUser, Owner: "slack:C1", Workspace: d.dir}, name, args)
		if codeOf(fault) == toolgroups.CodeDenied || len(d.take()) == 0 {
			t.Errorf("%s is refused to whoever asks: %+v", name, fault)
		}
		for _, user := range []string{"telegram:2", ""} {
			_, fault = d.runAs(t.Context(), toolgroups.Scope{User: user, Owner: "slack:C1", Workspace: d.dir}, name, args)
			if sent := d.take(); codeOf(fault) != service.CodeNotConnected || len(sent) > 0 {
				t.Errorf("%s by %q, who has no account: %+v, sent %q", name, user, fault, sent)
			}
		}
	}
}

// TestReadersOnlyRead has every tool that is marked as reading run, and sees what it
// sends.
func TestReadersOnlyRead(t *testing.T) {
	d := newDesk(t)
	args := examples(t)
	for name, tool := range d.toolsOf(t, filesAndPeople()) {
		d.take()
		_, _ = d.run(t.Context(), name, args[name]) // Whatever comes of it, it sends something.
		var writes bool
		for _, line := range d.take() {
			writes = writes || !strings.HasPrefix(line, "GET ")
		}
		saves := name == "drive_download" || name == "drive_export"
		// These two look before they change, and what they look for is not there.
		looks := name == "drive_move_file" || name == "contacts_update" || name == "forms_add_question" || name == "drive_upload"
		if (tool.Effect == toolgroups.ReadOnly) == (writes || saves || looks) {
			t.Errorf("%s has effect %v; it writes: %v", name, tool.Effect, writes)
		}
	}
}
