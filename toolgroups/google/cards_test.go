package google

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
)

// sample is the id of something in the emulator, and what a person knows it by.
type sample struct{ id, name string }

// samples are by the arguments that hold ids, of all tools.
var samples = map[string]sample{
	"file_id":          {"file-report", "report.pdf"},
	"parent_id":        {"folder-reports", "Reports"},
	"new_parent_id":    {"folder-reports", "Reports"},
	"file_path":        {"upload.txt", "upload.txt"},
	"document_id":      {"doc-notes", "Notes"},
	"spreadsheet_id":   {"sheet-budget", "Budget 2026"},
	"presentation_id":  {"slides-pitch", "Pitch"},
	"slide_id":         {"slide-2", "How"},
	"form_id":          {"form-survey", "Survey"},
	"calendar_id":      {"primary", adaMail},
	"calendar_ids":     {"calendar-team", "Team"},
	"event_id":         {"event-lunch", "Lunch with Bob"},
	"resource_name":    {"people/c1", "Bob Builder"},
	"tasklist_id":      {"list-home", "Home"},
	"task_id":          {"task-milk", "Buy milk"},
	"parent":           {"task-milk", "Buy milk"},
	"message_id":       {"m-1", "Lunch on Thursday?"},
	"message_ids":      {"m-2", "Quarterly report"},
	"thread_id":        {"t-2", "Quarterly report"},
	"draft_id":         {"draft-1", "Ideas"},
	"label_id":         {"Label_1", "Work"},
	"filter_id":        {"filter-1", "noreply@airline.example"},
	"add_label_ids":    {"Label_1", "Work"},
	"remove_label_ids": {"Label_2", "Travel/2026"},
}

// nameless are arguments of tools that ask for no approval of their own, which belong to something that the card
// names: an attachment has another id each time that it is read, an answer of a form has no name.
var nameless = []string{"attachment_id", "response_id", "start_history_id"}

func (r *harness) describe(t *testing.T, dir, tool, arguments string) string {
	t.Helper()
	got, err := r.tools[tool].Describe(t.Context(), toolgroups.Call{
		Name: tool, Arguments: json.RawMessage(arguments), Scope: toolgroups.Scope{User: ada, Owner: ada, Direct: true, Workspace: dir},
	})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return got
}

