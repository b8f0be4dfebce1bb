package google

import (
	"fmt"
	"slices"
	"strings"
)

// editors emulates documents, presentations and forms, which are changed by batchUpdate.
type editors struct {
	*account
	documents, presentations, forms, responses *store
}

func newEditors(o *account, documents *store) implementation {
	e := &editors{o, documents, newStore("presentationId"), newStore("formId"), newStore("responseId")}
	e.seed()
	return implementation{map[string]handler{
		"docs.documents.batchUpdate":       e.updateDocument,
		"slides.presentations.batchUpdate": e.updatePresentation,
		"forms.forms.batchUpdate":          e.updateForm,
		"forms.forms.setPublishSettings":   e.publishForm,
	}, map[string]collection{
		"docs.documents":        {store: e.documents, idParam: "documentId", idPrefix: "doc", onCreate: e.completeDocument},
		"slides.presentations":  {store: e.presentations, idParam: "presentationId", idPrefix: "slides", onCreate: e.completePresentation},
		"forms.forms":           {store: e.forms, idParam: "formId", idPrefix: "form", onCreate: completeForm},
		"forms.forms.responses": {store: e.responses, idParam: "responseId", parentParam: "formId", parents: e.forms, listField: "responses"},
	}}
}

func (e *editors) completeDocument(_ *call, d doc) {
	setText(d, "\n")
	d["revisionId"] = e.newID("r")
}

func (e *editors) completePresentation(_ *call, d doc) {
	d["slides"] = []any{doc{"objectId": e.newID("slide"), "pageElements": []any{}}}
}

// completeForm fills in the fields of a new form that the server sets. Forms created after 30 June 2026 are
// unpublished and take no responses
// (developers.google.com/workspace/forms/api/guides/api-changes-to-google-forms).
func completeForm(_ *call, d doc) {
	d["publishSettings"] = doc{"publishState": doc{"isPublished": false, "isAcceptingResponses": false}}
	d["responderUri"] = fmt.Sprintf("https://docs.google.com/forms/d/e/%v/viewform", d["formId"])
	d["revisionId"] = "1"
	if info, ok := d["info"].(doc); ok && info["documentTitle"] == nil {
		info["documentTitle"] = info["title"]
	}
}

// publishForm publishes or unpublishes a form. Both fields of the state are required, and an unpublished form
// cannot take responses (developers.google.com/workspace/forms/api/reference/rest/v1/forms#publishstate).
func (e *editors) publishForm(c *call) (any, *rejection) {
	d, ok := e.forms.find("", c.vars["formId"])
	if !ok {
		return nil, notFound(c.vars["formId"])
	}
	settings, _ := c.body["publishSettings"].(doc)
	state, _ := settings["publishState"].(doc)
	published, ok := state["isPublished"].(bool)
	accepting, ok2 := state["isAcceptingResponses"].(bool)
	if !ok || !ok2 || accepting && !published {
		return nil, invalidArgument("Invalid publish state.")
	}
	d["publishSettings"] = doc{"publishState": clone(state)}
	return doc{"formId": c.vars["formId"], "publishSettings": d["publishSettings"]}, nil
}

// batchRequests returns an existing document and the requests of a batchUpdate.
func batchRequests(c *call, of *store, key string) (doc, []any, *rejection) {
	d, ok := of.find("", c.vars[key])
	if !ok {
		return nil, nil, notFound(c.vars[key])
	}
	all := asList(c.body["requests"])
	if len(all) == 0 {
		return nil, nil, invalidArgument("Must specify at least one request.")
	}
	for i, r := range all {
		if one, ok := r.(doc); !ok || len(one) != 1 {
			return nil, nil, invalidArgument("Invalid requests[%d]: exactly one kind of request must be set", i)
		}
	}
	return d, all, nil
}

// documentText returns the text of a document, which has one paragraph per line.
func documentText(d doc) string {
	var b strings.Builder
	body, _ := d["body"].(doc)
	for _, part := range asList(body["content"]) {
		paragraph, _ := part.(doc)["paragraph"].(doc)
		for _, element := range asList(paragraph["elements"]) {
			run, _ := element.(doc)["textRun"].(doc)
			fmt.Fprint(&b, run["content"])
		}
	}
	return b.String()
}

// setText sets the text of a document. Google counts positions from 1, in UTF-16 units; the emulator
// counts them in characters.
func setText(d doc, text string) {
	content := []any{doc{"endIndex": 1, "sectionBreak": doc{}}}
	at := 1
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		n := len([]rune(line)) + 1
		content = append(content, doc{
			"startIndex": at, "endIndex": at + n,
			"paragraph": doc{"elements": []any{doc{"startIndex": at, "endIndex": at + n, "textRun": doc{"content": line + "\n"}}}},
		})
		at += n
	}
	d["body"] = doc{"content": content}
}

