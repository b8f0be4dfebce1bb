package google

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/api/gmail/v1"
)

func gmailSettingsGroup() group {
	return group{
		name:   "google_gmail_settings",
		scopes: []string{gmail.GmailSettingsBasicScope},
		operations: operations{
			"gmailSettingsGetVacation":             with(gmail.NewService, gmailSettingsGetVacation),
			"gmailSettingsUpdateVacation":          with(gmail.NewService, gmailSettingsUpdateVacation),
			"gmailSettingsGetImap":                 with(gmail.NewService, gmailSettingsGetImap),
			"gmailSettingsUpdateImap":              with(gmail.NewService, gmailSettingsUpdateImap),
			"gmailSettingsListFilters":             with(gmail.NewService, gmailSettingsListFilters),
			"gmailSettingsCreateFilter":            with(gmail.NewService, gmailSettingsCreateFilter),
			"gmailSettingsDeleteFilter":            with(gmail.NewService, gmailSettingsDeleteFilter),
			"gmailSettingsListForwardingAddresses": with(gmail.NewService, gmailSettingsListForwardingAddresses),
			"gmailSettingsGetAutoForwarding":       with(gmail.NewService, gmailSettingsGetAutoForwarding),
			"gmailSettingsListSendAs":              with(gmail.NewService, gmailSettingsListSendAs),
			"gmailSettingsGetLanguage":             with(gmail.NewService, gmailSettingsGetLanguage),
			"gmailSettingsAddForwarding":           with(gmail.NewService, gmailSettingsAddForwarding).needs(scopeSharing),
			"gmailSettingsSetAutoForward":          with(gmail.NewService, gmailSettingsSetAutoForward).needs(scopeSharing),
			"gmailSettingsListDelegates":           with(gmail.NewService, gmailSettingsListDelegates),
		},
	}
}

// Zero values are left out by the library. What is read of these is shown whole.
var (
	vacationFields = []string{"EnableAutoReply", "ResponseSubject", "ResponseBodyHtml", "StartTime", "EndTime", "RestrictToDomain", "RestrictToContacts"}
	imapFields     = []string{"Enabled", "AutoExpunge", "ExpungeBehavior", "MaxFolderSize"}
)

