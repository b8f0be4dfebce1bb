package mail

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/gmail/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// Settings returns the group of tools for mail settings.
func Settings() service.Group {
	return service.Group{
		Name:      "google_gmail_settings",
		Scopes:    []string{gmail.GmailSettingsBasicScope},
		Manifests: manifests,
		Operations: service.Operations{
			"gmailSettingsGetVacation":             service.NewOperation(gmail.NewService, gmailSettingsGetVacation),
			"gmailSettingsUpdateVacation":          service.NewOperation(gmail.NewService, gmailSettingsUpdateVacation).Described(service.NewOperation(gmail.NewService, describeVacation)),
			"gmailSettingsGetImap":                 service.NewOperation(gmail.NewService, gmailSettingsGetImap),
			"gmailSettingsUpdateImap":              service.NewOperation(gmail.NewService, gmailSettingsUpdateImap).Described(service.NewOperation(gmail.NewService, describeImap)),
			"gmailSettingsListFilters":             service.NewOperation(gmail.NewService, gmailSettingsListFilters),
			"gmailSettingsCreateFilter":            service.NewOperation(gmail.NewService, gmailSettingsCreateFilter),
			"gmailSettingsDeleteFilter":            service.NewOperation(gmail.NewService, gmailSettingsDeleteFilter),
			"gmailSettingsListForwardingAddresses": service.NewOperation(gmail.NewService, gmailSettingsListForwardingAddresses),
			"gmailSettingsGetAutoForwarding":       service.NewOperation(gmail.NewService, gmailSettingsGetAutoForwarding),
			"gmailSettingsListSendAs":              service.NewOperation(gmail.NewService, gmailSettingsListSendAs),
			"gmailSettingsGetLanguage":             service.NewOperation(gmail.NewService, gmailSettingsGetLanguage),
			"gmailSettingsAddForwarding":           service.NewOperation(gmail.NewService, gmailSettingsAddForwarding).WithScopes(gmail.GmailSettingsSharingScope),
			"gmailSettingsSetAutoForward":          service.NewOperation(gmail.NewService, gmailSettingsSetAutoForward).WithScopes(gmail.GmailSettingsSharingScope).Described(service.NewOperation(gmail.NewService, describeAutoForward)),
			"gmailSettingsListDelegates":           service.NewOperation(gmail.NewService, gmailSettingsListDelegates).WithScopes(gmail.GmailSettingsSharingScope),
		},
		Resources: service.Resources{
			"filter_id":     service.NewOperation(gmail.NewService, describeFilter),
			"add_label_ids": describesLabel(), "remove_label_ids": describesLabel(),
		},
	}
}

// vacationResult, imapResult and forwardingResult include zero values, which the library would leave out.
func vacationResult(v *gmail.VacationSettings, err error) (any, error) {
	if err == nil {
		v.ForceSendFields = []string{
			"EnableAutoReply", "ResponseSubject", "ResponseBodyHtml", "StartTime", "EndTime", "RestrictToDomain", "RestrictToContacts",
		}
	}
	return v, err
}

func imapResult(s *gmail.ImapSettings, err error) (any, error) {
	if err == nil {
		s.ForceSendFields = []string{"Enabled", "AutoExpunge", "ExpungeBehavior", "MaxFolderSize"}
	}
	return s, err
}

func forwardingResult(f *gmail.AutoForwarding, err error) (any, error) {
	if err == nil {
		f.ForceSendFields = []string{"Enabled", "EmailAddress", "Disposition"}
	}
	return f, err
}

// listResult returns the items of a list under a name, never null.
func listResult[L, T any](name string, list *L, err error, of func(*L) []T) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]any{name: service.OrEmpty(of(list))}, nil
}

func gmailSettingsGetVacation(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	return vacationResult(api.Users.Settings.GetVacation(me).Context(ctx).Do())
}

type vacationArgs struct {
	Enable             bool    `json:"enable_auto_reply"`
	StartTime          *string `json:"start_time"`
	EndTime            *string `json:"end_time"`
	Subject            *string `json:"subject"`
	BodyHTML           *string `json:"body_html"`
	RestrictToDomain   *bool   `json:"restrict_to_domain"`
	RestrictToContacts *bool   `json:"restrict_to_contacts"`
}

func gmailSettingsUpdateVacation(ctx context.Context, api *gmail.Service, _ *service.Conn, in vacationArgs) (any, error) {
	v, err := in.applied(ctx, api)
	if err != nil {
		return nil, err
	}
	v.ForceSendFields = []string{"EnableAutoReply", "RestrictToDomain", "RestrictToContacts"}
	return vacationResult(api.Users.Settings.UpdateVacation(me, v).Context(ctx).Do())
}

