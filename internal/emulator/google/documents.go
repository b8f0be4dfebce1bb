package google

import (
	"fmt"
	"slices"
	"strings"
)

// editors emulates documents, presentations and forms, which are changed by lists of requests.
type editors struct {
	*owner
	documents, presentations, forms, responses *shelf
}

func newEditors(o *owner, documents *shelf) offer {
	e := &editors{o, documents, newShelf("presentationId"), newShelf("formId"), newShelf("responseId")}
	e.seed()
	return offer{map[string]handler{
		"docs.documents.batchUpdate":       e.updateDocument,
		"slides.presentations.batchUpdate": e.updatePresentation,
		"forms.forms.batchUpdate":          e.updateForm,
	}, map[string]collection{
		"docs.documents":        {shelf: e.documents, key: "documentId", mint: "doc", made: e.madeDocument},
		"slides.presentations":  {shelf: e.presentations, key: "presentationId", mint: "slides", made: e.madePresentation},
		"forms.forms":           {shelf: e.forms, key: "formId", mint: "form", made: madeForm},
		"forms.forms.responses": {shelf: e.responses, key: "responseId", parent: "formId", in: e.forms, list: "responses"},
	}}
}

func (e *editors) madeDocument(_ *call, d doc) {
	setText(d, "\n")
	d["revisionId"] = e.mint("r")
}

func (e *editors) madePresentation(_ *call, d doc) {
	d["slides"] = []any{doc{"objectId": e.mint("slide"), "pageElements": []any{}}}
}

func madeForm(_ *call, d doc) {
	d["responderUri"] = fmt.Sprintf("https://docs.google.com/forms/d/e/%v/viewform", d["formId"])
	d["revisionId"] = "1"
	if info, ok := d["info"].(doc); ok && info["documentTitle"] == nil {
		info["documentTitle"] = info["title"]
	}
}

// requests returns the requests of a batchUpdate of an existing document.
func requests(c *call, of *shelf, key string) (doc, []any, *rejection) {
	d, ok := of.find("", c.vars[key])
	if !ok {
		return nil, nil, missing(c.vars[key])
	}
	all := list(c.body["requests"])
	if len(all) == 0 {
		return nil, nil, invalid("Must specify at least one request.")
	}
	for i, r := range all {
		if one, ok := r.(doc); !ok || len(one) != 1 {
			return nil, nil, invalid("Invalid requests[%d]: exactly one kind of request must be set", i)
		}
	}
	return d, all, nil
}

// documentText returns the text of a document, which has one paragraph per line.
func documentText(d doc) string {
	var b strings.Builder
	body, _ := d["body"].(doc)
	for _, part := range list(body["content"]) {
		paragraph, _ := part.(doc)["paragraph"].(doc)
		for _, element := range list(paragraph["elements"]) {
			run, _ := element.(doc)["textRun"].(doc)
			fmt.Fprint(&b, run["content"])
		}
	}
	return b.String()
}

// setText sets the text of a document. Google's positions count from 1, in UTF-16 units; here in
// characters.
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
	d, requests, rej := requests(c, e.documents, "documentId")
	if rej != nil {
		return nil, rej
	}
	var replies []any
	for i, r := range requests {
		reply, rej := changeText(d, r.(doc), i)
		if rej != nil {
			return nil, rej
		}
		replies = append(replies, reply)
	}
	return doc{"documentId": c.vars["documentId"], "replies": replies, "writeControl": doc{"requiredRevisionId": e.mint("r")}}, nil
}

// changeText carries out one request on a document.
func changeText(d, request doc, i int) (doc, *rejection) {
	text := []rune(documentText(d))
	if in, ok := request["insertText"].(doc); ok {
		at := len(text) - 1
		if location, ok := in["location"].(doc); ok {
			at = whole(location["index"]) - 1
		}
		if at < 0 || at >= max(len(text), 1) {
			return nil, invalid("Invalid requests[%d].insertText: Index %d must be less than the end index of the referenced segment, %d.", i, at+1, len(text)+1)
		}
		setText(d, string(text[:at])+fmt.Sprint(in["text"])+string(text[at:]))
		return doc{}, nil
	}
	if in, ok := request["deleteContentRange"].(doc); ok {
		r, _ := in["range"].(doc)
		from, to := whole(r["startIndex"])-1, whole(r["endIndex"])-1
		if from < 0 || to <= from || to >= len(text) {
			return nil, invalid("Invalid requests[%d].deleteContentRange: Invalid deletion range.", i)
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

func whole(v any) int {
	f, _ := v.(float64)
	return int(f)
}

func (e *editors) updatePresentation(c *call) (any, *rejection) {
	d, requests, rej := requests(c, e.presentations, "presentationId")
	if rej != nil {
		return nil, rej
	}
	var replies []any
	for i, r := range requests {
		slides := list(d["slides"])
		if _, ok := r.(doc)["createSlide"].(doc); ok {
			id := e.mint("slide")
			d["slides"] = append(slides, doc{"objectId": id, "pageElements": []any{}})
			replies = append(replies, doc{"createSlide": doc{"objectId": id}})
			continue
		}
		if in, ok := r.(doc)["deleteObject"].(doc); ok {
			kept := slices.DeleteFunc(slices.Clone(slides), func(s any) bool { return s.(doc)["objectId"] == in["objectId"] })
			if len(kept) == len(slides) {
				return nil, invalid("Invalid requests[%d].deleteObject: The object (%v) could not be found.", i, in["objectId"])
			}
			d["slides"] = kept
		}
		replies = append(replies, doc{})
	}
	return doc{"presentationId": c.vars["presentationId"], "replies": replies}, nil
}

func (e *editors) updateForm(c *call) (any, *rejection) {
	d, requests, rej := requests(c, e.forms, "formId")
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
		items := list(d["items"])
		at := whole(location["index"])
		if location == nil || at < 0 || at > len(items) {
			return nil, invalid("Invalid requests[%d].createItem: location is out of range", i)
		}
		item, _ := in["item"].(doc)
		item["itemId"] = e.mint("item")
		reply := doc{"itemId": item["itemId"]}
		if q, ok := item["questionItem"].(doc); ok {
			question, _ := q["question"].(doc)
			question["questionId"] = e.mint("question")
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
