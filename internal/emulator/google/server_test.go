package google

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const everything = "https://mail.google.com/ https://www.googleapis.com/auth/drive https://www.googleapis.com/auth/calendar " +
	"https://www.googleapis.com/auth/contacts https://www.googleapis.com/auth/spreadsheets https://www.googleapis.com/auth/tasks"

// client is a signed-in user of a server.
type client struct {
	s     *Server
	token string
}

func newClient(t *testing.T, scopes string) *client {
	t.Helper()
	s, err := New(Config{ClientID: "id", ClientSecret: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{s: s}
	page := "http://x/o/oauth2/v2/auth?" + url.Values{
		"client_id": {"id"}, "redirect_uri": {"http://127.0.0.1:1/cb"}, "response_type": {"code"}, "scope": {scopes}, "state": {"st"},
	}.Encode()
	back, err := s.Consent(page, DefaultAccount)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(back)
	if err != nil || u.Query().Get("state") != "st" {
		t.Fatalf("sent to %s, %v", back, err)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {u.Query().Get("code")}, "redirect_uri": {"http://127.0.0.1:1/cb"},
		"client_id": {"id"}, "client_secret": {"secret"},
	}
	status, answer := c.do(t, "POST /token", form.Encode())
	c.token, _ = answer["access_token"].(string)
	if status != http.StatusOK || c.token == "" {
		t.Fatalf("token: %d %v", status, answer)
	}
	if status, _ := c.do(t, "POST /token", form.Encode()); status != http.StatusBadRequest {
		t.Errorf("the code was accepted a second time: %d", status)
	}
	return c
}

// do sends a request, which is "METHOD /path", and returns the answer.
func (c *client) do(t *testing.T, request, body string) (int, doc) {
	t.Helper()
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, target, bytes.NewReader([]byte(body)))
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	w := httptest.NewRecorder()
	c.s.ServeHTTP(w, r)
	out := doc{}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatalf("%s: answer %q: %v", request, w.Body, err)
		}
	}
	return w.Code, out
}

// What does not fit the documents is refused.
func TestStrictness(t *testing.T) {
	c := newClient(t, everything)
	for _, tc := range []struct {
		name, request, body string
		status              int
	}{
		{"fits", "POST /tasks/v1/lists/list-home/tasks", `{"title":"x"}`, 200},
		{"field that is none", "POST /tasks/v1/lists/list-home/tasks", `{"titel":"x"}`, 400},
		{"field of another type", "POST /tasks/v1/lists/list-home/tasks", `{"title":5}`, 400},
		{"nested field that is none", "POST /calendar/v3/calendars/primary/events", `{"start":{"when":"now"}}`, 400},
		{"event without an end", "POST /calendar/v3/calendars/primary/events", `{"start":{"date":"2027-01-01"}}`, 400},
		{"event of a day and a time", "PATCH /calendar/v3/calendars/primary/events/event-holiday", `{"start":{"dateTime":"2027-01-01T10:00:00Z"}}`, 400},
		{"file without metadata", "POST /upload/drive/v3/files?uploadType=media", "{}", 200},
		{"no JSON", "POST /tasks/v1/lists/list-home/tasks", `{`, 400},
		{"body where none belongs", "POST /gmail/v1/users/me/messages/m-1/trash", `{"ids":[]}`, 400},
		{"path that is none", "GET /gmail/v1/users/me/mails", "", 404},
		{"verb that is none", "PUT /tasks/v1/lists/list-home/tasks", "{}", 404},
		{"parameter that is none", "GET /tasks/v1/lists/list-home/tasks?limit=3", "", 400},
		{"parameter of another type", "GET /tasks/v1/lists/list-home/tasks?maxResults=ten", "", 400},
		{"parameter twice", "GET /tasks/v1/lists/list-home/tasks?maxResults=1&maxResults=2", "", 400},
		{"value outside of an enumeration", "GET /gmail/v1/users/me/messages/m-1?format=short", "", 400},
		{"required parameter", "GET /gmail/v1/users/me/history?startHistoryId=1", "", 404},
		{"unknown id", "GET /tasks/v1/lists/list-home/tasks/none", "", 404},
		{"unknown label", "POST /gmail/v1/users/me/messages/m-1/modify", `{"addLabelIds":["Work"]}`, 400},
		{
			"too many ids", "POST /gmail/v1/users/me/messages/batchModify",
			`{"addLabelIds":["TRASH"],"ids":["` + strings.Repeat(`a","`, 1000) + `b"]}`, 400,
		},
		{"scope that was not granted", "GET /v1/forms/form-survey", "", 200},
		{"half a state of publication", "POST /v1/forms/form-survey:setPublishSettings", `{"publishSettings":{"publishState":{"isPublished":true}}}`, 400},
		{"field selection that is none", "GET /drive/v3/files?fields=files(nam)", "", 400},
		{"message with bytes beyond ASCII", "POST /gmail/v1/users/me/messages/send", `{"raw":"VG86IGFAYi5jCgrDpA=="}`, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "scope that was not granted" {
				tc.status = 403
				tc.request = "GET /v1/presentations/slides-pitch"
				c.s.auth.access[c.token] = grant{account: DefaultAccount, scopes: []string{"x"}, expires: c.s.auth.access[c.token].expires}
				defer func(g grant) { g.scopes = strings.Fields(everything); c.s.auth.access[c.token] = g }(c.s.auth.access[c.token])
			}
			if status, answer := c.do(t, tc.request, tc.body); status != tc.status {
				t.Errorf("%s: %d %v, want %d", tc.request, status, answer, tc.status)
			}
		})
	}
	c.s.ExpireTokens()
	if status, _ := c.do(t, "GET /tasks/v1/users/@me/lists", ""); status != http.StatusUnauthorized {
		t.Errorf("expired token: %d", status)
	}
}

