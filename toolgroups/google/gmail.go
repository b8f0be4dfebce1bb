package google

import (
	"context"

	"google.golang.org/api/gmail/v1"
)

// me is the mailbox of the account.
const me = "me"

func gmailGroup() group {
	return group{
		name:   "google_gmail",
		scopes: []string{gmail.GmailModifyScope},
		operations: operations{
			"gmailSearch":        with(gmail.NewService, gmailSearch),
			"gmailGetMessage":    with(gmail.NewService, gmailGetMessage),
			"gmailSend":          with(gmail.NewService, gmailSend),
			"gmailReply":         with(gmail.NewService, gmailReply),
			"gmailTrash":         with(gmail.NewService, gmailTrash),
			"gmailUntrash":       with(gmail.NewService, gmailUntrash),
			"gmailMarkRead":      with(gmail.NewService, gmailMarkRead),
			"gmailMarkUnread":    with(gmail.NewService, gmailMarkUnread),
			"gmailAddLabel":      with(gmail.NewService, gmailAddLabel),
			"gmailRemoveLabel":   with(gmail.NewService, gmailRemoveLabel),
			"gmailArchive":       with(gmail.NewService, gmailArchive),
			"gmailListLabels":    with(gmail.NewService, gmailListLabels),
			"gmailCreateLabel":   with(gmail.NewService, gmailCreateLabel),
			"gmailCreateDraft":   with(gmail.NewService, gmailCreateDraft),
			"gmailListDrafts":    with(gmail.NewService, gmailListDrafts),
			"gmailSendDraft":     with(gmail.NewService, gmailSendDraft),
			"gmailGetAttachment": with(gmail.NewService, gmailGetAttachment),
			"gmailListThreads":   with(gmail.NewService, gmailListThreads),
			"gmailGetThread":     with(gmail.NewService, gmailGetThread),
			"gmailModifyLabels":  with(gmail.NewService, gmailModifyLabels),
			"gmailDeleteLabel":   with(gmail.NewService, gmailDeleteLabel),
			"gmailGetDraft":      with(gmail.NewService, gmailGetDraft),
			"gmailDeleteDraft":   with(gmail.NewService, gmailDeleteDraft),
			"gmailHistory":       with(gmail.NewService, gmailHistory),
			"gmailBatchModify":   with(gmail.NewService, gmailBatchModify),
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

type gmailQueryArgs struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
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

// gmailHits is the result of gmail_search. Total is Google's estimate where there
// are more than were asked for.
type gmailHits struct {
	Messages []gmailHit `json:"messages"`
	Total    int64      `json:"total"`
}

func gmailSearch(ctx context.Context, api *gmail.Service, _ *conn, in gmailQueryArgs) (any, error) {
	var estimate int64
	found, next, err := collect(bounded(in.MaxResults, defaultMail, maxMail),
		func(token string, wanted int64) ([]*gmail.Message, string, error) {
			call := api.Users.Messages.List(me).Context(ctx).Q(in.Query).MaxResults(wanted)
			if token != "" {
				call.PageToken(token)
			}
			page, err := call.Do()
			if err != nil {
				return nil, "", err
			}
			estimate = max(estimate, page.ResultSizeEstimate)
			return page.Messages, page.NextPageToken, nil
		})
	if err != nil {
		return nil, err
	}
	hits, err := each(ctx, found, func(ctx context.Context, m *gmail.Message) (*gmailHit, error) {
		full, err := api.Users.Messages.Get(me, m.Id).Context(ctx).Format("metadata").MetadataHeaders("Subject", "From", "Date").Do()
		if isGone(err) {
			return nil, nil // It was deleted since the search.
		}
		if err != nil {
			return nil, err
		}
		return &gmailHit{
			ID: full.Id, ThreadID: full.ThreadId, Snippet: full.Snippet, Labels: orEmpty(full.LabelIds),
			Subject: gmailHeader(full.Payload, "Subject"), From: gmailHeader(full.Payload, "From"), Date: gmailHeader(full.Payload, "Date"),
		}, nil
	})
	if err != nil {
		return nil, err
	}
	out := gmailHits{Messages: []gmailHit{}}
	for _, h := range hits {
		if h != nil {
			out.Messages = append(out.Messages, *h)
		}
	}
	out.Total = int64(len(out.Messages))
	if next != "" {
		out.Total = max(out.Total, estimate)
	}
	return out, nil
}

// orEmpty is a list that is never null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// gmailThreads is the result of gmail_list_threads.
type gmailThreads struct {
	Threads []*gmail.Thread `json:"threads"`
	Total   int64           `json:"total"`
}

func gmailListThreads(ctx context.Context, api *gmail.Service, _ *conn, in gmailQueryArgs) (any, error) {
	var estimate int64
	found, next, err := collect(bounded(in.MaxResults, defaultMail, maxMail),
		func(token string, wanted int64) ([]*gmail.Thread, string, error) {
			call := api.Users.Threads.List(me).Context(ctx).Q(in.Query).MaxResults(wanted)
			if token != "" {
				call.PageToken(token)
			}
			page, err := call.Do()
			if err != nil {
				return nil, "", err
			}
			estimate = max(estimate, page.ResultSizeEstimate)
			return page.Threads, page.NextPageToken, nil
		})
	total := int64(len(found))
	if next != "" {
		total = max(total, estimate)
	}
	return gmailThreads{found, total}, err
}

type gmailHistoryArgs struct {
	Start      uint64 `json:"start_history_id,string"`
	MaxResults int    `json:"max_results"`
	Label      string `json:"label_id"`
}

// gmailChanges is the result of gmail_history.
type gmailChanges struct {
	History   []*gmail.History `json:"history"`
	HistoryID uint64           `json:"historyId,string"`
	Next      string           `json:"nextPageToken,omitempty"`
}

func gmailHistory(ctx context.Context, api *gmail.Service, _ *conn, in gmailHistoryArgs) (any, error) {
	var newest uint64
	changes, next, err := collect(bounded(in.MaxResults, defaultHistory, maxDrafts),
		func(token string, wanted int64) ([]*gmail.History, string, error) {
			call := api.Users.History.List(me).Context(ctx).StartHistoryId(in.Start).MaxResults(wanted)
			if in.Label != "" {
				call.LabelId(in.Label)
			}
			if token != "" {
				call.PageToken(token)
			}
			page, err := call.Do()
			if err != nil {
				return nil, "", err
			}
			newest = page.HistoryId
			return page.History, page.NextPageToken, nil
		})
	return gmailChanges{changes, newest, next}, err
}
