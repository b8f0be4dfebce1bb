package mail

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/api/gmail/v1"

	"oneclaw/toolgroups/google/service"
)

// gmailBatch bounds the ids of one batchModify
// (developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/batchModify).
const gmailBatch = 1000

// systemLabels are labels whose id is their name.
var systemLabels = []string{
	"INBOX", "SENT", "DRAFT", "SPAM", "TRASH", "UNREAD", "STARRED", "IMPORTANT",
	"CATEGORY_PERSONAL", "CATEGORY_SOCIAL", "CATEGORY_PROMOTIONS", "CATEGORY_UPDATES", "CATEGORY_FORUMS",
}

func gmailTrash(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	ids := gmailIDs(append(slices.Clone(in.Messages), in.Message))
	switch len(ids) {
	case 0:
		return nil, service.Invalidf("give message_id or message_ids")
	case 1:
		return api.Users.Messages.Trash(me, ids[0]).Context(ctx).Do()
	}
	return gmailModifyAll(ctx, api, ids, []string{"TRASH"}, []string{"INBOX"})
}

// gmailIDs drops empty and repeated ids.
func gmailIDs(ids []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, id := range ids {
		if id = strings.TrimSpace(id); id != "" && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// gmailBatchDone is the result of a change of many messages. Google accepts or refuses each
// batch as a whole; Failed are the refused ids.
type gmailBatchDone struct {
	Success  bool     `json:"success"`
	Modified int      `json:"modified"`
	Failed   []string `json:"failed,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

// gmailModifyAll changes the labels of many messages in as few requests as possible.
func gmailModifyAll(ctx context.Context, api *gmail.Service, ids, add, remove []string) (any, error) {
	out := gmailBatchDone{Success: true}
	for batch := range slices.Chunk(ids, gmailBatch) {
		err := api.Users.Messages.BatchModify(me, &gmail.BatchModifyMessagesRequest{
			Ids: batch, AddLabelIds: add, RemoveLabelIds: remove,
		}).Context(ctx).Do()
		if err == nil {
			out.Modified += len(batch)
			continue
		}
		if len(ids) <= gmailBatch || ctx.Err() != nil {
			return nil, err
		}
		out.Success = false
		out.Failed = append(out.Failed, batch...)
		out.Reason = service.PlainLine(err.Error())
	}
	return out, nil
}

func gmailUntrash(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return api.Users.Messages.Untrash(me, in.Message).Context(ctx).Do()
}

func gmailModify(ctx context.Context, api *gmail.Service, id string, add, remove []string) (any, error) {
	return api.Users.Messages.Modify(me, id, &gmail.ModifyMessageRequest{AddLabelIds: add, RemoveLabelIds: remove}).Context(ctx).Do()
}

// gmailRelabel returns an operation that changes fixed labels.
func gmailRelabel(add, remove []string) func(context.Context, *gmail.Service, *service.Conn, gmailArgs) (any, error) {
	return func(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
		return gmailModify(ctx, api, in.Message, add, remove)
	}
}

func gmailAddLabel(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	return gmailModifyLabels(ctx, api, c, gmailArgs{Message: in.Message, Add: []string{in.Label}})
}

func gmailRemoveLabel(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	return gmailModifyLabels(ctx, api, c, gmailArgs{Message: in.Message, Remove: []string{in.Label}})
}

// gmailResolve turns names of labels into ids, with a request only if there is a name. Google
// then refuses unknown ones.
func gmailResolve(ctx context.Context, api *gmail.Service, add, remove []string) (addIDs, removeIDs []string, err error) {
	isID := func(s string) bool { return slices.Contains(systemLabels, s) || strings.HasPrefix(s, "Label_") }
	add, remove = gmailIDs(add), gmailIDs(remove)
	if !slices.ContainsFunc(append(slices.Clone(add), remove...), func(s string) bool { return !isID(s) }) {
		return add, remove, nil
	}
	known, err := api.Users.Labels.List(me).Context(ctx).Do()
	if err != nil {
		return nil, nil, err
	}
	resolve := func(names []string) []string {
		for i, name := range names {
			at := slices.IndexFunc(known.Labels, func(l *gmail.Label) bool { return strings.EqualFold(l.Name, name) })
			if !isID(name) && at >= 0 {
				names[i] = known.Labels[at].Id
			}
		}
		return names
	}
	return resolve(add), resolve(remove), nil
}

func gmailListLabels(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	list, err := api.Users.Labels.List(me).Context(ctx).Do()
	return listed("labels", list, err, func(l *gmail.ListLabelsResponse) []*gmail.Label { return l.Labels })
}

func gmailCreateLabel(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return api.Users.Labels.Create(me, &gmail.Label{Name: in.Name}).Context(ctx).Do()
}

func gmailDeleteLabel(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return service.Done(), api.Users.Labels.Delete(me, in.Label).Context(ctx).Do()
}

func gmailModifyLabels(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	if in.Message == "" && in.Thread == "" {
		return nil, service.Invalidf("give message_id or thread_id")
	}
	add, remove, err := gmailResolved(ctx, api, in)
	if err != nil {
		return nil, err
	}
	if in.Thread == "" {
		return gmailModify(ctx, api, in.Message, add, remove)
	}
	return api.Users.Threads.Modify(me, in.Thread, &gmail.ModifyThreadRequest{AddLabelIds: add, RemoveLabelIds: remove}).Context(ctx).Do()
}

func gmailResolved(ctx context.Context, api *gmail.Service, in gmailArgs) (add, remove []string, err error) {
	if len(in.Add)+len(in.Remove) == 0 {
		return nil, nil, service.Invalidf("give add_labels or remove_labels")
	}
	return gmailResolve(ctx, api, in.Add, in.Remove)
}

func gmailBatchModify(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	ids := gmailIDs(in.Messages)
	if len(ids) == 0 {
		return nil, service.Invalidf("'message_ids' is empty")
	}
	add, remove, err := gmailResolved(ctx, api, in)
	if err != nil {
		return nil, err
	}
	return gmailModifyAll(ctx, api, ids, add, remove)
}
