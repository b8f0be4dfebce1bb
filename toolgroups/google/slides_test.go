package google

import (
	"strings"
	"testing"
)

func TestSlidesChanges(t *testing.T) {
	const post, path = "POST /v1/presentations/p1:batchUpdate", "POST /v1/presentations/p1:batchUpdate "
	const added = `{"presentationId":"p1","replies":[{"createSlide":{"objectId":"s9"}}]}`
	const changed = `{"presentationId":"p1","replies":[{}]}`
	adds, ok := map[string][]string{post: {added}}, map[string][]string{post: {changed}}
	runSteps(t, []step{
		{
			name: "new presentation", tool: "slides_create", args: `{"title":"T"}`,
			replies:  map[string][]string{"POST /v1/presentations": {`{"presentationId":"p1","title":"T"}`}},
			requests: []string{wantRequest("POST", "/v1/presentations", `{"title":"T"}`, "fields", "presentationId,title,revisionId,pageSize,slides")},
			result:   `{"presentationId":"p1","title":"T"}`,
		},
		{
			name: "last and blank", tool: "slides_add_slide", args: `{"presentation_id":"p1"}`, replies: adds,
			requests: []string{path + `{"requests":[{"createSlide":{}}]}`}, result: added,
		},
		{
			name: "first with a layout", tool: "slides_add_slide", replies: adds,
			args:     `{"presentation_id":"p1","layout":"title_and_body","insertion_index":0}`,
			requests: []string{path + `{"requests":[{"createSlide":{"insertionIndex":0,"slideLayoutReference":{"predefinedLayout":"TITLE_AND_BODY"}}}]}`},
			result:   added,
		},
		{name: "before the first", tool: "slides_add_slide", args: `{"presentation_id":"p1","insertion_index":-1}`, code: "validation_error"},
		{
			name: "layout that the theme lacks", tool: "slides_add_slide", args: `{"presentation_id":"p1","layout":"NICE"}`,
			replies: map[string][]string{post: {`400{"error":{"code":400,"message":"Invalid value"}}`}}, code: "validation_error",
		},
		{
			name: "raw requests arrive as they are", tool: "slides_batch_update", replies: ok,
			args:     `{"presentation_id":"p1","requests":[{"updateTextStyle":{"fields":"bold","objectId":"o","style":{"bold":false}}},{"unheardOf":{"a":0}}]}`,
			requests: []string{path + `{"requests":[{"updateTextStyle":{"fields":"bold","objectId":"o","style":{"bold":false}}},{"unheardOf":{"a":0}}]}`},
			result:   changed,
		},
		{name: "no raw requests", tool: "slides_batch_update", args: `{"presentation_id":"p1","requests":[]}`, code: "validation_error"},
		{
			name: "delete", tool: "slides_delete_slide", args: `{"presentation_id":"p1","slide_id":"s1"}`, replies: ok,
			requests: []string{path + `{"requests":[{"deleteObject":{"objectId":"s1"}}]}`}, result: changed,
		},
		{
			name: "delete with an empty answer", tool: "slides_delete_slide", args: `{"presentation_id":"p1","slide_id":"s1"}`,
			replies: map[string][]string{post: {"204"}}, result: `{"presentationId":"p1","replies":[]}`,
		},
		{name: "delete nothing", tool: "slides_delete_slide", args: `{"presentation_id":"p1","slide_id":""}`, code: "validation_error"},
	})
}