// describeVacation shows the whole answer that would go to everybody who writes: an earlier call may have set it while it
// was off.
func describeVacation(ctx context.Context, api *gmail.Service, _ *service.Conn, in vacationArgs) (any, error) {
	if !in.Enable {
		return "Automatic answer: off", nil
	}
	v, err := in.applied(ctx, api)
	if err != nil {
		return nil, err
	}
	to := "everybody who writes"
	if v.RestrictToContacts {
		to += ", of the contacts only"
	}
	if v.RestrictToDomain {
		to += ", of the own domain only"
	}
	at := func(millis int64, none string) string {
		if millis == 0 {
			return none
		}
		return time.UnixMilli(millis).UTC().Format(time.RFC3339)
	}
	kind, body := "HTML", v.ResponseBodyHtml
	if body == "" {
		kind, body = "plain", v.ResponseBodyPlainText
	}
	return fmt.Sprintf("Automatic answer: on, to %s\nFrom: %s\nUntil: %s\nSubject: %s\nText (%s):\n%s",
		to, at(v.StartTime, "now"), at(v.EndTime, "it is switched off"), service.QuotedWhole(v.ResponseSubject), kind, body), nil
}

// applied returns the settings as they are with these changes: a write deletes the fields that it leaves out.
func (in vacationArgs) applied(ctx context.Context, api *gmail.Service) (*gmail.VacationSettings, error) {
	v, err := api.Users.Settings.GetVacation(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	v.EnableAutoReply = in.Enable
	if v.StartTime, err = parseMillis("start_time", in.StartTime, v.StartTime); err != nil {
		return nil, err
	}
	if v.EndTime, err = parseMillis("end_time", in.EndTime, v.EndTime); err != nil {
		return nil, err
	}
	if v.EndTime != 0 && v.EndTime <= v.StartTime {
		return nil, service.Invalidf("'end_time' must be after 'start_time'")
	}
	toolgroups.Assign(&v.ResponseSubject, in.Subject)
	toolgroups.Assign(&v.ResponseBodyHtml, in.BodyHTML)
	toolgroups.Assign(&v.RestrictToDomain, in.RestrictToDomain)
	toolgroups.Assign(&v.RestrictToContacts, in.RestrictToContacts)
	return v, nil
}

// parseMillis parses milliseconds since 1970. It returns 0 for an empty text and old for nil.
func parseMillis(name string, text *string, old int64) (int64, error) {
	if text == nil {
		return old, nil
	}
	if strings.TrimSpace(*text) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(*text), 10, 64)
	if err != nil || n < 0 {
		return 0, service.Invalidf("'%s' must be milliseconds since 1970, not %q", name, *text)
	}
	return n, nil
}

func gmailSettingsGetImap(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	return imapResult(api.Users.Settings.GetImap(me).Context(ctx).Do())
}

type imapArgs struct {
	Enabled         *bool   `json:"enabled"`
	AutoExpunge     *bool   `json:"auto_expunge"`
	ExpungeBehavior *string `json:"expunge_behavior"`
	MaxFolderSize   *int64  `json:"max_folder_size"`
}

func gmailSettingsUpdateImap(ctx context.Context, api *gmail.Service, _ *service.Conn, in imapArgs) (any, error) {
	s, err := in.applied(ctx, api)
	if err != nil {
		return nil, err
	}
	s.ForceSendFields = []string{"Enabled", "AutoExpunge", "MaxFolderSize"}
	return imapResult(api.Users.Settings.UpdateImap(me, s).Context(ctx).Do())
}

// describeImap says what the settings would be, which decide together what becomes of deleted mails.
func describeImap(ctx context.Context, api *gmail.Service, _ *service.Conn, in imapArgs) (any, error) {
	s, err := in.applied(ctx, api)
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("IMAP: on: %t, expunges at once: %t, what becomes of the last copy: %s, messages in a folder: %d (0: any number)",
		s.Enabled, s.AutoExpunge, service.Quoted(s.ExpungeBehavior), s.MaxFolderSize), nil
}

