package google

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// toolCount is how many tools the contract has.
const toolCount = 112

// contract is what the contract says of a tool.
type contract struct {
	Function   string          `json:"function"`
	Timeout    float64         `json:"timeout_s"`
	Required   []string        `json:"required"`
	Parameters json.RawMessage `json:"parameters"`
}

// The manifests have the names, parameters, types, values and times of the contract.
func TestManifestsFitTheContract(t *testing.T) {
	var want map[string]map[string]contract
	load(t, "testdata/contract.json", &want)
	count := 0
	for _, group := range groups() {
		data, err := group.Manifests.ReadFile("manifests/" + group.Name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var entries []struct {
			Name       string  `json:"name"`
			Function   string  `json:"function"`
			Timeout    float64 `json:"timeout_s"`
			Parameters struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			} `json:"parameters"`
		}
		if err := json.Unmarshal(data, &entries); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries[1:] {
			count++
			names = append(names, e.Name)
			w := want[group.Name][e.Name]
			var parameters map[string]any
			if err := json.Unmarshal(w.Parameters, &parameters); err != nil {
				t.Errorf("%s is not in the contract", e.Name)
				continue
			}
			if e.Function != w.Function || e.Timeout != w.Timeout {
				t.Errorf("%s: function %q within %v s, want %q within %v s", e.Name, e.Function, e.Timeout, w.Function, w.Timeout)
			}
			if diff := cmp.Diff(w.Required, append([]string{}, e.Parameters.Required...)); diff != "" {
				t.Errorf("%s: required (-want +got):\n%s", e.Name, diff)
			}
			if diff := cmp.Diff(parameters, bare(e.Parameters.Properties)); diff != "" {
				t.Errorf("%s: parameters (-want +got):\n%s", e.Name, diff)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want[group.Name])), names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", group.Name, diff)
		}
		if len(group.Operations) != len(names) {
			t.Errorf("%s has %d operations for %d tools", group.Name, len(group.Operations), len(names))
		}
	}
	if count != toolCount {
		t.Errorf("%d tools, want %d", count, toolCount)
	}
}

// bare is a schema without its words.
func bare(v map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range v {
		below, ok := value.(map[string]any)
		switch {
		case ok:
			out[key] = bare(below)
		case key != "description":
			out[key] = value
		}
	}
	return out
}

// scene is a state of the world in which every tool is run.
type scene struct {
	name   string
	before func(r *harness)
	user   string // ada if empty
	code   string // of the error, success if empty
	text   string // a part of the error
	after  func(r *harness) string
	// write replaces code and text where the first request must not be repeated.
	write *failure
}

// failure is an error as a scene expects it.
type failure struct{ code, text string }

// isRepeatable reports whether the first request that Google saw may be sent again after an answer that
// leaves open whether it was carried out (RFC 9110, 9.2.2).
func isRepeatable(r *harness) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodDelete}, r.em.Requests()[0].Verb)
}

// once returns a check that a request was sent once if it must not be repeated.
func once(r *harness) string {
	if n := len(r.em.Requests()); !isRepeatable(r) && n != 1 {
		return fmt.Sprintf("%d requests", n)
	}
	return ""
}