// What is changed is seen afterwards.
func TestWorldRemembers(t *testing.T) {
	c := newClient(t, everything)
	_, found := c.do(t, "GET /gmail/v1/users/me/messages?q=in:spam&maxResults=500", "")
	var ids []string
	for _, m := range asList(found["messages"]) {
		ids = append(ids, fmt.Sprint(m.(doc)["id"]))
	}
	if len(ids) != spamEmails {
		t.Fatalf("%d letters in the spam", len(ids))
	}
	body, err := json.Marshal(doc{"ids": ids, "addLabelIds": []string{"TRASH"}})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := c.do(t, "POST /gmail/v1/users/me/messages/batchModify", string(body)); status != http.StatusNoContent {
		t.Fatalf("batchModify: %d", status)
	}
	if _, found = c.do(t, "GET /gmail/v1/users/me/messages?q=in:spam", ""); found["messages"] != nil {
		t.Errorf("still in the spam: %v", found)
	}
	if _, found = c.do(t, "GET /gmail/v1/users/me/messages?q=is:unread", ""); len(asList(found["messages"])) != 3 {
		t.Errorf("unread letters: %v", found)
	}
	c.do(t, "PUT /v4/spreadsheets/sheet-budget/values/Budget!B2:B2?valueInputOption=RAW", `{"values":[["1300"]]}`)
	_, cells := c.do(t, "GET /v4/spreadsheets/sheet-budget/values/Budget!A2:B3", "")
	if diff := cmp.Diff([]any{[]any{"Rent", "1300"}, []any{"Food", "400"}}, cells["values"]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	_, files := c.do(t, "GET /drive/v3/files?fields=files(id)&q="+url.QueryEscape(`trashed=false and (name contains 'bob\'s' or fullText contains 'pitch')`), "")
	if diff := cmp.Diff(doc{"files": []any{doc{"id": "slides-pitch"}, doc{"id": "file-shared"}}}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFaults(t *testing.T) {
	c := newClient(t, everything)
	after := 7
	c.s.Inject(Fault{Method: "tasks.*", Status: 429, RetryAfter: &after, SkipFirst: 1, Times: 1})
	for i, want := range []int{200, 429, 200} {
		if status, _ := c.do(t, "GET /tasks/v1/users/@me/lists", ""); status != want {
			t.Errorf("request %d: %d, want %d", i+1, status, want)
		}
	}
	if seen := c.s.Requests(); len(seen) != 3 || seen[1].Method != "tasks.tasklists.list" || seen[1].Status != 429 || seen[2].Account != DefaultAccount {
		t.Errorf("seen %+v", seen)
	}
}

// A sample of every answer passes the check that requests have to pass.
func TestSamplesFitTheirShapes(t *testing.T) {
	all, err := buildRoutes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		c := &call{route: r}
		if out := c.sampleAnswer(); out != nil {
			data, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			if rej := r.api.checkValue(shape{Ref: r.method.Answer}, v, ""); rej != nil {
				t.Errorf("%s: %s", r.id, rej.message)
			}
		}
	}
	if len(all) < 240 {
		t.Errorf("%d methods", len(all))
	}
}

func FuzzMask(f *testing.F) {
	for _, s := range []string{"a", "a,b(c,d/e),f.g", "files(id,name),nextPageToken", "a(", ")", "a/b(c),d"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if m, rest, ok := parseMask(text); ok && rest == "" {
			m.apply(doc{"a": []any{doc{"b": 1}}})
		}
	})
}

func FuzzDriveQuery(f *testing.F) {
	for _, s := range []string{"name = 'x'", "not trashed=true and ('a' in parents or sharedWithMe)", "((", "'", "fullText contains 'a\\'b'"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, q string) {
		_, _ = matchesQuery(doc{"name": "x", "parents": []any{"a"}}, q)
	})
}
