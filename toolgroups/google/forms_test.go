package google

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"google.golang.org/api/forms/v1"
	"google.golang.org/api/option"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

func TestForms(t *testing.T) {
	const path = "/v1/forms/f1"
	form := `{"formId":"f1","responderUri":"https://r","revisionId":"7","info":{"title":"T","description":"D","documentTitle":"File"},"items":[
		{"itemId":"1","title":"Q","description":"q","questionItem":{"question":{"questionId":"a","required":true,"choiceQuestion":{"type":"RADIO","options":[{"value":"x"},{"isOther":true}]}}}},
		{"itemId":"2","questionItem":{"question":{"questionId":"b","textQuestion":{}}}},
		{"itemId":"3","questionItem":{"question":{"questionId":"c","scaleQuestion":{"high":5}}}},
		{"itemId":"4","questionItem":{"question":{"questionId":"d","dateQuestion":{}}}},
		{"itemId":"5","questionItem":{"question":{"questionId":"e","timeQuestion":{}}}},
		{"itemId":"6","questionItem":{"question":{"questionId":"f","fileUploadQuestion":{}}}},
		{"itemId":"7","questionItem":{"question":{"questionId":"g","ratingQuestion":{}}}},
		{"itemId":"8","title":"Grid","questionGroupItem":{"questions":[{"questionId":"h","rowQuestion":{"title":"row"}}],"grid":{"columns":{"options":[{"value":"c1"}]}}}},
		{"itemId":"9","title":"Text","textItem":{}}]}`
	published := wantRequest("POST", path+":setPublishSettings", `{"publishSettings":{"publishState":{"isAcceptingResponses":true,"isPublished":true}}}`)
	runSteps(t, []step{
		{
			name: "create", tool: "forms_create", args: `{"title":"T"}`,
			replies:  map[string][]string{"POST /v1/forms": {`{"formId":"f1","responderUri":"https://r","info":{"title":"T","documentTitle":"T"}}`}, "POST /v1/forms/f1:setPublishSettings": {`{"formId":"f1"}`}},
			requests: []string{wantRequest("POST", "/v1/forms", `{"info":{"documentTitle":"T","title":"T"}}`), published},
			result:   `{"formId":"f1","responderUri":"https://r","title":"T"}`,
		},
		{
			name: "create with a file name", tool: "forms_create", args: `{"title":"T","document_title":"F"}`,
			replies:  map[string][]string{"POST /v1/forms": {`{"formId":"f1"}`}, "POST /v1/forms/f1:setPublishSettings": {`{"formId":"f1"}`}},
			requests: []string{wantRequest("POST", "/v1/forms", `{"info":{"documentTitle":"F","title":"T"}}`), published},
			result:   `{"formId":"f1","responderUri":"","title":"T"}`,
		},
		{name: "create without a title", tool: "forms_create", args: `{"title":" "}`, code: "validation_error"},
		{
			name: "all kinds of questions, with their options", tool: "forms_get", args: `{"form_id":"f1"}`,
			replies:  map[string][]string{"GET " + path: {form}},
			requests: []string{wantRequest("GET", path, "")},
			result: `{"formId":"f1","title":"T","description":"D","documentTitle":"File","responderUri":"https://r","items":[
				{"itemId":"1","title":"Q","description":"q","questionItem":{"question":{"questionId":"a","required":true,"type":"CHOICE","choiceType":"RADIO","options":["x","(other)"]}}},
				{"itemId":"2","questionItem":{"question":{"questionId":"b","required":false,"type":"TEXT"}}},
				{"itemId":"3","questionItem":{"question":{"questionId":"c","required":false,"type":"SCALE","low":0,"high":5}}},
				{"itemId":"4","questionItem":{"question":{"questionId":"d","required":false,"type":"DATE"}}},
				{"itemId":"5","questionItem":{"question":{"questionId":"e","required":false,"type":"TIME"}}},
				{"itemId":"6","questionItem":{"question":{"questionId":"f","required":false,"type":"FILE_UPLOAD"}}},
				{"itemId":"7","questionItem":{"question":{"questionId":"g","required":false,"type":"UNKNOWN"}}},
				{"itemId":"8","title":"Grid","questionItem":null,"questionGroupItem":{"questions":[{"questionId":"h","title":"row","required":false,"type":"ROW"}],"options":["c1"]}},
				{"itemId":"9","title":"Text","questionItem":null}]}`,
		},
		{
			name: "form without anything", tool: "forms_get", args: `{"form_id":"f1"}`,
			replies: map[string][]string{"GET " + path: {`{"formId":"f1"}`}}, result: `{"formId":"f1","title":"","items":[]}`,
		},
	})
}