func scenes() []scene {
	soon, late := 0, 30
	return []scene{
		{name: "success", before: func(*harness) {}},
		{name: "not connected", before: func(*harness) {}, user: "telegram:9", code: service.CodeNotConnected, text: "/connect google"},
		{name: "expired token", before: func(r *harness) { r.em.ExpireTokens() }, after: func(r *harness) string {
			if r.em.Requests()[0].Status != http.StatusUnauthorized {
				return "the first request was not refused"
			}
			return ""
		}},
		{name: "401", before: fails(google.Fault{Status: 401}), code: toolgroups.CodeDenied, text: "/connect google"},
		{name: "403", before: fails(google.Fault{Status: 403, Reason: "forbidden", Message: "The user may not"}), code: toolgroups.CodeDenied, text: "The user may not"},
		{name: "404", before: fails(google.Fault{Status: 404, Reason: "notFound", Message: "No such thing"}), code: service.CodeNotFound, text: "No such thing"},
		{name: "409", before: fails(google.Fault{Status: 409}), code: service.CodeConflict},
		{name: "412", before: fails(google.Fault{Status: 412}), code: service.CodeConflict},
		{name: "429 for long", before: fails(google.Fault{Status: 429, RetryAfter: &late}), code: service.CodeRateLimited, text: "Try again in 30s"},
		{name: "429 for a moment", before: fails(google.Fault{Status: 429, RetryAfter: &soon, Times: 2})},
		{name: "403 that is a limit", before: fails(google.Fault{Status: 403, Reason: "userRateLimitExceeded", Times: 1})},
		{name: "503", before: fails(google.Fault{Status: 503}), code: service.CodeUnavailable, after: func(r *harness) string {
			if n := len(r.em.Requests()); isRepeatable(r) && n < maxAttempts {
				return fmt.Sprintf("%d requests", n)
			}
			return once(r)
		}},
		{
			name: "503 for a moment", before: fails(google.Fault{Status: 503, Times: 1}), after: once,
			write: &failure{service.CodeUnavailable, "look first whether it happened"},
		},
		{
			name: "503 although it is done", before: fails(google.Fault{Status: 503, Late: true, Times: 1}), after: once,
			write: &failure{service.CodeUnavailable, "look first whether it happened"},
		},
		{
			name: "done, and the answer lost", before: fails(google.Fault{Late: true, Times: 1}), after: once,
			write: &failure{service.CodeUnavailable, "It is not known whether Google has done it"},
		},
	}
}

func fails(f google.Fault) func(*harness) { return func(r *harness) { r.em.Inject(f) } }

// forDelegation reports whether Google allows a tool to service accounts with domain-wide
// delegation alone (users.settings in the reference of the Gmail API): to connect an account
// does not help.
func forDelegation(tool string) bool {
	switch tool {
	case "gmail_settings_add_forwarding", "gmail_settings_set_auto_forward", "gmail_settings_list_delegates":
		return true
	}
	return false
}

// Every tool, in every scene, against what Google's documents allow.
func TestEveryToolInEveryScene(t *testing.T) {
	t.Parallel()
	examples := calls(t)
	var shapes map[string]string
	load(t, "testdata/shapes.json", &shapes)
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	grantSharing(t, r)
	covered := map[string]bool{}
	methods := map[string]bool{}
	for _, group := range r.groups {
		for _, tool := range group.Tools {
			args, ok := examples[tool.Name]
			if !ok {
				t.Errorf("%s has no example", tool.Name)
				continue
			}
			for _, s := range scenes() {
				if s.code == service.CodeNotConnected && forDelegation(tool.Name) {
					s.code, s.text = toolgroups.CodeDenied, "domain-wide delegation"
				}
				t.Run(tool.Name+"/"+s.name, func(t *testing.T) {
					playScene(t, r, s, tool.Name, args, shapes[tool.Name])
					for _, request := range r.em.Requests() {
						methods[request.Method] = true
					}
				})
			}
			covered[tool.Name] = true
		}
	}
	t.Logf("%d tools in %d scenes, %d methods of Google's", len(covered), len(scenes()), len(methods))
	if len(covered) != toolCount || len(examples) != toolCount {
		t.Errorf("%d tools were run, with %d examples; want %d", len(covered), len(examples), toolCount)
	}
}

func playScene(t *testing.T, r *harness, s scene, tool string, args json.RawMessage, shape string) {
	r.em.Reset()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "upload.txt"), []byte("for the drive"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.before(r)
	user := ada
	if s.user != "" {
		user = s.user
	}
	res, fault := r.run(t.Context(), user, dir, tool, args)
	if s.write != nil && !isRepeatable(r) {
		s.code, s.text = s.write.code, s.write.text
		if r.tools[tool].Effect == toolgroups.ReadOnly {
			s.text = ""
		}
	}
	if code := codeOf(fault); code != s.code {
		t.Fatalf("code %q, want %q: %+v", code, s.code, fault)
	}
	if s.code == "" {
		checkShape(t, shape, res.Text)
		for _, f := range res.Files {
			if _, err := os.Stat(filepath.Join(dir, f.Path)); err != nil {
				t.Errorf("file for the chat: %v", err)
			}
		}
	} else if !strings.Contains(fault.Message, s.text) {
		t.Errorf("the error says %q, want %q in it", fault.Message, s.text)
	}
	if s.after != nil {
		if problem := s.after(r); problem != "" {
			t.Error(problem)
		}
	}
}