func (e *editors) updateDocument(c *call) (any, *rejection) {
	d, requests, rej := batchRequests(c, e.documents, "documentId")
	if rej != nil {
		return nil, rej
	}
	var replies []any
	for i, r := range requests {
		reply, rej := runRequest(d, r.(doc), i)
		if rej != nil {
			return nil, rej
		}
		replies = append(replies, reply)
	}
	return doc{"documentId": c.vars["documentId"], "replies": replies, "writeControl": doc{"requiredRevisionId": e.newID("r")}}, nil
}

// runRequest runs one request of a batchUpdate on a document.
func runRequest(d, request doc, i int) (doc, *rejection) {
	text := []rune(documentText(d))
	if in, ok := request["insertText"].(doc); ok {
		at := len(text) - 1
		if location, ok := in["location"].(doc); ok {
			at = toInt(location["index"]) - 1
		}
		if at < 0 || at >= max(len(text), 1) {
			return nil, invalidArgument("Invalid requests[%d].insertText: Index %d must be less than the end index of the referenced segment, %d.", i, at+1, len(text)+1)
		}
		setText(d, string(text[:at])+fmt.Sprint(in["text"])+string(text[at:]))
		return doc{}, nil
	}
	if in, ok := request["deleteContentRange"].(doc); ok {
		r, _ := in["range"].(doc)
		from, to := toInt(r["startIndex"])-1, toInt(r["endIndex"])-1
		if from < 0 || to <= from || to >= len(text) {
			return nil, invalidArgument("Invalid requests[%d].deleteContentRange: Invalid deletion range.", i)
		}
		setText(d, string(text[:from])+string(text[to:]))
		return doc{}, nil
	}
	if in, ok := request["replaceAllText"].(doc); ok {
		contains, _ := in["containsText"].(doc)
		find := fmt.Sprint(contains["text"])
		n := strings.Count(string(text), find)
		setText(d, strings.ReplaceAll(string(text), find, fmt.Sprint(in["replaceText"])))
		return doc{"replaceAllText": doc{"occurrencesChanged": n}}, nil
	}
	return doc{}, nil
}

func toInt(v any) int {
	f, _ := v.(float64)
	return int(f)
}

func (e *editors) updatePresentation(c *call) (any, *rejection) {
	d, requests, rej := batchRequests(c, e.presentations, "presentationId")
	if rej != nil {
		return nil, rej
	}
	var replies []any
	for i, r := range requests {
		slides := asList(d["slides"])
		if _, ok := r.(doc)["createSlide"].(doc); ok {
			id := e.newID("slide")
			d["slides"] = append(slides, doc{"objectId": id, "pageElements": []any{}})
			replies = append(replies, doc{"createSlide": doc{"objectId": id}})
			continue
		}
		if in, ok := r.(doc)["deleteObject"].(doc); ok {
			kept := slices.DeleteFunc(slices.Clone(slides), func(s any) bool { return s.(doc)["objectId"] == in["objectId"] })
			if len(kept) == len(slides) {
				return nil, invalidArgument("Invalid requests[%d].deleteObject: The object (%v) could not be found.", i, in["objectId"])
			}
			d["slides"] = kept
		}
		replies = append(replies, doc{})
	}
	return doc{"presentationId": c.vars["presentationId"], "replies": replies}, nil
}

func (e *editors) updateForm(c *call) (any, *rejection) {
	d, requests, rej := batchRequests(c, e.forms, "formId")
	if rej != nil {
		return nil, rej
	}
	var replies []any
	for i, r := range requests {
		in, ok := r.(doc)["createItem"].(doc)
		if !ok {
			replies = append(replies, doc{})
			continue
		}
		location, _ := in["location"].(doc)
		items := asList(d["items"])
		at := toInt(location["index"])
		if location == nil || at < 0 || at > len(items) {
			return nil, invalidArgument("Invalid requests[%d].createItem: location is out of range", i)
		}
		item, _ := in["item"].(doc)
		item["itemId"] = e.newID("item")
		reply := doc{"itemId": item["itemId"]}
		if q, ok := item["questionItem"].(doc); ok {
			question, _ := q["question"].(doc)
			question["questionId"] = e.newID("question")
			reply["questionId"] = []any{question["questionId"]}
		}
		d["items"] = append(items[:at:at], append([]any{item}, items[at:]...)...)
		replies = append(replies, doc{"createItem": reply})
	}
	answer := doc{"replies": replies}
	if c.body["includeFormInResponse"] == true {
		answer["form"] = clone(d)
	}
	return answer, nil
}
