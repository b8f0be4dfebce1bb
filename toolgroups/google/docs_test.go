package google

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups/google/service"
)

func TestDocsChanges(t *testing.T) {
	const post, path = "POST /v1/documents/d1:batchUpdate", "POST /v1/documents/d1:batchUpdate "
	const changed = `{"documentId":"d1","replies":[{}],"writeControl":{"requiredRevisionId":"r2"}}`
	ok := map[string][]string{post: {changed}}
	runSteps(t, []step{
		{
			name: "new document", tool: "docs_create", args: `{"title":"T"}`,
			replies:  map[string][]string{"POST /v1/documents": {`{"documentId":"d1","title":"T"}`}},
			requests: []string{wantRequest("POST", "/v1/documents", `{"title":"T"}`, "fields", "documentId,title,revisionId,body")},
			result:   `{"documentId":"d1","title":"T"}`,
		},
		{
			name: "insert at the start", tool: "docs_insert_text", args: `{"document_id":"d1","text":"a\n"}`, replies: ok,
			requests: []string{path + `{"requests":[{"insertText":{"location":{"index":1},"text":"a\n"}}]}`}, result: changed,
		},
		{
			name: "insert further on", tool: "docs_insert_text", args: `{"document_id":"d1","text":"a","index":7}`, replies: ok,
			requests: []string{path + `{"requests":[{"insertText":{"location":{"index":7},"text":"a"}}]}`}, result: changed,
		},
		{name: "insert before the start", tool: "docs_insert_text", args: `{"document_id":"d1","text":"a","index":0}`, code: "validation_error"},
		{name: "insert nothing", tool: "docs_insert_text", args: `{"document_id":"d1","text":""}`, code: "validation_error"},
		{
			name: "append without reading", tool: "docs_append_text", args: `{"document_id":"d1","text":"<end>"}`, replies: ok,
			requests: []string{path + `{"requests":[{"insertText":{"endOfSegmentLocation":{},"text":"\u003cend\u003e"}}]}`}, result: changed,
		},
		{name: "append nothing", tool: "docs_append_text", args: `{"document_id":"d1","text":""}`, code: "validation_error"},
		{
			name: "raw requests arrive as they are", tool: "docs_batch_update", replies: ok,
			args:     `{"document_id":"d1","requests":[{"updateTextStyle":{"fields":"bold","range":{"endIndex":5,"startIndex":0},"textStyle":{"bold":false}}},{"unheardOf":{}}]}`,
			requests: []string{path + `{"requests":[{"updateTextStyle":{"fields":"bold","range":{"endIndex":5,"startIndex":0},"textStyle":{"bold":false}}},{"unheardOf":{}}]}`},
			result:   changed,
		},
		{name: "no raw requests", tool: "docs_batch_update", args: `{"document_id":"d1","requests":[]}`, code: "validation_error"},
		{name: "raw request that is no object", tool: "docs_batch_update", args: `{"document_id":"d1","requests":["x"]}`, code: "validation_error"},
		{
			name: "empty answer", tool: "docs_batch_update", args: `{"document_id":"d1","requests":[{}]}`,
			replies: map[string][]string{post: {"204"}}, result: `{"documentId":"d1","replies":[]}`,
		},
		{
			name: "delete", tool: "docs_delete_range", args: `{"document_id":"d1","start_index":1,"end_index":3}`, replies: ok,
			requests: []string{path + `{"requests":[{"deleteContentRange":{"range":{"endIndex":3,"startIndex":1}}}]}`}, result: changed,
		},
		{name: "delete nothing", tool: "docs_delete_range", args: `{"document_id":"d1","start_index":3,"end_index":3}`, code: "validation_error"},
		{name: "delete before the start", tool: "docs_delete_range", args: `{"document_id":"d1","start_index":0,"end_index":3}`, code: "validation_error"},
		{
			name: "an id is no path", tool: "docs_append_text", args: `{"document_id":"a/b?c","text":"x"}`,
			requests: []string{`POST /v1/documents/a%2Fb%3Fc:batchUpdate {"requests":[{"insertText":{"endOfSegmentLocation":{},"text":"x"}}]}`},
			code:     service.CodeNotFound,
		},
		{
			name: "answer that is no JSON", tool: "docs_append_text", args: `{"document_id":"d1","text":"x"}`,
			replies: map[string][]string{post: {"<html>"}},
			result: `{"success":true,"note":"Google has done it, but the answer could not be read (the response from docs.googleapis.com is not JSON). ` +
				`Do not make this call again; read what is there now if something of the answer is needed."}`,
		},
	})
}

