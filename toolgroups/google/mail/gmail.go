package mail

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"

	"oneclaw/toolgroups/google/service"
)

// me is Google's name for the mailbox of the account.
const me = "me"

// Gmail returns the group of tools for mail.
func Gmail() service.Group {
	return service.Group{
		Name:      "google_gmail",
		Scopes:    []string{gmail.GmailModifyScope},
		Manifests: manifests,
		Operations: service.Operations{
			"gmailSearch":        service.NewOperation(gmail.NewService, gmailSearch),
			"gmailGetMessage":    service.NewOperation(gmail.NewService, gmailGetMessage),
			"gmailSend":          service.NewOperation(gmail.NewService, gmailSend),
			"gmailReply":         service.NewOperation(gmail.NewService, gmailReply).Described(service.NewOperation(gmail.NewService, describeReply)),
			"gmailTrash":         service.NewOperation(gmail.NewService, gmailTrash),
			"gmailUntrash":       service.NewOperation(gmail.NewService, gmailUntrash),
			"gmailMarkRead":      service.NewOperation(gmail.NewService, gmailLabelOperation(nil, []string{"UNREAD"})),
			"gmailMarkUnread":    service.NewOperation(gmail.NewService, gmailLabelOperation([]string{"UNREAD"}, nil)),
			"gmailAddLabel":      service.NewOperation(gmail.NewService, gmailAddLabel),
			"gmailRemoveLabel":   service.NewOperation(gmail.NewService, gmailRemoveLabel),
			"gmailArchive":       service.NewOperation(gmail.NewService, gmailLabelOperation(nil, []string{"INBOX"})),
			"gmailListLabels":    service.NewOperation(gmail.NewService, gmailListLabels),
			"gmailCreateLabel":   service.NewOperation(gmail.NewService, gmailCreateLabel),
			"gmailCreateDraft":   service.AsksAmongOthers(service.NewOperation(gmail.NewService, gmailCreateDraft), gmailArgs.mayFetch),
			"gmailListDrafts":    service.NewOperation(gmail.NewService, gmailListDrafts),
			"gmailSendDraft":     service.NewOperation(gmail.NewService, gmailSendDraft).Described(service.NewOperation(gmail.NewService, describeDraft)),
			"gmailGetAttachment": service.NewOperation(gmail.NewService, gmailGetAttachment),
			"gmailListThreads":   service.NewOperation(gmail.NewService, gmailListThreads),
			"gmailGetThread":     service.NewOperation(gmail.NewService, gmailGetThread),
			"gmailModifyLabels":  service.NewOperation(gmail.NewService, gmailModifyLabels),
			"gmailDeleteLabel":   service.NewOperation(gmail.NewService, gmailDeleteLabel),
			"gmailGetDraft":      service.NewOperation(gmail.NewService, gmailGetDraft),
			"gmailDeleteDraft":   service.NewOperation(gmail.NewService, gmailDeleteDraft),
			"gmailHistory":       service.NewOperation(gmail.NewService, gmailHistory),
			"gmailBatchModify":   service.NewOperation(gmail.NewService, gmailBatchModify),
		},
		Resources: service.Resources{
			"message_id": describesMessage(), "message_ids": describesMessage(),
			"thread_id": service.NewOperation(gmail.NewService, describeThread),
			"draft_id":  service.NewOperation(gmail.NewService, nameDraft),
			"label_id":  describesLabel(),
		},
	}
}

// Sizes of lists of mail.
const (
	defaultMail = 20
	maxMail     = 100
	// maxDrafts is the largest page of drafts and of changes
	// (developers.google.com/workspace/gmail/api/reference/rest).
	maxDrafts      = 500
	defaultHistory = 50
)

type gmailArgs struct {
	MessageID      string   `json:"message_id"`
	MessageIDs     []string `json:"message_ids"`
	ThreadID       string   `json:"thread_id"`
	DraftID        string   `json:"draft_id"`
	AttachmentID   string   `json:"attachment_id"`
	SavePath       string   `json:"save_path"`
	Query          string   `json:"query"`
	MaxResults     int      `json:"max_results"`
	StartHistoryID uint64   `json:"start_history_id,string"`
	LabelID        string   `json:"label_id"`
	Name           string   `json:"name"`
	AddLabels      []string `json:"add_labels"`
	RemoveLabels   []string `json:"remove_labels"`
	To             string   `json:"to"`
	Cc             string   `json:"cc"`
	Bcc            string   `json:"bcc"`
	Subject        string   `json:"subject"`
	Body           string   `json:"body"`
	HTML           bool     `json:"html"`
}