func gmailSettingsGetVacation(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	v, err := api.Users.Settings.GetVacation(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	v.ForceSendFields = vacationFields
	return v, nil
}

type vacationArgs struct {
	Enable   bool    `json:"enable_auto_reply"`
	Start    *string `json:"start_time"`
	End      *string `json:"end_time"`
	Subject  *string `json:"subject"`
	Body     *string `json:"body_html"`
	Domain   *bool   `json:"restrict_to_domain"`
	Contacts *bool   `json:"restrict_to_contacts"`
}

// gmailSettingsUpdateVacation reads before it writes, because what a write leaves
// out is lost.
func gmailSettingsUpdateVacation(ctx context.Context, api *gmail.Service, _ *conn, in vacationArgs) (any, error) {
	v, err := api.Users.Settings.GetVacation(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	v.EnableAutoReply = in.Enable
	if v.StartTime, err = millis("start_time", in.Start, v.StartTime); err != nil {
		return nil, err
	}
	if v.EndTime, err = millis("end_time", in.End, v.EndTime); err != nil {
		return nil, err
	}
	if v.EndTime != 0 && v.EndTime <= v.StartTime {
		return nil, invalidf("'end_time' must be after 'start_time'")
	}
	set(&v.ResponseSubject, in.Subject)
	set(&v.ResponseBodyHtml, in.Body)
	set(&v.RestrictToDomain, in.Domain)
	set(&v.RestrictToContacts, in.Contacts)
	v.ForceSendFields = []string{"EnableAutoReply", "RestrictToDomain", "RestrictToContacts"}
	out, err := api.Users.Settings.UpdateVacation(me, v).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	out.ForceSendFields = vacationFields
	return out, nil
}

// set changes a value where a new one is given.
func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// millis reads milliseconds since 1970; an empty text stands for none.
func millis(name string, text *string, old int64) (int64, error) {
	if text == nil {
		return old, nil
	}
	if strings.TrimSpace(*text) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(*text), 10, 64)
	if err != nil || n < 0 {
		return 0, invalidf("'%s' must be milliseconds since 1970, not %q", name, *text)
	}
	return n, nil
}

func gmailSettingsGetImap(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	s, err := api.Users.Settings.GetImap(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	s.ForceSendFields = imapFields
	return s, nil
}

type imapArgs struct {
	Enabled   *bool   `json:"enabled"`
	Expunge   *bool   `json:"auto_expunge"`
	Behaviour *string `json:"expunge_behavior"`
	MaxFolder *int64  `json:"max_folder_size"`
}

func gmailSettingsUpdateImap(ctx context.Context, api *gmail.Service, _ *conn, in imapArgs) (any, error) {
	s, err := api.Users.Settings.GetImap(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	set(&s.Enabled, in.Enabled)
	set(&s.AutoExpunge, in.Expunge)
	set(&s.ExpungeBehavior, in.Behaviour)
	set(&s.MaxFolderSize, in.MaxFolder)
	s.ForceSendFields = []string{"Enabled", "AutoExpunge", "MaxFolderSize"}
	out, err := api.Users.Settings.UpdateImap(me, s).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	out.ForceSendFields = imapFields
	return out, nil
}

func gmailSettingsListFilters(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.Filters.List(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return struct {
		Filters []*gmail.Filter `json:"filters"`
	}{orEmpty(list.Filter)}, nil
}

type filterArgs struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Subject string   `json:"subject"`
	Query   string   `json:"query"`
	Add     []string `json:"add_label_ids"`
	Remove  []string `json:"remove_label_ids"`
}

func gmailSettingsCreateFilter(ctx context.Context, api *gmail.Service, _ *conn, in filterArgs) (any, error) {
	if strings.TrimSpace(in.From+in.To+in.Subject+in.Query) == "" {
		return nil, invalidf("give from, to, subject or query: a filter without would match everything")
	}
	if len(in.Add)+len(in.Remove) == 0 {
		return nil, invalidf("give add_label_ids or remove_label_ids")
	}
	return api.Users.Settings.Filters.Create(me, &gmail.Filter{
		Criteria: &gmail.FilterCriteria{From: in.From, To: in.To, Subject: in.Subject, Query: in.Query},
		Action:   &gmail.FilterAction{AddLabelIds: in.Add, RemoveLabelIds: in.Remove},
	}).Context(ctx).Do()
}

func gmailSettingsDeleteFilter(ctx context.Context, api *gmail.Service, _ *conn, in struct {
	ID string `json:"filter_id"`
},
) (any, error) {
	return done{true}, api.Users.Settings.Filters.Delete(me, in.ID).Context(ctx).Do()
}

func gmailSettingsListForwardingAddresses(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.ForwardingAddresses.List(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return struct {
		Addresses []*gmail.ForwardingAddress `json:"forwardingAddresses"`
	}{orEmpty(list.ForwardingAddresses)}, nil
}

func gmailSettingsGetAutoForwarding(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	f, err := api.Users.Settings.GetAutoForwarding(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	f.ForceSendFields = []string{"Enabled", "EmailAddress", "Disposition"}
	return f, nil
}

func gmailSettingsListSendAs(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.SendAs.List(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return struct {
		SendAs []*gmail.SendAs `json:"sendAs"`
	}{orEmpty(list.SendAs)}, nil
}

func gmailSettingsGetLanguage(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	return api.Users.Settings.GetLanguage(me).Context(ctx).Do()
}

func gmailSettingsAddForwarding(ctx context.Context, api *gmail.Service, _ *conn, in struct {
	Email string `json:"forwarding_email"`
},
) (any, error) {
	return api.Users.Settings.ForwardingAddresses.Create(me, &gmail.ForwardingAddress{ForwardingEmail: in.Email}).Context(ctx).Do()
}

type autoForwardArgs struct {
	Enabled     bool    `json:"enabled"`
	Email       *string `json:"email_address"`
	Disposition *string `json:"disposition"`
}

func gmailSettingsSetAutoForward(ctx context.Context, api *gmail.Service, _ *conn, in autoForwardArgs) (any, error) {
	f, err := api.Users.Settings.GetAutoForwarding(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	f.Enabled = in.Enabled
	set(&f.EmailAddress, in.Email)
	set(&f.Disposition, in.Disposition)
	if f.Enabled && f.EmailAddress == "" {
		return nil, invalidf("give email_address, a confirmed forwarding address")
	}
	if f.Enabled && f.Disposition == "" {
		f.Disposition = "leaveInInbox"
	}
	f.ForceSendFields = []string{"Enabled"}
	out, err := api.Users.Settings.UpdateAutoForwarding(me, f).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	out.ForceSendFields = []string{"Enabled"}
	return out, nil
}

func gmailSettingsListDelegates(ctx context.Context, api *gmail.Service, _ *conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.Delegates.List(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	return struct {
		Delegates []*gmail.Delegate `json:"delegates"`
	}{orEmpty(list.Delegates)}, nil
}
