package google

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	emulator "oneclaw/internal/emulator/google"
	"oneclaw/toolgroups/google/service"
)

// newStory is a desk before the emulator, which refuses what Google's documents do
// not allow and remembers what was done.
func newStory(t *testing.T) *driveHarness {
	t.Helper()
	return newDesk(t).before(t, newEmulator(t), emulator.DefaultAccount)
}

func newEmulator(t *testing.T, accounts ...string) *emulator.Server {
	t.Helper()
	server, err := emulator.New(emulator.Config{ClientID: "client", ClientSecret: "secret", Accounts: accounts})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// before connects an account of the emulator.
func (d *driveHarness) before(t *testing.T, server *emulator.Server, email string) *driveHarness {
	t.Helper()
	d.answering(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		if r.Body == nil {
			r.Body = http.NoBody
		}
		defer func() { _ = r.Body.Close() }()
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Result(), nil
	})
	d.connect(t, testUser, account{
		AccessToken: storyToken(t, server, email), Expiry: time.Now().Add(time.Hour), RefreshToken: "r", Scopes: everyScope(),
	})
	return d
}

// storyToken signs in at the emulator.
func storyToken(t *testing.T, server *emulator.Server, email string) string {
	t.Helper()
	const back = "http://127.0.0.1:1/cb"
	page, err := server.Consent("http://x/o/oauth2/v2/auth?"+url.Values{
		"client_id": {"client"}, "redirect_uri": {back}, "response_type": {"code"}, "state": {"s"}, "scope": {strings.Join(everyScope(), " ")},
	}.Encode(), email)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {u.Query().Get("code")}, "redirect_uri": {back},
		"client_id": {"client"}, "client_secret": {"secret"},
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Token == "" {
		t.Fatalf("no token: %s", w.Body)
	}
	return answer.Token
}

// tell runs a tool that must succeed and decodes its result into out.
func (d *driveHarness) tell(t *testing.T, out any, tool, format string, args ...any) {
	t.Helper()
	res, fault := d.run(t.Context(), tool, fmt.Sprintf(format, args...))
	if fault != nil {
		t.Fatalf("%s: %s: %s", tool, fault.Code, fault.Message)
	}
	if err := json.Unmarshal([]byte(res.Text), out); err != nil {
		t.Fatalf("%s: %v in %s", tool, err, res.Text)
	}
}

func TestExamplesAgainstTheEmulator(t *testing.T) {
	calls := examples(t)
	// An account of its own for each, so that none finds what another has deleted.
	server := newEmulator(t, slices.Collect(maps.Keys(calls))...)
	d := newDesk(t)
	d.put(t, "upload.txt", []byte("x"))
	for tool, args := range calls {
		t.Run(tool, func(t *testing.T) {
			d.before(t, server, tool)
			var out map[string]any
			d.tell(t, &out, tool, "%s", args)
			if len(out) == 0 {
				t.Error("the result is empty")
			}
		})
	}
}

type storyFiles struct {
	Files []struct{ ID, Name string }
}

func TestDriveStory(t *testing.T) {
	d := newStory(t)
	d.put(t, "plan.txt", []byte("the plan"))
	var folder, file struct {
		ID, Name string
		Parents  []string
	}
	var found storyFiles
	d.tell(t, &folder, "drive_create_folder", `{"name":"It's new"}`)
	d.tell(t, &file, "drive_upload", `{"file_path":"plan.txt","name":"Ann's plan","mime_type":"text/plain"}`)
	d.tell(t, &file, "drive_rename_file", `{"file_id":%q,"new_name":"Ann's \\ plan"}`, file.ID)
	d.tell(t, &file, "drive_move_file", `{"file_id":%q,"new_parent_id":%q}`, file.ID, folder.ID)
	if len(file.Parents) != 1 || file.Parents[0] != folder.ID {
		t.Errorf("the file lies in %q, want %q", file.Parents, folder.ID)
	}
	d.tell(t, &found, "drive_search", `{"query":"Ann's \\ plan"}`)
	if len(found.Files) != 1 || found.Files[0].ID != file.ID {
		t.Errorf("found %+v, want %s", found, file.ID)
	}
	d.tell(t, &found, "drive_list_files", `{"parent_id":%q,"query":"name='x' or name!='x'"}`, folder.ID)
	if len(found.Files) != 1 {
		t.Errorf("in the folder lie %+v, want one file", found)
	}
	var saved struct{ Path string }
	d.tell(t, &saved, "drive_download", `{"file_id":%q,"save_path":"got/plan.txt"}`, file.ID)
	if got, err := os.ReadFile(filepath.Join(d.dir, saved.Path)); err != nil || string(got) != "the plan" {
		t.Errorf("downloaded %q, %v", got, err)
	}
	var access struct {
		Permissions []struct{ EmailAddress, Role string }
	}
	var granted map[string]any
	d.tell(t, &granted, "drive_share_file", `{"file_id":%q,"email":"bob@example.com","role":"commenter"}`, file.ID)
	d.tell(t, &access, "drive_permissions", `{"file_id":%q}`, file.ID)
	shared := false
	for _, p := range access.Permissions {
		shared = shared || p.EmailAddress == "bob@example.com" && p.Role == "commenter"
	}
	if !shared {
		t.Errorf("access is %+v, want bob's too", access)
	}
	var trashed struct{ Trashed bool }
	d.tell(t, &trashed, "drive_delete_file", `{"file_id":%q}`, file.ID)
	d.tell(t, &found, "drive_list_files", `{"parent_id":%q}`, folder.ID)
	if !trashed.Trashed || len(found.Files) != 0 {
		t.Errorf("after the deletion: %+v, %+v", trashed, found)
	}
	_, fault := d.run(t.Context(), "drive_download", `{"file_id":"doc-notes","save_path":"notes"}`)
	if codeOf(fault) != "validation_error" || !strings.Contains(fault.Message, "drive_export") {
		t.Errorf("download of a document: %+v", fault)
	}
	var shortcut struct {
		ShortcutDetails struct{ TargetID string }
	}
	if _, fault = d.run(t.Context(), "drive_download", `{"file_id":"shortcut-report","save_path":"report"}`); codeOf(fault) != "validation_error" {
		t.Errorf("download of a shortcut: %+v", fault)
	}
	d.tell(t, &shortcut, "drive_get_file", `{"file_id":"shortcut-report"}`)
	d.tell(t, &saved, "drive_download", `{"file_id":%q,"save_path":"report.pdf"}`, shortcut.ShortcutDetails.TargetID)
}