// A new form takes answers. If it cannot be published, the person learns where to do that, and it is not
// created a second time.
func TestANewFormTakesAnswers(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "forms")
	token, err := r.g.AccessToken(t.Context(), toolgroups.Scope{User: ada})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &oauth2.Transport{Base: r.client, Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})}}
	api, err := forms.NewService(t.Context(), option.WithEndpoint(r.server.URL), option.WithHTTPClient(client))
	if err != nil {
		t.Fatal(err)
	}
	made := func() (text, state string) {
		t.Helper()
		res, fault := r.run(t.Context(), ada, t.TempDir(), "forms_create", json.RawMessage(`{"title":"Party"}`))
		if fault != nil {
			t.Fatal(fault)
		}
		var form struct{ FormID string }
		if err := json.Unmarshal([]byte(res.Text), &form); err != nil {
			t.Fatal(err)
		}
		f, err := api.Forms.Get(form.FormID).Context(t.Context()).Do()
		if err != nil {
			t.Fatal(err)
		}
		return res.Text, fmt.Sprint(f.PublishSettings.PublishState.IsPublished, f.PublishSettings.PublishState.IsAcceptingResponses)
	}
	if text, state := made(); state != "true true" || strings.Contains(text, "note") {
		t.Errorf("%s: %s", state, text)
	}
	r.em.Inject(google.Fault{Method: "forms.forms.setPublishSettings", Status: 500})
	if text, state := made(); state != "false false" || !strings.Contains(text, "may not be published") || !strings.Contains(text, "/edit") {
		t.Errorf("not published: %s: %s", state, text)
	}
}

func TestFormsAddQuestion(t *testing.T) {
	const path, post = "/v1/forms/f1", "POST /v1/forms/f1:batchUpdate"
	const added = `{"replies":[{"createItem":{"itemId":"i9","questionId":["q9"]}}]}`
	const result = `{"formId":"f1","itemId":"i9","questionId":"q9"}`
	ok := map[string][]string{"GET " + path: {`{"items":[{"itemId":"1"},{"itemId":"2"}]}`}, post: {added}}
	sent := func(index, question string) string {
		return wantRequest("POST", path+":batchUpdate", `{"requests":[{"createItem":{"item":{"questionItem":{"question":`+question+
			`},"title":"Q"},"location":{"index":`+index+`}}}]}`)
	}
	steps := []step{
		{
			name: "last", tool: "forms_add_question", args: `{"form_id":"f1","title":"Q"}`, replies: ok,
			requests: []string{wantRequest("GET", path, "", "fields", "items/itemId"), sent("2", `{"textQuestion":{}}`)}, result: result,
		},
		{
			name: "first of an empty form", tool: "forms_add_question", args: `{"form_id":"f1","title":"Q"}`,
			replies:  map[string][]string{"GET " + path: {`{}`}, post: {added}},
			requests: []string{wantRequest("GET", path, "", "fields", "items/itemId"), sent("0", `{"textQuestion":{}}`)}, result: result,
		},
		{
			name: "no answer", tool: "forms_add_question", args: `{"form_id":"f1","title":"Q","index":0}`,
			replies: map[string][]string{post: {`{}`}}, code: "execution_error",
		},
	}
	for _, tc := range []struct{ kind, more, question string }{
		{"short_answer", ``, `{"textQuestion":{}}`},
		{"paragraph", `,"required":true`, `{"required":true,"textQuestion":{"paragraph":true}}`},
		{"radio", `,"options":["a","b"]`, `{"choiceQuestion":{"options":[{"value":"a"},{"value":"b"}],"type":"RADIO"}}`},
		{"checkbox", `,"options":["a"]`, `{"choiceQuestion":{"options":[{"value":"a"}],"type":"CHECKBOX"}}`},
		{"dropdown", `,"options":["a"]`, `{"choiceQuestion":{"options":[{"value":"a"}],"type":"DROP_DOWN"}}`},
		{"scale", `,"options":[]`, `{"scaleQuestion":{"high":5,"low":1}}`},
		{"date", ``, `{"dateQuestion":{"includeYear":true}}`},
		{"time", ``, `{"timeQuestion":{}}`},
	} {
		steps = append(steps, step{
			name: tc.kind, tool: "forms_add_question", replies: ok, result: result,
			args:     `{"form_id":"f1","title":"Q","index":0,"type":"` + tc.kind + `"` + tc.more + `}`,
			requests: []string{sent("0", tc.question)},
		})
	}
	for name, args := range map[string]string{
		"choice without options": `{"form_id":"f1","title":"Q","type":"radio"}`,
		"options for a date":     `{"form_id":"f1","title":"Q","type":"date","options":["a"]}`,
		"unknown type":           `{"form_id":"f1","title":"Q","type":"grid"}`,
		"no title":               `{"form_id":"f1","title":""}`,
		"before the first":       `{"form_id":"f1","title":"Q","index":-1}`,
	} {
		steps = append(steps, step{name: name, tool: "forms_add_question", args: args, code: "validation_error"})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.name, b.name) })
	runSteps(t, steps)
}

