package drive

import (
	"context"
	"encoding/json"

	"google.golang.org/api/docs/v1"

	"oneclaw/toolgroups/google/service"
)

// Docs returns the group of tools for documents.
func Docs() service.Group {
	return service.Group{
		Name:      "google_docs",
		Scopes:    []string{docs.DocumentsScope},
		Manifests: manifests,
		Operations: service.Operations{
			"docsGet":         service.With(docs.NewService, docsGet),
			"docsCreate":      service.With(docs.NewService, docsCreate),
			"docsInsertText":  service.With(docs.NewService, docsInsertText),
			"docsAppendText":  service.With(docs.NewService, docsAppendText),
			"docsGetText":     service.With(docs.NewService, docsGetText),
			"docsBatchUpdate": service.With(docs.NewService, docsBatchUpdate),
			"docsDeleteRange": service.With(docs.NewService, docsDeleteRange),
			"docsFindReplace": service.With(docs.NewService, docsFindReplace),
		},
	}
}

type docsArgs struct {
	Document string            `json:"document_id"`
	Title    string            `json:"title"`
	Text     string            `json:"text"`
	Index    *int64            `json:"index"`
	Start    int64             `json:"start_index"`
	End      int64             `json:"end_index"`
	Find     string            `json:"find_text"`
	Replace  string            `json:"replace_text"`
	Case     bool              `json:"match_case"`
	Requests []json.RawMessage `json:"requests"`
}

func docsGet(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	return api.Documents.Get(in.Document).Context(ctx).Do()
}

func docsCreate(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	// Leave out the many styles of a new document.
	return api.Documents.Create(&docs.Document{Title: in.Title}).Context(ctx).
		Fields("documentId", "title", "revisionId", "body").Do()
}

// docsUpdate applies updates and returns Google's answer.
func docsUpdate[T any](ctx context.Context, api *docs.Service, c *service.Conn, id string, updates ...T) (any, error) {
	return service.BatchUpdate(ctx, c, api.BasePath+"v1/documents/", "documentId", id, updates...)
}

func docsInsertText(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	at := int64(1)
	if in.Index != nil {
		at = *in.Index
	}
	switch {
	case in.Text == "":
		return nil, service.Invalidf("'text' is empty")
	case at < 1:
		return nil, service.Invalidf("'index' must be at least 1, the start of the body")
	}
	return docsUpdate(ctx, api, c, in.Document, docs.Request{
		InsertText: &docs.InsertTextRequest{Text: in.Text, Location: &docs.Location{Index: at}},
	})
}

func docsAppendText(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	if in.Text == "" {
		return nil, service.Invalidf("'text' is empty")
	}
	return docsUpdate(ctx, api, c, in.Document, docs.Request{
		InsertText: &docs.InsertTextRequest{Text: in.Text, EndOfSegmentLocation: &docs.EndOfSegmentLocation{}},
	})
}

func docsBatchUpdate(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	return docsUpdate(ctx, api, c, in.Document, in.Requests...)
}

func docsDeleteRange(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	if in.Start < 1 || in.End <= in.Start {
		return nil, service.Invalidf("'start_index' must be at least 1 and 'end_index' greater than it")
	}
	return docsUpdate(ctx, api, c, in.Document, docs.Request{
		DeleteContentRange: &docs.DeleteContentRangeRequest{Range: &docs.Range{StartIndex: in.Start, EndIndex: in.End}},
	})
}

func docsFindReplace(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	if in.Find == "" {
		return nil, service.Invalidf("'find_text' is empty")
	}
	replace := &docs.Request{ReplaceAllText: &docs.ReplaceAllTextRequest{
		ContainsText:    &docs.SubstringMatchCriteria{Text: in.Find, MatchCase: in.Case},
		ReplaceText:     in.Replace,
		ForceSendFields: []string{"ReplaceText"},
	}}
	answer, err := api.Documents.BatchUpdate(in.Document, &docs.BatchUpdateDocumentRequest{Requests: []*docs.Request{replace}}).
		Context(ctx).Fields("documentId,replies").Do()
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Replies {
		if r.ReplaceAllText != nil {
			r.ReplaceAllText.ForceSendFields = []string{"OccurrencesChanged"} // zero matters too
		}
	}
	return answer, nil
}