// mayFetch reports whether a draft may name pictures: Gmail fetches them when its owner opens it, and their
// addresses can carry data.
func (in gmailArgs) mayFetch() bool { return in.HTML }

// gmailHit is a message in the result of a search.
type gmailHit struct {
	ID       string   `json:"id"`
	ThreadID string   `json:"threadId"`
	Snippet  string   `json:"snippet"`
	Subject  string   `json:"subject"`
	From     string   `json:"from"`
	Date     string   `json:"date"`
	LabelIDs []string `json:"labelIds"`
}

func gmailSearch(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	var estimate int64
	call := api.Users.Messages.List(me).Context(ctx).Q(in.Query)
	limit := service.ClampLimit(in.MaxResults, defaultMail, maxMail)
	found, next, err := service.Collect(limit, call, call.MaxResults, func(page *gmail.ListMessagesResponse) ([]*gmail.Message, string) {
		estimate = max(estimate, page.ResultSizeEstimate)
		return page.Messages, page.NextPageToken
	})
	if err != nil {
		return nil, err
	}
	hits, err := service.MapConcurrent(ctx, found, func(ctx context.Context, m *gmail.Message) (*gmailHit, error) {
		full, err := api.Users.Messages.Get(me, m.Id).Context(ctx).Format("metadata").MetadataHeaders("Subject", "From", "Date").Do()
		var answer *googleapi.Error
		if errors.As(err, &answer) && (answer.Code == http.StatusNotFound || answer.Code == http.StatusGone) {
			return nil, nil // deleted since the search
		}
		if err != nil {
			return nil, err
		}
		return &gmailHit{
			ID: full.Id, ThreadID: full.ThreadId, Snippet: full.Snippet, LabelIDs: service.OrEmpty(full.LabelIds),
			Subject: gmailHeader(full.Payload, "Subject"), From: gmailHeader(full.Payload, "From"), Date: gmailHeader(full.Payload, "Date"),
		}, nil
	})
	if err != nil {
		return nil, err
	}
	messages := slices.DeleteFunc(hits, func(h *gmailHit) bool { return h == nil })
	total := int64(len(messages))
	if next != "" {
		total = max(total, estimate)
	}
	return map[string]any{"messages": messages, "total": total}, nil
}

func gmailListThreads(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	var estimate int64
	call := api.Users.Threads.List(me).Context(ctx).Q(in.Query)
	limit := service.ClampLimit(in.MaxResults, defaultMail, maxMail)
	found, next, err := service.Collect(limit, call, call.MaxResults, func(page *gmail.ListThreadsResponse) ([]*gmail.Thread, string) {
		estimate = max(estimate, page.ResultSizeEstimate)
		return page.Threads, page.NextPageToken
	})
	total := int64(len(found))
	if next != "" {
		total = max(total, estimate)
	}
	return map[string]any{"threads": found, "total": total}, err
}

// gmailChanges are changes of the mailbox. A list that begins at HistoryID has the changes after those in
// History.
type gmailChanges struct {
	History   []*gmail.History `json:"history"`
	HistoryID uint64           `json:"historyId,string"`
	More      bool             `json:"more,omitempty"`
}

func gmailHistory(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	var newest uint64
	call := api.Users.History.List(me).Context(ctx).StartHistoryId(in.StartHistoryID)
	if in.LabelID != "" {
		call.LabelId(in.LabelID)
	}
	limit := service.ClampLimit(in.MaxResults, defaultHistory, maxDrafts)
	changes, next, err := service.Collect(limit, call, call.MaxResults, func(page *gmail.ListHistoryResponse) ([]*gmail.History, string) {
		newest = page.HistoryId
		return page.History, page.NextPageToken
	})
	if err != nil {
		return nil, err
	}
	out := gmailChanges{History: changes, HistoryID: newest}
	if next != "" { // Google's id is that of the newest change, which is not in the list
		out.More, out.HistoryID = true, in.StartHistoryID
		if n := len(changes); n > 0 {
			out.HistoryID = changes[n-1].Id
		}
	}
	return out, nil
}