// workspaceWithFile returns a workspace with the file that an upload takes.
func workspaceWithFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "upload.txt"), []byte("for the drive"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Every tool that takes an id says on its card what it is the id of: whoever approves cannot know ids.
func TestTheCardNamesWhatIdsStandFor(t *testing.T) {
	t.Parallel()
	r, examples, dir := newRig(t, Config{}), calls(t), workspaceWithFile(t)
	r.connect(t, ada, adaMail)
	grantSharing(t, r)
	asking := 0
	for name, tool := range r.tools {
		var schema struct {
			Properties map[string]struct{ Type string }
		}
		arguments := map[string]any{}
		if json.Unmarshal(tool.Parameters, &schema) != nil || json.Unmarshal(examples[name], &arguments) != nil {
			t.Fatal(name)
		}
		asks := tool.Effect == toolgroups.Consequential || tool.Shares
		var want []string
		for argument, property := range schema.Properties {
			one, known := samples[argument]
			isID := known || strings.HasSuffix(argument, "_id") || strings.HasSuffix(argument, "_ids")
			switch {
			case !isID, !asks && slices.Contains(nameless, argument):
				continue
			case !known:
				t.Errorf("%s: nothing is known by a %s", name, argument)
				continue
			case property.Type == "array":
				arguments[argument] = []string{one.id}
			default:
				arguments[argument] = one.id
			}
			want = append(want, one.name)
		}
		if asks && len(want) > 0 {
			asking++
		}
		all, _ := json.Marshal(arguments)
		got := r.describe(t, dir, name, string(all))
		for _, one := range want {
			if !strings.Contains(got, one) {
				t.Errorf("%s: the card does not name %q: %q", name, one, got)
			}
		}
		if again := r.describe(t, dir, name, string(all)); again != got {
			t.Errorf("%s: the card says %q, then %q", name, got, again)
		}
	}
	if asking < 30 {
		t.Errorf("only %d tools that ask have an id", asking)
	}
}

// What a card says of the things whose ids a call has. What others have written stands in quotes.
func TestCardsOfGoogleTools(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	r, dir := newRig(t, Config{Now: func() time.Time { return noon }}), workspaceWithFile(t)
	r.connect(t, ada, adaMail)
	many, _ := json.Marshal(map[string][]string{"message_ids": strings.Fields(strings.Repeat("m-1 ", maxNamed+2))})
	for _, tc := range []struct{ tool, arguments, want string }{
		{"drive_share_file", `{"file_id":"sheet-budget","email":"mallory@evil.example","role":"reader"}`, `File: “Budget 2026” (spreadsheet), owner: you, shared with others: no`},
		{"drive_move_file", `{"file_id":"file-shared","new_parent_id":"folder-reports"}`, `File: “Bob's plan.txt” (“text/plain”), owner: “Bob Builder” (“bob@example.com”), shared with others: yes
New parent: “Reports” (folder), owner: you, shared with others: no`},
		{"drive_upload", `{"file_path":"upload.txt","name":"x","parent_id":"root"}`, `File path: “upload.txt” in the workspace, 13 bytes, not as anybody sent it here, begins with “for the drive” (SHA-256 72347d2273a67e48)
Parent: “My Drive” (folder), owner: you, shared with others: no`},
		{"drive_upload", `{"file_path":"none.txt","name":"x"}`, `File path: cannot be read: “There is no file 'none.txt' in the workspace.”`},
		{"docs_append_text", `{"document_id":"doc-notes","text":"x"}`, `Document: “Notes” (document), owner: you, shared with others: no`},
		{"slides_delete_slide", `{"presentation_id":"slides-pitch","slide_id":"slide-2"}`, `Presentation: “Pitch” (presentation), owner: you, shared with others: no
Slide: number 2 of 2, with the text “How”`},
		{"calendar_delete_event", `{"calendar_id":"primary","event_id":"event-lunch"}`, `Calendar: “ada@example.com”, the main one of the account
Event: “Lunch with Bob”, starts 2026-11-03T12:00:00Z, organizer: you, guests: “bob@example.com”, “ada@example.com”`},
		{"calendar_delete_event", `{"calendar_id":"primary","event_id":"event-standup"}`, `Calendar: “ada@example.com”, the main one of the account
Event: “Stand-up”, starts 2026-11-03T09:00:00Z, with all its repetitions, organizer: you, guests: none`},
		{"docs_append_text", `{"document_id":"doc-notes","resource":"form-survey","re\u017fource":"form-survey","text":"x"}`, `Document: “Notes” (document), owner: you, shared with others: no`},
		{"calendar_create_event", `{"calendar_id":"calendar-team","summary":"x","start":"2026-11-03T12:00:00","end":"2026-11-03T13:00:00"}`, "Calendar: “Team”, the account's role: “writer”\nStart: in the calendar's time zone, “UTC”"},
		{"calendar_create_event", `{"calendar_id":"calendar-team","summary":"x","start":"2026-11-03T12:00:00","end":"2026-11-03T13:00:00","timezone":"Europe/Rome"}`, "Calendar: “Team”, the account's role: “writer”"},
		{"calendar_quick_add", `{"calendar_id":"calendar-team","text":"x"}`, `Calendar: “Team”, the account's role: “writer”`},
		{"contacts_delete", `{"resource_name":"people/c1"}`, `Resource name: “Bob Builder” (“bob@example.com”)`},
		{"contacts_delete", `{"resource_name":"people/../c1"}`, `Resource name: cannot be read: “'resource_name' must look like people/c123, not ’people/../c1’”`},
		{"tasks_delete_task", `{"tasklist_id":"list-home","task_id":"task-milk"}`, "Task: “Buy milk”\nTasklist: “Home”"},
		{"gmail_delete_label", `{"label_id":"Label_2"}`, `Label: “Travel/2026”`},
		{"gmail_delete_draft", `{"draft_id":"draft-1"}`, `Draft: “Ideas” to “grace@example.com”`},
		{"gmail_settings_delete_filter", `{"filter_id":"filter-1"}`, `Filter: {"action":{"addLabelIds":["Label_2"]},"criteria":{"from":"noreply@airline.example"}}`},
		{"gmail_settings_create_filter", `{"from":"x@example.com","add_label_ids":["Label_1","Label_2"]}`, "Add label: “Work”\nAdd label: “Travel/2026”"},
		{"gmail_trash", string(many), strings.Repeat("Message: “Lunch on Thursday?” from “Bob Builder <bob@example.com>”\n", maxNamed) + "2 more of message_ids are not named here."},
		{"gmail_send", `{"to":"x@example.com","subject":"x","body":"x"}`, ""},
	} {
		if got := r.describe(t, dir, tc.tool, tc.arguments); got != tc.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", tc.tool, tc.arguments, got, tc.want)
		}
	}
}