// grantSharing adds the scope that Google grants to domains alone.
func grantSharing(t *testing.T, r *harness) {
	t.Helper()
	a, rev, err := r.g.load(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	a.Scopes = append(a.Scopes, scopeSharing)
	if _, err := r.g.store(t.Context(), ada, a, rev); err != nil {
		t.Fatal(err)
	}
	r.em.AddScopes(adaMail, scopeSharing)
}

// checkShape checks that a result has the fields of the contract. "a[].b" wants a
// list with at least one entry, and b in each.
func checkShape(t *testing.T, shape, text string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("the result is no JSON: %v\n%s", err, text)
	}
	if shape == "" {
		t.Fatal("no shape")
	}
	for path := range strings.FieldsSeq(shape) {
		if problem := missingIn(v, strings.Split(path, ".")); problem != "" {
			t.Errorf("%s: %s in %s", path, problem, text)
		}
	}
}

func missingIn(v any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	object, ok := v.(map[string]any)
	if !ok {
		return "no object above " + name
	}
	below, ok := object[name]
	if !ok {
		return "no " + name
	}
	if !isList {
		return missingIn(below, path[1:])
	}
	entries, ok := below.([]any)
	if !ok || len(entries) == 0 {
		return name + " is no list with entries"
	}
	for _, e := range entries {
		if problem := missingIn(e, path[1:]); problem != "" {
			return problem
		}
	}
	return ""
}

// The tools with consequences are marked, so that they are asked about, and never run
// with the account of somebody else in the chat.
func TestConsequentialToolsArePersonal(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	grantSharing(t, r)
	r.em.Reset()
	examples := calls(t)
	var marked []string
	for name, tool := range r.tools {
		if !tool.Personal {
			t.Errorf("%s: others than its user may approve it", name)
		}
		if tool.Effect != toolgroups.Consequential {
			continue
		}
		marked = append(marked, name)
		for _, scope := range []toolgroups.Scope{
			{User: grace, Owner: "telegram:-100", Chat: "telegram:-100"},
			{User: grace, Owner: ada, Direct: true},
		} {
			_, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: name, Arguments: examples[name], Scope: scope})
			if codeOf(fault) != service.CodeNotConnected && (!forDelegation(name) || codeOf(fault) != toolgroups.CodeDenied) {
				t.Errorf("%s in %+v: %+v", name, scope, fault)
			}
		}
	}
	slices.Sort(marked)
	if diff := cmp.Diff(strings.Fields(consequential), marked); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	if n := len(r.em.Requests()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// consequential are the tools that send, delete, share, forward, invite or change settings, and those
// that can do so by raw requests.
const consequential = `calendar_create_event calendar_delete_calendar calendar_delete_event calendar_respond calendar_update_event
contacts_delete docs_batch_update docs_delete_range drive_delete_file drive_share_file
gmail_delete_draft gmail_delete_label gmail_draft_send gmail_reply gmail_send gmail_settings_add_forwarding
gmail_settings_create_filter gmail_settings_delete_filter gmail_settings_set_auto_forward
gmail_settings_update_imap gmail_settings_update_vacation
sheets_batch_update slides_batch_update slides_delete_slide tasks_delete_task`

// The schemas of all tools together stay small.
func TestSchemasAreSmall(t *testing.T) {
	r := newRig(t, Config{KV: openKV(t)})
	total := 0
	for _, group := range r.groups {
		n := toolgroups.EstimateTokens(group.Tools)
		t.Logf("%s: %d tools, about %d tokens", group.Name, len(group.Tools), n)
		total += n
	}
	t.Logf("together about %d tokens", total)
	if total > 10_500 {
		t.Errorf("the schemas take about %d tokens", total)
	}
}