func TestDocsFindReplace(t *testing.T) {
	const post = "POST /v1/documents/d1:batchUpdate"
	request := func(body string) []string {
		return []string{wantRequest("POST", "/v1/documents/d1:batchUpdate", body, "fields", "documentId,replies")}
	}
	runSteps(t, []step{
		{
			name: "replaced", tool: "docs_find_replace", args: `{"document_id":"d1","find_text":"a","replace_text":"b","match_case":true}`,
			replies:  map[string][]string{post: {`{"documentId":"d1","replies":[{"replaceAllText":{"occurrencesChanged":4}}]}`}},
			requests: request(`{"requests":[{"replaceAllText":{"containsText":{"matchCase":true,"text":"a"},"replaceText":"b"}}]}`),
			result:   `{"documentId":"d1","replies":[{"replaceAllText":{"occurrencesChanged":4}}]}`,
		},
		{
			name: "replaced by nothing, found nowhere", tool: "docs_find_replace", args: `{"document_id":"d1","find_text":"a","replace_text":""}`,
			replies:  map[string][]string{post: {`{"documentId":"d1","replies":[{"replaceAllText":{}}]}`}},
			requests: request(`{"requests":[{"replaceAllText":{"containsText":{"text":"a"},"replaceText":""}}]}`),
			result:   `{"documentId":"d1","replies":[{"replaceAllText":{"occurrencesChanged":0}}]}`,
		},
		{name: "nothing to find", tool: "docs_find_replace", args: `{"document_id":"d1","find_text":"","replace_text":"b"}`, code: "validation_error"},
	})
}

