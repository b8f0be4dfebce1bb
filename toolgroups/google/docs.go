package google

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"google.golang.org/api/docs/v1"
)

func docsGroup() group {
	return group{
		name:   "google_docs",
		scopes: []string{docs.DocumentsScope},
		operations: operations{
			"docsGet":         with(docs.NewService, docsGet),
			"docsCreate":      with(docs.NewService, docsCreate),
			"docsInsertText":  with(docs.NewService, docsInsertText),
			"docsAppendText":  with(docs.NewService, docsAppendText),
			"docsGetText":     with(docs.NewService, docsGetText),
			"docsBatchUpdate": with(docs.NewService, docsBatchUpdate),
			"docsDeleteRange": with(docs.NewService, docsDeleteRange),
			"docsFindReplace": with(docs.NewService, docsFindReplace),
		},
	}
}

type docsArgs struct {
	Document string `json:"document_id"`
}

func docsGet(ctx context.Context, api *docs.Service, _ *conn, in docsArgs) (any, error) {
	return api.Documents.Get(in.Document).Context(ctx).Do()
}

func docsCreate(ctx context.Context, api *docs.Service, _ *conn, in struct {
	Title string `json:"title"`
},
) (any, error) {
	// The styles of a new document are many and say nothing.
	return api.Documents.Create(&docs.Document{Title: in.Title}).Context(ctx).
		Fields("documentId", "title", "revisionId", "body").Do()
}

// docsChanged is the result of a change to which Google answers nothing.
type docsChanged struct {
	Document string            `json:"documentId"`
	Replies  []json.RawMessage `json:"replies"`
}

// docsUpdate applies updates and returns Google's answer.
func docsUpdate(ctx context.Context, api *docs.Service, c *conn, id string, updates batch) (any, error) {
	answer, err := c.postJSON(ctx, api.BasePath+"v1/documents/"+url.PathEscape(id)+":batchUpdate", updates)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return docsChanged{id, []json.RawMessage{}}, nil
	}
	return answer, nil
}

type docsInsertArgs struct {
	docsArgs
	Text  string `json:"text"`
	Index *int64 `json:"index"`
}

func docsInsertText(ctx context.Context, api *docs.Service, c *conn, in docsInsertArgs) (any, error) {
	at := int64(1)
	if in.Index != nil {
		at = *in.Index
	}
	switch {
	case in.Text == "":
		return nil, invalidf("'text' is empty")
	case at < 1:
		return nil, invalidf("'index' must be at least 1, the start of the body")
	}
	return docsUpdate(ctx, api, c, in.Document, batch{[]any{docs.Request{
		InsertText: &docs.InsertTextRequest{Text: in.Text, Location: &docs.Location{Index: at}},
	}}})
}

func docsAppendText(ctx context.Context, api *docs.Service, c *conn, in docsInsertArgs) (any, error) {
	if in.Text == "" {
		return nil, invalidf("'text' is empty")
	}
	return docsUpdate(ctx, api, c, in.Document, batch{[]any{docs.Request{
		InsertText: &docs.InsertTextRequest{Text: in.Text, EndOfSegmentLocation: &docs.EndOfSegmentLocation{}},
	}}})
}

type docsBatchArgs struct {
	docsArgs
	Requests []json.RawMessage `json:"requests"`
}

func docsBatchUpdate(ctx context.Context, api *docs.Service, c *conn, in docsBatchArgs) (any, error) {
	updates, err := newBatch(in.Requests)
	if err != nil {
		return nil, err
	}
	return docsUpdate(ctx, api, c, in.Document, updates)
}

type docsRangeArgs struct {
	docsArgs
	Start int64 `json:"start_index"`
	End   int64 `json:"end_index"`
}

func docsDeleteRange(ctx context.Context, api *docs.Service, c *conn, in docsRangeArgs) (any, error) {
	if in.Start < 1 || in.End <= in.Start {
		return nil, invalidf("'start_index' must be at least 1 and 'end_index' greater than it")
	}
	return docsUpdate(ctx, api, c, in.Document, batch{[]any{docs.Request{
		DeleteContentRange: &docs.DeleteContentRangeRequest{Range: &docs.Range{StartIndex: in.Start, EndIndex: in.End}},
	}}})
}

type docsReplaceArgs struct {
	docsArgs
	Find    string `json:"find_text"`
	Replace string `json:"replace_text"`
	Case    bool   `json:"match_case"`
}

// docsReplaced is the result of docs_find_replace, with the count also where it is 0.
type docsReplaced struct {
	Document string             `json:"documentId"`
	Replies  []docsReplacedOnce `json:"replies"`
}

type docsReplacedOnce struct {
	All struct {
		Count int64 `json:"occurrencesChanged"`
	} `json:"replaceAllText"`
}

func docsFindReplace(ctx context.Context, api *docs.Service, c *conn, in docsReplaceArgs) (any, error) {
	if in.Find == "" {
		return nil, invalidf("'find_text' is empty")
	}
	answer, err := docsUpdate(ctx, api, c, in.Document, batch{[]any{docs.Request{
		ReplaceAllText: &docs.ReplaceAllTextRequest{
			ContainsText:    &docs.SubstringMatchCriteria{Text: in.Find, MatchCase: in.Case},
			ReplaceText:     in.Replace,
			ForceSendFields: []string{"ReplaceText"},
		},
	}}})
	if err != nil {
		return nil, err
	}
	raw, ok := answer.(json.RawMessage)
	if !ok {
		return answer, nil
	}
	out := docsReplaced{Replies: []docsReplacedOnce{}}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return out, nil
}
