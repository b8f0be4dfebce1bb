package mail

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/api/gmail/v1"

	"oneclaw/toolgroups/google/service"
)

// maxGmailBatch bounds the ids in one batchModify request
// (developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/batchModify).
const maxGmailBatch = 1000

// systemLabels are the labels whose id is their name.
var systemLabels = []string{
	"INBOX", "SENT", "DRAFT", "SPAM", "TRASH", "UNREAD", "STARRED", "IMPORTANT",
	"CATEGORY_PERSONAL", "CATEGORY_SOCIAL", "CATEGORY_PROMOTIONS", "CATEGORY_UPDATES", "CATEGORY_FORUMS",
}

// changed are the fields of a message that was changed: its author has written none of them.
const changed = "id,threadId,labelIds"

func gmailTrash(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	ids := gmailUniqueIDs(append(slices.Clone(in.MessageIDs), in.MessageID))
	switch len(ids) {
	case 0:
		return nil, service.Invalidf("give message_id or message_ids")
	case 1:
		return api.Users.Messages.Trash(me, ids[0]).Context(ctx).Fields(changed).Do()
	}
	return gmailModifyAll(ctx, api, ids, []string{"TRASH"}, []string{"INBOX"})
}

// gmailUniqueIDs drops empty and repeated ids.
func gmailUniqueIDs(ids []string) []string {
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

// gmailBatchResult is the result of changing many messages. Google accepts or rejects each batch as
// a whole; Failed are the rejected ids.
type gmailBatchResult struct {
	Success  bool     `json:"success"`
	Modified int      `json:"modified"`
	Failed   []string `json:"failed,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

// gmailModifyAll changes the labels of many messages in as few requests as possible. The reason of a refusal is in
// Google's words.
func gmailModifyAll(ctx context.Context, api *gmail.Service, ids, add, remove []string) (any, error) {
	out := gmailBatchResult{Success: true}
	for batch := range slices.Chunk(ids, maxGmailBatch) {
		err := api.Users.Messages.BatchModify(me, &gmail.BatchModifyMessagesRequest{
			Ids: batch, AddLabelIds: add, RemoveLabelIds: remove,
		}).Context(ctx).Do()
		if err == nil {
			out.Modified += len(batch)
			continue
		}
		if len(ids) <= maxGmailBatch || ctx.Err() != nil {
			return nil, err
		}
		out.Success = false
		out.Failed = append(out.Failed, batch...)
		out.Reason = service.PlainLine(err.Error())
	}
	if out.Reason != "" {
		return service.OfOthers{Result: out}, nil
	}
	return out, nil
}

func gmailUntrash(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return api.Users.Messages.Untrash(me, in.MessageID).Context(ctx).Fields(changed).Do()
}

func gmailModifyMessage(ctx context.Context, api *gmail.Service, id string, add, remove []string) (any, error) {
	return api.Users.Messages.Modify(me, id, &gmail.ModifyMessageRequest{AddLabelIds: add, RemoveLabelIds: remove}).Context(ctx).Fields(changed).Do()
}

// gmailLabelOperation returns an operation that adds and removes fixed labels.
func gmailLabelOperation(add, remove []string) func(context.Context, *gmail.Service, *service.Conn, gmailArgs) (any, error) {
	return func(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
		return gmailModifyMessage(ctx, api, in.MessageID, add, remove)
	}
}

func gmailAddLabel(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	return gmailModifyLabels(ctx, api, c, gmailArgs{MessageID: in.MessageID, AddLabels: []string{in.LabelID}})
}

func gmailRemoveLabel(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	return gmailModifyLabels(ctx, api, c, gmailArgs{MessageID: in.MessageID, RemoveLabels: []string{in.LabelID}})
}

// gmailResolveLabels turns names of labels into ids. It makes a request only if there is a name.
// Unknown names stay unchanged, and Google rejects them.
func gmailResolveLabels(ctx context.Context, api *gmail.Service, add, remove []string) (addIDs, removeIDs []string, err error) {
	isID := func(s string) bool { return slices.Contains(systemLabels, s) || strings.HasPrefix(s, "Label_") }
	add, remove = gmailUniqueIDs(add), gmailUniqueIDs(remove)
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
	return listResult("labels", list, err, func(l *gmail.ListLabelsResponse) []*gmail.Label { return l.Labels })
}

func gmailCreateLabel(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return api.Users.Labels.Create(me, &gmail.Label{Name: in.Name}).Context(ctx).Do()
}

func gmailDeleteLabel(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return service.SuccessResult(), api.Users.Labels.Delete(me, in.LabelID).Context(ctx).Do()
}

func gmailModifyLabels(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	if in.MessageID == "" && in.ThreadID == "" {
		return nil, service.Invalidf("give message_id or thread_id")
	}
	add, remove, err := gmailResolveArgs(ctx, api, in)
	if err != nil {
		return nil, err
	}
	if in.ThreadID == "" {
		return gmailModifyMessage(ctx, api, in.MessageID, add, remove)
	}
	return api.Users.Threads.Modify(me, in.ThreadID, &gmail.ModifyThreadRequest{AddLabelIds: add, RemoveLabelIds: remove}).Context(ctx).Do()
}

func gmailResolveArgs(ctx context.Context, api *gmail.Service, in gmailArgs) (add, remove []string, err error) {
	if len(in.AddLabels)+len(in.RemoveLabels) == 0 {
		return nil, nil, service.Invalidf("give add_labels or remove_labels")
	}
	return gmailResolveLabels(ctx, api, in.AddLabels, in.RemoveLabels)
}

func gmailBatchModify(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	ids := gmailUniqueIDs(in.MessageIDs)
	if len(ids) == 0 {
		return nil, service.Invalidf("'message_ids' is empty")
	}
	add, remove, err := gmailResolveArgs(ctx, api, in)
	if err != nil {
		return nil, err
	}
	return gmailModifyAll(ctx, api, ids, add, remove)
}