func TestDocsStory(t *testing.T) {
	d := newStory(t)
	var doc struct{ DocumentID, Text string }
	var changed map[string]any
	d.tell(t, &doc, "docs_create", `{"title":"Minutes"}`)
	d.tell(t, &changed, "docs_append_text", `{"document_id":%q,"text":"two\n"}`, doc.DocumentID)
	d.tell(t, &changed, "docs_insert_text", `{"document_id":%q,"text":"one\n"}`, doc.DocumentID)
	d.tell(t, &changed, "docs_append_text", `{"document_id":%q,"text":"three\n"}`, doc.DocumentID)
	d.tell(t, &changed, "docs_find_replace", `{"document_id":%q,"find_text":"two","replace_text":"2"}`, doc.DocumentID)
	d.tell(t, &changed, "docs_delete_range", `{"document_id":%q,"start_index":1,"end_index":5}`, doc.DocumentID)
	d.tell(t, &doc, "docs_get_text", `{"document_id":%q}`, doc.DocumentID)
	if got := strings.TrimSpace(doc.Text); got != "2\nthree" {
		t.Errorf("the text is %q", got)
	}
}

func TestContactsStory(t *testing.T) {
	d := newStory(t)
	var made, read struct{ ResourceName, Name, Email, Phone string }
	d.tell(t, &made, "contacts_create", `{"given_name":"Ann","family_name":"Lee","email":"a@example.com","phone":"+1"}`)
	d.tell(t, &read, "contacts_update", `{"resource_name":%q,"family_name":"Kay","email":"k@example.com"}`, made.ResourceName)
	d.tell(t, &read, "contacts_get", `{"resource_name":%q}`, made.ResourceName)
	if read.Name != "Ann Kay" || read.Email != "k@example.com" || read.Phone != "+1" {
		t.Errorf("the contact is %+v", read)
	}
	var success struct{ Success bool }
	d.tell(t, &success, "contacts_delete", `{"resource_name":%q}`, made.ResourceName)
	_, fault := d.run(t.Context(), "contacts_get", fmt.Sprintf(`{"resource_name":%q}`, made.ResourceName))
	if !success.Success || codeOf(fault) != service.CodeNotFound {
		t.Errorf("after the deletion: %+v, %+v", success, fault)
	}
}

func TestSlidesAndFormsStory(t *testing.T) {
	d := newStory(t)
	var deck struct {
		PresentationID string
		SlideCount     int
		Replies        []struct{ CreateSlide struct{ ObjectID string } }
	}
	d.tell(t, &deck, "slides_add_slide", `{"presentation_id":"slides-pitch","layout":"BLANK"}`)
	d.tell(t, &deck, "slides_list_slides", `{"presentation_id":"slides-pitch"}`)
	if deck.SlideCount != 3 {
		t.Errorf("%d slides, want 3", deck.SlideCount)
	}
	d.tell(t, &deck, "slides_delete_slide", `{"presentation_id":"slides-pitch","slide_id":%q}`, deck.Replies[0].CreateSlide.ObjectID)
	d.tell(t, &deck, "slides_list_slides", `{"presentation_id":"slides-pitch"}`)
	if deck.SlideCount != 2 {
		t.Errorf("%d slides, want 2", deck.SlideCount)
	}
	var form struct {
		FormID string
		Items  []struct {
			Title        string
			QuestionItem struct{ Question struct{ Type string } }
		}
	}
	var added map[string]any
	d.tell(t, &form, "forms_create", `{"title":"Lunch"}`)
	for _, title := range []string{"A", "B"} {
		d.tell(t, &added, "forms_add_question", `{"form_id":%q,"title":%q,"type":"radio","options":["x"]}`, form.FormID, title)
	}
	d.tell(t, &added, "forms_add_question", `{"form_id":%q,"title":"0","type":"date","index":0}`, form.FormID)
	d.tell(t, &form, "forms_get", `{"form_id":%q}`, form.FormID)
	got := ""
	for _, item := range form.Items {
		got += item.Title + " " + item.QuestionItem.Question.Type + ";"
	}
	if got != "0 DATE;A CHOICE;B CHOICE;" {
		t.Errorf("the questions are %s", got)
	}
}