func TestSlidesReading(t *testing.T) {
	const get = "GET /v1/presentations/p1"
	shape := func(id, text string) string {
		return `{"objectId":"` + id + `","shape":{"text":{"textElements":[{"paragraphMarker":{}},{"textRun":{"content":"` + text + `"}}]}}}`
	}
	cell := func(text string) string {
		return `{"text":{"textElements":[{"textRun":{"content":"` + text + `"}}]}}`
	}
	rich := `{"presentationId":"p1","title":"T","slides":[
		{"objectId":"s1","slideProperties":{"layoutObjectId":"l1","notesPage":{"notesProperties":{"speakerNotesObjectId":"n1"},
			"pageElements":[` + shape("n0", "frame") + `,` + shape("n1", `say this\n`) + `]}},
		 "pageElements":[` + shape("a", `Hello\u000bthere\n`) + `,{"objectId":"i","image":{}},{"objectId":"e","shape":{}},
			{"objectId":"t","table":{"tableRows":[{"tableCells":[` + cell(`1\n`) + `,{}]},{"tableCells":[` + cell(`3\n`) + `,` + cell(`4\u000ba\nb\n`) + `]}]}},
			{"objectId":"g","elementGroup":{"children":[` + shape("b", "in a group") + `,{"objectId":"h","elementGroup":{"children":[` + shape("c", "deeper") + `]}}]}},
			{"objectId":"w","wordArt":{"renderedText":"ART"}},
			{"objectId":"x","shape":{"text":{"textElements":[{"autoText":{"content":"7"}}]}}}]},
		{"objectId":"s2","slideProperties":{"notesPage":{"notesProperties":{"speakerNotesObjectId":"gone"}}}}]}`
	runSteps(t, []step{
		{
			name: "everything that is text", tool: "slides_get_text", args: `{"presentation_id":"p1"}`,
			replies:  map[string][]string{get: {rich}},
			requests: []string{wantRequest("GET", "/v1/presentations/p1", "", "fields", "presentationId,title,slides(objectId,pageElements,slideProperties/notesPage)")},
			result: `{"presentationId":"p1","title":"T","slides":[
				{"objectId":"s1","texts":["Hello\nthere","1\t","3\t4 a b","in a group","deeper","ART","7"],"notes":"say this"},
				{"objectId":"s2","texts":[]}]}`,
		},
		{
			name: "list", tool: "slides_list_slides", args: `{"presentation_id":"p1"}`,
			replies:  map[string][]string{get: {rich}},
			requests: []string{wantRequest("GET", "/v1/presentations/p1", "", "fields", "presentationId,title,slides(objectId,slideProperties/layoutObjectId,pageElements/objectId)")},
			result: `{"presentationId":"p1","title":"T","slideCount":2,"slides":[
				{"objectId":"s1","index":0,"layoutObjectId":"l1","pageElementCount":7},{"objectId":"s2","index":1,"pageElementCount":0}]}`,
		},
		{
			name: "list of nothing", tool: "slides_list_slides", args: `{"presentation_id":"p1"}`,
			replies: map[string][]string{get: {`{"presentationId":"p1"}`}},
			result:  `{"presentationId":"p1","title":"","slideCount":0,"slides":[]}`,
		},
		{
			name: "structure", tool: "slides_get", args: `{"presentation_id":"p1"}`,
			replies:  map[string][]string{get: {`{"presentationId":"p1","slides":[{"objectId":"s1"}]}`}},
			requests: []string{wantRequest("GET", "/v1/presentations/p1", "")},
			result:   `{"presentationId":"p1","slides":[{"objectId":"s1"}]}`,
		},
	})
}

// TestLongSlidesAreReadWhole reads a presentation of more than the model gets.
func TestLongSlidesAreReadWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	text := strings.Repeat("0123456789", 20_000)
	d.reply("GET /v1/presentations/p1", `{"presentationId":"p1","slides":[{"pageElements":[{"wordArt":{"renderedText":"`+text+`"}}]}]}`)
	for _, tool := range []string{"slides_get", "slides_get_text"} {
		res, fault := d.run(t.Context(), tool, `{"presentation_id":"p1"}`)
		if fault != nil {
			t.Fatal(fault)
		}
		if data := wholeResult(t, d.dir, res.Text); !strings.Contains(data, text) {
			t.Errorf("%s: the file has %d bytes", tool, len(data))
		}
	}
}
