package admin

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// People manages who may talk to the bot: [access.Registry].
type People interface {
	// ListPeople returns each user who was let in, has asked for access or was refused.
	ListPeople() []access.Person
	// Settings returns the access that the settings give.
	Settings() access.Access
	// Admit lets a user in, and describes the result.
	Admit(ctx context.Context, author audit.Author, user string, admin bool) (string, error)
	// Revoke takes a user's access away, and describes the result.
	Revoke(ctx context.Context, author audit.Author, user string) (string, error)
}

// Approvals lists and decides the tool calls that wait for approval.
type Approvals interface {
	// Waiting returns the calls that wait, as a user sees them, at most the given number.
	Waiting(ctx context.Context, user string, most int) ([]interact.ApprovalRequest, error)
	// Press presses a button for a user, and reports whether it was accepted.
	Press(ctx context.Context, user, name, data string) (bool, error)
	// PressResult returns the answer to the last press of a button, once its question is decided.
	PressResult(ctx context.Context, data string) (string, error)
}

// OperationsConfig configures the views of [OperationsViews]. Only Now may be nil.
type OperationsConfig struct {
	People    People
	Approvals Approvals
	Store     storage.KV
	// Redact masks texts on the page, and RedactCards texts on cards. If Redact masks more of a
	// question, the question can be denied on the page but not allowed.
	Redact, RedactCards func(string) string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// operations is the state that the views share.
type operations struct {
	OperationsConfig
}

// OperationsViews returns the views of people, approvals and the audit.
func OperationsViews(cfg OperationsConfig) ([]frame.View, error) {
	if cfg.People == nil || cfg.Approvals == nil || cfg.Store == nil || cfg.Redact == nil || cfg.RedactCards == nil {
		return nil, errors.New("admin: people, approvals, a store and functions that mask secrets are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &operations{OperationsConfig: cfg}
	return []frame.View{
		{Path: peopleView, Title: "People", Show: d.people, HandleForm: d.changeAccess},
		{Path: approvalsView, Title: "Approvals", Show: d.approvals, HandleForm: d.decide},
		{Path: auditView, Title: "Audit", Show: d.audit},
	}, nil
}

const (
	peopleView    = "people"
	approvalsView = "approvals"
	auditView     = "audit"
	// maxMessage bounds the result of a form in an address, in characters.
	maxMessage = 300
)

// author returns a visitor as the author of audit entries.
func (d *operations) author(v frame.Visitor) audit.Author {
	return audit.Author{Event: "page-" + rand.Text(), At: d.Now(), By: v.Person, Name: v.Name, Chat: audit.PageChat}
}

// messageURL returns the address of a view that shows a text, without code marks, to the visitor alone.
// The address has the text, because another replica may serve it.
func messageURL(v frame.Visitor, view, text string) string {
	text = wording.Clip(strings.ReplaceAll(text, "`", ""), maxMessage)
	return frame.ViewURL(view, "said", text, "seal", seal(v, text))
}

// message returns the text in the address of a request; none if it is not sealed for the visitor.
func message(r frame.Request) []string {
	text := r.Query.Get("said")
	if text == "" || !hmac.Equal([]byte(r.Query.Get("seal")), []byte(seal(r.Visitor, text))) {
		return nil
	}
	return []string{text}
}

// seal proves that a text in an address is from the bot, in the visitor's session.
func seal(v frame.Visitor, text string) string {
	mac := hmac.New(sha256.New, []byte("said "+v.CSRF))
	_, _ = io.WriteString(mac, text) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (d *operations) people(_ context.Context, r frame.Request) (frame.Page, error) {
	t := &frame.Table{
		Name: "people", Caption: "Who was let in, has asked or was refused", Columns: frame.Columns("Person", "Name", "Standing", "Since", "By", "Change"),
		Empty: "No person was let in from a chat.",
	}
	all := d.People.ListPeople()
	from, _ := strconv.Atoi(r.Query.Get("from"))
	from = min(max(from, 0), len(all))
	if from > 0 {
		t.First = r.Link("from", "")
	}
	if end := from + r.Limit; end < len(all) {
		t.Next = r.Link("from", strconv.Itoa(end))
	}
	for _, one := range all[from:min(from+r.Limit, len(all))] {
		standing := frame.Cell{Text: one.Standing}
		if one.Role < toolgroups.RoleUser {
			standing.Mood = frame.Muted
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(one.User), frame.Text(one.Name), standing, frame.Time(one.Since), frame.Text(one.By), {Forms: personButtons(one)},
		})
	}
	settings := &frame.Table{Name: "settings", Caption: "Allowed by the settings", Columns: frame.Columns("Entry", "May"), Empty: "Nobody."}
	for _, entry := range d.People.Settings().Admins {
		settings.Rows = append(settings.Rows, []frame.Cell{frame.Text(entry), frame.Text("administrate")})
	}
	for _, entry := range d.People.Settings().Allow {
		settings.Rows = append(settings.Rows, []frame.Cell{frame.Text(entry), frame.Text("talk to the bot")})
	}
	add := frame.Form{View: peopleView, Submit: "Let in", Fields: []frame.Field{
		{Name: "user", Label: "Let in a person by their id", Hint: "telegram:123"},
		{Name: "do", Label: "As", Value: "user", Options: []frame.Option{{Value: "user", Label: "a user"}, {Value: "admin", Label: "an administrator"}}},
	}}
	return frame.Page{
		Lead:     "Only the owner makes and removes administrators. A removed person loses access at once, and their running work is stopped.",
		Sections: []frame.Section{{Text: message(r), Forms: []frame.Form{add}, Table: t}, {Title: "By the settings", Table: settings}},
	}, nil
}

// personButtons returns the buttons beside a user.
func personButtons(one access.Person) []frame.Form {
	form := func(do, submit string, danger bool) frame.Form {
		return frame.Form{
			View: peopleView, Submit: submit, About: cmp.Or(one.Name, one.User), Danger: danger,
			Fields: []frame.Field{{Name: "user", Value: one.User}, {Name: "do", Value: do}},
		}
	}
	switch {
	case one.Role >= toolgroups.RoleOwner:
		return nil
	case one.Role >= toolgroups.RoleAdmin:
		return []frame.Form{form("remove", "Remove", true)}
	case one.Role >= toolgroups.RoleUser:
		return []frame.Form{form("admin", "Make administrator", false), form("remove", "Remove", true)}
	}
	return []frame.Form{form("user", "Let in", false)}
}

func (d *operations) changeAccess(ctx context.Context, r frame.Request) (string, error) {
	user := strings.TrimSpace(r.Form.Get("user"))
	var text string
	var err error
	switch r.Form.Get("do") {
	case "user":
		text, err = d.People.Admit(ctx, d.author(r.Visitor), user, false)
	case "admin":
		text, err = d.People.Admit(ctx, d.author(r.Visitor), user, true)
	case "remove":
		text, err = d.People.Revoke(ctx, d.author(r.Visitor), user)
	default:
		return "", frame.ErrNotFound
	}
	if errors.Is(err, storage.ErrConflict) {
		text, err = "That has just changed. Please look again.", nil
	}
	return messageURL(r.Visitor, peopleView, text), err
}