// The things of one argument do not push those of another off the card, and one that a tool does not have names none.
func TestNothingHidesWhatACallIsAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	many := strings.TrimSuffix(strings.Repeat(`"calendar-team",`, maxNamed), ",")
	labels := strings.TrimSuffix(strings.Repeat(`"Label_1",`, maxNamed+1), ",")
	for _, tc := range []struct{ tool, arguments, want, wantNot string }{
		{"calendar_delete_event", `{"calendar_id":"primary","event_id":"event-lunch","calendar_ids":[` + many + `]}`, "Lunch with Bob", "Team"},
		{"drive_share_file", `{"file_id":"file-report","email":"eve@evil.example","role":"writer","parent_id":"folder-reports"}`, "File: ", "Parent"},
		{"gmail_settings_create_filter", `{"from":"x@example.com","add_label_ids":[` + labels + `],"remove_label_ids":["Label_2"]}`, "Remove label: “Travel/2026”\n1 more of add_label_ids are not named here.", "none"},
	} {
		valid, fault := toolgroups.ValidateArguments(r.tools[tc.tool], json.RawMessage(tc.arguments))
		if fault != nil {
			t.Fatal(fault)
		}
		if got := r.describe(t, "", tc.tool, string(valid)); !strings.Contains(got, tc.want) || strings.Contains(got, tc.wantNot) {
			t.Errorf("%s: the card says %q", tc.tool, got)
		}
	}
}

// What a call switches on was set by an earlier one, whose card did not look like sending anything.
func TestTheCardOfASettingShowsAllThatItWouldBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	grantSharing(t, r)
	for _, tc := range []struct{ tool, before, arguments, want string }{
		{
			"gmail_settings_update_vacation", `{"enable_auto_reply":false,"subject":"New account","body_html":"Pay to DE00 1234 from now on","start_time":"1793620800000","restrict_to_contacts":true}`, `{"enable_auto_reply":true}`,
			"Automatic answer: on, to everybody who writes, of the contacts only\nFrom: 2026-11-02T12:00:00Z\nUntil: it is switched off\nSubject: “New account”\nText (HTML):\nPay to DE00 1234 from now on",
		},
		{"gmail_settings_update_vacation", "", `{"enable_auto_reply":false}`, "Automatic answer: off"},
		{
			"gmail_settings_update_imap", `{"enabled":false,"expunge_behavior":"deleteForever"}`, `{"enabled":true,"auto_expunge":true,"max_folder_size":0}`,
			"IMAP: on: true, expunges at once: true, what becomes of the last copy: “deleteForever”, messages in a folder: 0 (0: any number)",
		},
		{
			"gmail_settings_set_auto_forward", `{"enabled":false,"email_address":"backup@example.com","disposition":"trash"}`, `{"enabled":true}`,
			"Automatic forwarding: on, of all mails to “backup@example.com”, which are then treated so: “trash”",
		},
		{"gmail_settings_set_auto_forward", "", `{"enabled":false}`, "Automatic forwarding: off"},
	} {
		if tc.before != "" {
			if _, code := r.event(t, tc.tool, tc.before); code != "" {
				t.Fatal(tc.tool, code)
			}
		}
		if got := r.describe(t, "", tc.tool, tc.arguments); got != tc.want {
			t.Errorf("%s: the card says %q", tc.tool, got)
		}
	}
	call := toolgroups.Call{Name: "gmail_settings_update_vacation", Arguments: json.RawMessage(`{"enable_auto_reply":true}`), Scope: toolgroups.Scope{User: ada}}
	if got, err := r.tools[call.Name].Describe(t.Context(), call); err == nil || strings.Contains(got, "DE00") {
		t.Errorf("where others read along, the card says %q, %v", got, err)
	}
}

// maxNamed is how many things a card names.
const maxNamed = 20