func (in imapArgs) applied(ctx context.Context, api *gmail.Service) (*gmail.ImapSettings, error) {
	s, err := api.Users.Settings.GetImap(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	toolgroups.Assign(&s.Enabled, in.Enabled)
	toolgroups.Assign(&s.AutoExpunge, in.AutoExpunge)
	toolgroups.Assign(&s.ExpungeBehavior, in.ExpungeBehavior)
	toolgroups.Assign(&s.MaxFolderSize, in.MaxFolderSize)
	return s, nil
}

func gmailSettingsListFilters(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.Filters.List(me).Context(ctx).Do()
	return listResult("filters", list, err, func(l *gmail.ListFiltersResponse) []*gmail.Filter { return l.Filter })
}

type filterArgs struct {
	ID      string   `json:"filter_id"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Subject string   `json:"subject"`
	Query   string   `json:"query"`
	Add     []string `json:"add_label_ids"`
	Remove  []string `json:"remove_label_ids"`
}

func gmailSettingsCreateFilter(ctx context.Context, api *gmail.Service, _ *service.Conn, in filterArgs) (any, error) {
	if strings.TrimSpace(in.From+in.To+in.Subject+in.Query) == "" {
		return nil, service.Invalidf("give from, to, subject or query: a filter without would match everything")
	}
	if len(in.Add)+len(in.Remove) == 0 {
		return nil, service.Invalidf("give add_label_ids or remove_label_ids")
	}
	return api.Users.Settings.Filters.Create(me, &gmail.Filter{
		Criteria: &gmail.FilterCriteria{From: in.From, To: in.To, Subject: in.Subject, Query: in.Query},
		Action:   &gmail.FilterAction{AddLabelIds: in.Add, RemoveLabelIds: in.Remove},
	}).Context(ctx).Do()
}

func gmailSettingsDeleteFilter(ctx context.Context, api *gmail.Service, _ *service.Conn, in filterArgs) (any, error) {
	return service.SuccessResult(), api.Users.Settings.Filters.Delete(me, in.ID).Context(ctx).Do()
}

func gmailSettingsListForwardingAddresses(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.ForwardingAddresses.List(me).Context(ctx).Do()
	return listResult("forwardingAddresses", list, err, func(l *gmail.ListForwardingAddressesResponse) []*gmail.ForwardingAddress {
		return l.ForwardingAddresses
	})
}

func gmailSettingsGetAutoForwarding(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	return forwardingResult(api.Users.Settings.GetAutoForwarding(me).Context(ctx).Do())
}

func gmailSettingsListSendAs(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.SendAs.List(me).Context(ctx).Do()
	return listResult("sendAs", list, err, func(l *gmail.ListSendAsResponse) []*gmail.SendAs { return l.SendAs })
}

func gmailSettingsGetLanguage(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	return api.Users.Settings.GetLanguage(me).Context(ctx).Do()
}

func gmailSettingsAddForwarding(ctx context.Context, api *gmail.Service, _ *service.Conn, in struct {
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

func gmailSettingsSetAutoForward(ctx context.Context, api *gmail.Service, _ *service.Conn, in autoForwardArgs) (any, error) {
	f, err := in.applied(ctx, api)
	if err != nil {
		return nil, err
	}
	f.ForceSendFields = []string{"Enabled"}
	return forwardingResult(api.Users.Settings.UpdateAutoForwarding(me, f).Context(ctx).Do())
}

// describeAutoForward says to whom all mails would go: an earlier call may have set it while forwarding was off.
func describeAutoForward(ctx context.Context, api *gmail.Service, _ *service.Conn, in autoForwardArgs) (any, error) {
	f, err := in.applied(ctx, api)
	if err != nil || !f.Enabled {
		return "Automatic forwarding: off", err
	}
	return fmt.Sprintf("Automatic forwarding: on, of all mails to %s, which are then treated so: %s", service.QuotedWhole(f.EmailAddress), service.Quoted(f.Disposition)), nil
}

func (in autoForwardArgs) applied(ctx context.Context, api *gmail.Service) (*gmail.AutoForwarding, error) {
	f, err := api.Users.Settings.GetAutoForwarding(me).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	f.Enabled = in.Enabled
	toolgroups.Assign(&f.EmailAddress, in.Email)
	toolgroups.Assign(&f.Disposition, in.Disposition)
	if f.Enabled && f.EmailAddress == "" {
		return nil, service.Invalidf("give email_address, a confirmed forwarding address")
	}
	if f.Enabled && f.Disposition == "" {
		f.Disposition = "leaveInInbox"
	}
	return f, nil
}

func gmailSettingsListDelegates(ctx context.Context, api *gmail.Service, _ *service.Conn, _ struct{}) (any, error) {
	list, err := api.Users.Settings.Delegates.List(me).Context(ctx).Do()
	return listResult("delegates", list, err, func(l *gmail.ListDelegatesResponse) []*gmail.Delegate { return l.Delegates })
}
