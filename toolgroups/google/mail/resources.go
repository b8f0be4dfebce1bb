package mail

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/api/gmail/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// describesMessage returns the operation that says what a mail is.
func describesMessage() service.Operation {
	return service.NewOperation(gmail.NewService, describeMessage)
}

func describeMessage(ctx context.Context, api *gmail.Service, _ *service.Conn, in service.Resource) (any, error) {
	m, err := api.Users.Messages.Get(me, in.ID).Context(ctx).Format("metadata").MetadataHeaders("Subject", "From").Do()
	if err != nil {
		return nil, err
	}
	return nameMail(m, "from", "From"), nil
}

// nameMail names a mail by its subject and a person.
func nameMail(m *gmail.Message, word, header string) string {
	payload := cmp.Or(m, &gmail.Message{}).Payload
	return fmt.Sprintf("%s %s %s", service.Quoted(gmailHeader(payload, "Subject")), word, service.Quoted(gmailHeader(payload, header)))
}

// describeThread says how a conversation began.
func describeThread(ctx context.Context, api *gmail.Service, _ *service.Conn, in service.Resource) (any, error) {
	t, err := api.Users.Threads.Get(me, in.ID).Context(ctx).Format("metadata").MetadataHeaders("Subject", "From").Do()
	if err != nil {
		return nil, err
	}
	if len(t.Messages) == 0 {
		return "empty", nil
	}
	return nameMail(t.Messages[0], "from", "From"), nil
}

// nameDraft says what a draft is, where [describeDraft] shows all of it.
func nameDraft(ctx context.Context, api *gmail.Service, _ *service.Conn, in service.Resource) (any, error) {
	d, err := api.Users.Drafts.Get(me, in.ID).Context(ctx).Format("metadata").Do()
	if err != nil {
		return nil, err
	}
	return nameMail(d.Message, "to", "To"), nil
}

// describesLabel returns the operation that says what a label is called.
func describesLabel() service.Operation { return service.NewOperation(gmail.NewService, describeLabel) }

func describeLabel(ctx context.Context, api *gmail.Service, _ *service.Conn, in service.Resource) (any, error) {
	l, err := api.Users.Labels.Get(me, in.ID).Context(ctx).Fields("name").Do()
	if err != nil {
		return nil, err
	}
	return service.Quoted(l.Name), nil
}

// describeFilter says which mails a filter is for and what it does with them.
func describeFilter(ctx context.Context, api *gmail.Service, _ *service.Conn, in service.Resource) (any, error) {
	f, err := api.Users.Settings.Filters.Get(me, in.ID).Context(ctx).Fields("criteria,action").Do()
	if err != nil {
		return nil, err
	}
	rule, err := toolgroups.EncodeJSON(f)
	if err != nil {
		return nil, fmt.Errorf("encode the filter: %w", err)
	}
	return string(rule), nil
}