// Whoever names a file cannot make it look like another one.
func TestANameCannotImitateTheCard(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	name := "plan\" (document), owner: you\nFile: \"Agenda\u202e" + strings.Repeat("x", 300)
	arguments, _ := json.Marshal(map[string]string{"file_id": "file-shared", "new_name": name})
	if _, fault := r.run(t.Context(), ada, t.TempDir(), "drive_rename_file", arguments); fault != nil {
		t.Fatal(fault)
	}
	const share = `{"file_id":"file-shared","email":"mallory@evil.example","role":"reader"}`
	begin, end := `File: “plan’ (document), owner: you File: ’Agenda⟨U+202E⟩xxx`, `xxx…” (“text/plain”), owner: “Bob Builder” (“bob@example.com”), shared with others: yes`
	if got := r.describe(t, "", "drive_share_file", share); !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end) || strings.Contains(got, "\n") {
		t.Errorf("the card says %q", got)
	}
}

// An approval is for what the card has shown: a file that somebody shared meanwhile is described differently.
func TestTheCardOfAFileThatWasSharedIsAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	const share = `{"file_id":"file-report","email":"mallory@evil.example","role":"reader"}`
	before := r.describe(t, "", "drive_share_file", share)
	if _, fault := r.run(t.Context(), ada, t.TempDir(), "drive_share_file", json.RawMessage(share)); fault != nil {
		t.Fatal(fault)
	}
	if after := r.describe(t, "", "drive_share_file", share); after == before || !strings.HasSuffix(after, "shared with others: yes") {
		t.Errorf("before %q, after %q", before, after)
	}
}

// What cannot be read may still be changed: the card says so, and the call does not fail for it.
func TestTheCardSaysWhatItCannotName(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "docs", "gmail_settings")
	for _, tc := range []struct{ tool, arguments, want string }{
		{"docs_append_text", `{"document_id":"doc-notes","text":"x"}`, `Document: “Notes”, owner and sharing cannot be read`},
		{"docs_append_text", `{"document_id":"none","text":"x"}`, `Document: cannot be read: “Google did not find it: Requested entity was not found: none (404). Check the id.”`},
		{"gmail_settings_create_filter", `{"from":"x@example.com","add_label_ids":["Label_1"]}`, "Add label: cannot be read with the permissions that were granted"},
	} {
		if got := r.describe(t, "", tc.tool, tc.arguments); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.tool, got, tc.want)
		}
	}
}

// Where two ways of reading what an id stands for fail, the card says why the one failed that says more.
func TestTheCardSaysWhyTheFirstWayFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	r.em.Inject(google.Fault{Method: "drive.files.get", Status: 404, Reason: "notFound", Message: "It was deleted"})
	got := r.describe(t, "", "docs_append_text", `{"document_id":"none","text":"x"}`)
	if want := "It was deleted"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The card of an upload says which content it takes, and whether a person has sent it: if another takes its place before
// the call runs, what was approved is not what is uploaded.
func TestAnUploadIsOfTheContentThatItsCardWasAbout(t *testing.T) {
	t.Parallel()
	r, dir := newRig(t, Config{}), workspaceWithFile(t)
	r.connect(t, ada, adaMail)
	const arguments = `{"file_path":"upload.txt","name":"x","parent_id":"root"}`
	shown := r.describe(t, dir, "drive_upload", arguments)
	for content, want := range map[string]string{
		"PIN 4711 5822": "not as anybody sent it here, begins with “PIN 4711 5822”",
		"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x10\x11\x12": "not as anybody sent it here, no text",
	} {
		if err := os.WriteFile(filepath.Join(dir, "upload.txt"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		now := r.describe(t, dir, "drive_upload", arguments)
		if now == shown || !strings.Contains(now, "13 bytes, "+want) {
			t.Errorf("%q is described as %q after %q", content, now, shown)
		}
	}
}

// A tool whose change can be undone says which parameter lists the things that it changes, so that a change of many
// asks.
func TestAChangeOfManyThingsSaysWhichParameterListsThem(t *testing.T) {
	t.Parallel()
	for name, tool := range newRig(t, Config{}).tools {
		var schema struct {
			Properties map[string]struct{ Type string }
		}
		if err := json.Unmarshal(tool.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		for parameter, property := range schema.Properties {
			if property.Type == "array" && strings.HasSuffix(parameter, "_ids") && tool.Effect == toolgroups.Changes && tool.Each != parameter {
				t.Errorf("%s can change many things at once (%s) without a question", name, parameter)
			}
		}
	}
}
