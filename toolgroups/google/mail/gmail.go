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

// me stands for the mailbox of the account.
const me = "me"

// Gmail returns the group of tools for mail.
func Gmail() service.Group {
	return service.Group{
		Name:      "google_gmail",
		Scopes:    []string{gmail.GmailModifyScope},
		Manifests: manifests,
		Operations: service.Operations{
			"gmailSearch":        service.With(gmail.NewService, gmailSearch),
			"gmailGetMessage":    service.With(gmail.NewService, gmailGetMessage),
			"gmailSend":          service.With(gmail.NewService, gmailSend),
			"gmailReply":         service.With(gmail.NewService, gmailReply),
			"gmailTrash":         service.With(gmail.NewService, gmailTrash),
			"gmailUntrash":       service.With(gmail.NewService, gmailUntrash),
			"gmailMarkRead":      service.With(gmail.NewService, gmailRelabel(nil, []string{"UNREAD"})),
			"gmailMarkUnread":    service.With(gmail.NewService, gmailRelabel([]string{"UNREAD"}, nil)),
			"gmailAddLabel":      service.With(gmail.NewService, gmailAddLabel),
			"gmailRemoveLabel":   service.With(gmail.NewService, gmailRemoveLabel),
			"gmailArchive":       service.With(gmail.NewService, gmailRelabel(nil, []string{"INBOX"})),
			"gmailListLabels":    service.With(gmail.NewService, gmailListLabels),
			"gmailCreateLabel":   service.With(gmail.NewService, gmailCreateLabel),
			"gmailCreateDraft":   service.With(gmail.NewService, gmailCreateDraft),
			"gmailListDrafts":    service.With(gmail.NewService, gmailListDrafts),
			"gmailSendDraft":     service.With(gmail.NewService, gmailSendDraft),
			"gmailGetAttachment": service.With(gmail.NewService, gmailGetAttachment),
			"gmailListThreads":   service.With(gmail.NewService, gmailListThreads),
			"gmailGetThread":     service.With(gmail.NewService, gmailGetThread),
			"gmailModifyLabels":  service.With(gmail.NewService, gmailModifyLabels),
			"gmailDeleteLabel":   service.With(gmail.NewService, gmailDeleteLabel),
			"gmailGetDraft":      service.With(gmail.NewService, gmailGetDraft),
			"gmailDeleteDraft":   service.With(gmail.NewService, gmailDeleteDraft),
			"gmailHistory":       service.With(gmail.NewService, gmailHistory),
			"gmailBatchModify":   service.With(gmail.NewService, gmailBatchModify),
		},
	}
}

// Maxima of lists of mail.
const (
	defaultMail = 20
	maxMail     = 100
	// maxDrafts is the largest page of drafts and of changes
	// (developers.google.com/workspace/gmail/api/reference/rest).
	maxDrafts      = 500
	defaultHistory = 50
)

type gmailArgs struct {
	Message    string   `json:"message_id"`
	Messages   []string `json:"message_ids"`
	Thread     string   `json:"thread_id"`
	Draft      string   `json:"draft_id"`
	Attachment string   `json:"attachment_id"`
	Save       string   `json:"save_path"`
	Query      string   `json:"query"`
	MaxResults int      `json:"max_results"`
	Start      uint64   `json:"start_history_id,string"`
	Label      string   `json:"label_id"`
	Name       string   `json:"name"`
	Add        []string `json:"add_labels"`
	Remove     []string `json:"remove_labels"`
	To         string   `json:"to"`
	Cc         string   `json:"cc"`
	Bcc        string   `json:"bcc"`
	Subject    string   `json:"subject"`
	Body       string   `json:"body"`
	HTML       bool     `json:"html"`
}

// gmailHit is a message in the result of a search.
type gmailHit struct {
	ID       string   `json:"id"`
	ThreadID string   `json:"threadId"`
	Snippet  string   `json:"snippet"`
	Subject  string   `json:"subject"`
	From     string   `json:"from"`
	Date     string   `json:"date"`
	Labels   []string `json:"labelIds"`
}

func gmailSearch(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	var estimate int64
	call := api.Users.Messages.List(me).Context(ctx).Q(in.Query)
	limit := service.Bounded(in.MaxResults, defaultMail, maxMail)
	found, next, err := service.Collect(limit, call, call.MaxResults, func(page *gmail.ListMessagesResponse) ([]*gmail.Message, string) {
		estimate = max(estimate, page.ResultSizeEstimate)
		return page.Messages, page.NextPageToken
	})
	if err != nil {
		return nil, err
	}
	hits, err := service.Each(ctx, found, func(ctx context.Context, m *gmail.Message) (*gmailHit, error) {
		full, err := api.Users.Messages.Get(me, m.Id).Context(ctx).Format("metadata").MetadataHeaders("Subject", "From", "Date").Do()
		var answer *googleapi.Error
		if errors.As(err, &answer) && (answer.Code == http.StatusNotFound || answer.Code == http.StatusGone) {
			return nil, nil // deleted since the search
		}
		if err != nil {
			return nil, err
		}
		return &gmailHit{
			ID: full.Id, ThreadID: full.ThreadId, Snippet: full.Snippet, Labels: service.OrEmpty(full.LabelIds),
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
	limit := service.Bounded(in.MaxResults, defaultMail, maxMail)
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

type gmailChanges struct {
	History   []*gmail.History `json:"history"`
	HistoryID uint64           `json:"historyId,string"`
	Next      string           `json:"nextPageToken,omitempty"`
}

func gmailHistory(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	var newest uint64
	call := api.Users.History.List(me).Context(ctx).StartHistoryId(in.Start)
	if in.Label != "" {
		call.LabelId(in.Label)
	}
	limit := service.Bounded(in.MaxResults, defaultHistory, maxDrafts)
	changes, next, err := service.Collect(limit, call, call.MaxResults, func(page *gmail.ListHistoryResponse) ([]*gmail.History, string) {
		newest = page.HistoryId
		return page.History, page.NextPageToken
	})
	return gmailChanges{changes, newest, next}, err
}