func TestFormsResponses(t *testing.T) {
	const path = "/v1/forms/f1/responses"
	const one = `{"responseId":"r1","createTime":"2026-01-01T00:00:00Z","lastSubmittedTime":"2026-01-02T00:00:00Z","answers":{"a":{"questionId":"a","textAnswers":{"answers":[{"value":"x"}]}}}}`
	const two = `{"responseId":"r2"}`
	runSteps(t, []step{
		{
			name: "by default twenty", tool: "forms_list_responses", args: `{"form_id":"f1"}`,
			replies:  map[string][]string{"GET " + path: {`{"responses":[` + one + `],"nextPageToken":"n1"}`, `{"responses":[` + two + `]}`}},
			requests: []string{wantRequest("GET", path, "", "pageSize", "20"), wantRequest("GET", path, "", "pageSize", "19", "pageToken", "n1")},
			result:   `{"responses":[` + one + `,` + two + `],"totalSize":2}`,
		},
		{
			name: "a page in the middle", tool: "forms_list_responses", args: `{"form_id":"f1","page_size":1,"page_token":"n1"}`,
			replies:  map[string][]string{"GET " + path: {`{"responses":[` + two + `],"nextPageToken":"n2"}`}},
			requests: []string{wantRequest("GET", path, "", "pageSize", "1", "pageToken", "n1")},
			result:   `{"responses":[` + two + `],"nextPageToken":"n2"}`,
		},
		{
			name: "none", tool: "forms_list_responses", args: `{"form_id":"f1","page_size":9999}`,
			replies:  map[string][]string{"GET " + path: {`{}`}},
			requests: []string{wantRequest("GET", path, "", "pageSize", "5000")},
			result:   `{"responses":[],"totalSize":0}`,
		},
		{
			name: "one", tool: "forms_get_response", args: `{"form_id":"f1","response_id":"r1"}`,
			replies:  map[string][]string{"GET " + path + "/r1": {one}},
			requests: []string{wantRequest("GET", path+"/r1", "")}, result: one,
		},
		{name: "none of that id", tool: "forms_get_response", args: `{"form_id":"f1","response_id":"r9"}`, code: service.CodeNotFound},
		{name: "no id", tool: "forms_get_response", args: `{"form_id":"f1","response_id":""}`, code: "validation_error"},
	})
}
