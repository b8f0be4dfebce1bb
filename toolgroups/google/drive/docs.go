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
			"docsGet":         service.NewOperation(docs.NewService, docsGet),
			"docsCreate":      service.AsksAmongOthers(service.NewOperation(docs.NewService, docsCreate), func(in docsArgs) bool { return !service.QuotesWhole(in.Title) }),
			"docsInsertText":  service.NewOperation(docs.NewService, docsInsertText),
			"docsAppendText":  service.NewOperation(docs.NewService, docsAppendText),
			"docsGetText":     service.NewOperation(docs.NewService, docsGetText),
			"docsBatchUpdate": service.NewOperation(docs.NewService, docsBatchUpdate),
			"docsDeleteRange": service.NewOperation(docs.NewService, docsDeleteRange),
			"docsFindReplace": service.NewOperation(docs.NewService, docsFindReplace),
		},
		Resources: service.Resources{
			"document_id": describesFile().Or(service.NewOperation(docs.NewService, docsTitle)),
		},
	}
}

type docsArgs struct {
	DocumentID  string            `json:"document_id"`
	Title       string            `json:"title"`
	Text        string            `json:"text"`
	Index       *int64            `json:"index"`
	StartIndex  int64             `json:"start_index"`
	EndIndex    int64             `json:"end_index"`
	FindText    string            `json:"find_text"`
	ReplaceText string            `json:"replace_text"`
	MatchCase   bool              `json:"match_case"`
	Requests    []json.RawMessage `json:"requests"`
}

func docsGet(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	return api.Documents.Get(in.DocumentID).Context(ctx).Do()
}

func docsCreate(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	// Leave the many styles of a new document out of the response.
	return api.Documents.Create(&docs.Document{Title: in.Title}).Context(ctx).
		Fields("documentId", "title", "revisionId", "body").Do()
}

// docsUpdate applies updates and returns Google's response.
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
	return docsUpdate(ctx, api, c, in.DocumentID, docs.Request{
		InsertText: &docs.InsertTextRequest{Text: in.Text, Location: &docs.Location{Index: at}},
	})
}

func docsAppendText(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	if in.Text == "" {
		return nil, service.Invalidf("'text' is empty")
	}
	return docsUpdate(ctx, api, c, in.DocumentID, docs.Request{
		InsertText: &docs.InsertTextRequest{Text: in.Text, EndOfSegmentLocation: &docs.EndOfSegmentLocation{}},
	})
}

func docsBatchUpdate(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	return docsUpdate(ctx, api, c, in.DocumentID, in.Requests...)
}

func docsDeleteRange(ctx context.Context, api *docs.Service, c *service.Conn, in docsArgs) (any, error) {
	if in.StartIndex < 1 || in.EndIndex <= in.StartIndex {
		return nil, service.Invalidf("'start_index' must be at least 1 and 'end_index' greater than it")
	}
	return docsUpdate(ctx, api, c, in.DocumentID, docs.Request{
		DeleteContentRange: &docs.DeleteContentRangeRequest{Range: &docs.Range{StartIndex: in.StartIndex, EndIndex: in.EndIndex}},
	})
}

func docsFindReplace(ctx context.Context, api *docs.Service, _ *service.Conn, in docsArgs) (any, error) {
	if in.FindText == "" {
		return nil, service.Invalidf("'find_text' is empty")
	}
	replace := &docs.Request{ReplaceAllText: &docs.ReplaceAllTextRequest{
		ContainsText:    &docs.SubstringMatchCriteria{Text: in.FindText, MatchCase: in.MatchCase},
		ReplaceText:     in.ReplaceText,
		ForceSendFields: []string{"ReplaceText"},
	}}
	answer, err := api.Documents.BatchUpdate(in.DocumentID, &docs.BatchUpdateDocumentRequest{Requests: []*docs.Request{replace}}).
		Context(ctx).Fields("documentId,replies").Do()
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Replies {
		if r.ReplaceAllText != nil {
			r.ReplaceAllText.ForceSendFields = []string{"OccurrencesChanged"} // keep zero in the result
		}
	}
	return answer, nil
}