func TestDocsGetText(t *testing.T) {
	const get = "GET /v1/documents/d1"
	para := func(text string) string {
		return `{"paragraph":{"elements":[{"textRun":{"content":"` + text + `"}}]}}`
	}
	cell := func(text string) string { return `{"content":[` + para(text) + `]}` }
	rich := `{"documentId":"d1","title":"T","tabs":[{"tabProperties":{"title":"One"},"documentTab":{
		"headers":{"h2":{"content":[` + para(`\n`) + `]},"h1":{"content":[` + para(`top\n`) + `]}},
		"footers":{"x":{"content":[` + para(`bottom\n`) + `]}},
		"footnotes":{"f2":{"content":[` + para(` second\n`) + `]},"f1":{"content":[` + para(` first\n`) + `]}},
		"body":{"content":[{"sectionBreak":{}},
			{"tableOfContents":{"content":[` + para(`contents\n`) + `]}},
			{"paragraph":{"elements":[{"textRun":{"content":"Hello "}},{"person":{"personProperties":{"email":"a@x"}}},
				{"footnoteReference":{"footnoteId":"f1","footnoteNumber":"1"}},
				{"richLink":{"richLinkProperties":{"title":"Plan","uri":"https://x"}}},{"inlineObjectElement":{}},
				{"dateElement":{"dateElementProperties":{"displayText":" 1 May"}}},{"textRun":{"content":"\n"}}]}},
			{"table":{"tableRows":[{"tableCells":[` + cell(`a\n`) + `,` + cell(`b\n`) + `]},{"tableCells":[
				{"content":[{"paragraph":{"elements":[{"footnoteReference":{"footnoteId":"f2","footnoteNumber":"2"}}]}}]},` + cell(`d\n`) + `]}]}}
		]}},
		"childTabs":[{"tabProperties":{"title":"Two"},"documentTab":{"body":{"content":[` + para(`below\n`) + `]}}}]}]}`
	runSteps(t, []step{
		{
			name: "everything that is text", tool: "docs_get_text", args: `{"document_id":"d1"}`,
			replies:  map[string][]string{get: {rich}},
			requests: []string{wantRequest("GET", "/v1/documents/d1", "", "includeTabsContent", "true")},
			result: `{"documentId":"d1","title":"T","text":"[Tab: One]\n[Header]\ntop\ncontents\nHello a@x[1]Plan 1 May\na\tb\n[2]\td\n` +
				`[Footer]\nbottom\n[Footnote]\n first\n[Footnote]\n second\n[Tab: Two]\nbelow\n"}`,
		},
		{
			name: "suggestions", tool: "docs_get_text", args: `{"document_id":"d1"}`,
			replies: map[string][]string{get: {`{"documentId":"d1","title":"T","body":{"content":[{"paragraph":{"elements":[{"textRun":{"content":"It costs "}},
				{"textRun":{"content":"100","suggestedDeletionIds":["s"]}},{"textRun":{"content":"200\n","suggestedInsertionIds":["s"]}}]}}]}}`}},
			result: `{"documentId":"d1","title":"T","text":"It costs [suggested to delete: 100][suggested to insert: 200]\n"}`,
		},
		{
			name: "lines", tool: "docs_get_text", args: `{"document_id":"d1"}`,
			replies: map[string][]string{get: {`{"documentId":"d1","title":"T","body":{"content":[` + para(`x\u000by\n`) +
				`,{"table":{"tableRows":[{"tableCells":[{"content":[` + para(`a\n`) + `,` + para(`b\n`) + `]},` + cell(`c\n`) + `]}]}}]}}`}},
			result: `{"documentId":"d1","title":"T","text":"x\ny\na b\tc\n"}`,
		},
		{
			name: "without tabs", tool: "docs_get_text", args: `{"document_id":"d1"}`,
			replies: map[string][]string{get: {`{"documentId":"d1","title":"T","body":{"content":[` + para(`x\n`) + `]}}`}},
			result:  `{"documentId":"d1","title":"T","text":"x\n"}`,
		},
		{
			name: "empty", tool: "docs_get_text", args: `{"document_id":"d1"}`,
			replies: map[string][]string{get: {`{"documentId":"d1"}`}},
			result:  `{"documentId":"d1","title":"","text":""}`,
		},
		{
			name: "structure", tool: "docs_get", args: `{"document_id":"d1"}`,
			replies:  map[string][]string{get: {`{"documentId":"d1","body":{"content":[{"endIndex":1,"sectionBreak":{}}]}}`}},
			requests: []string{wantRequest("GET", "/v1/documents/d1", "")},
			result:   `{"documentId":"d1","body":{"content":[{"endIndex":1,"sectionBreak":{}}]}}`,
		},
	})
}

// wholeResult reads the file in which a cut result is whole.
func wholeResult(t *testing.T, dir, text string) string {
	t.Helper()
	_, named, found := strings.Cut(text, "the whole is in the file ")
	data, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(named, "]")))
	if !found || err != nil {
		t.Fatalf("the result ends %q, %v", text[max(0, len(text)-200):], err)
	}
	return string(data)
}

// TestLongDocumentsAreReadWhole reads a document of more than the model gets: its beginning is the
// result, and all of it a file.
func TestLongDocumentsAreReadWhole(t *testing.T) {
	d := newDesk(t)
	text := strings.Repeat("0123456789", 20_000)
	d.reply("GET /v1/documents/d1", `{"documentId":"d1","body":{"content":[{"paragraph":{"elements":[{"textRun":{"content":"`+text+`"}}]}}]}}`)
	for _, tool := range []string{"docs_get", "docs_get_text"} {
		res, fault := d.run(t.Context(), tool, `{"document_id":"d1"}`)
		if fault != nil {
			t.Fatal(fault)
		}
		if !strings.Contains(res.Text, text[:1000]) {
			t.Errorf("%s: the result begins %.200s", tool, res.Text)
		}
		if data := wholeResult(t, d.dir, res.Text); !strings.Contains(data, text) {
			t.Errorf("%s: the file has %d bytes", tool, len(data))
		}
	}
}
