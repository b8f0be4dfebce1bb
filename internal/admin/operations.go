package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/cache"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// People is who may talk to the bot: [access.Registry].
type People interface {
	// ListPeople returns each user who was let in, has asked or was refused.
	ListPeople() []access.Person
	// Settings are who may by the settings.
	Settings() access.Access
	// Admit lets a user in, and says what came of it.
	Admit(ctx context.Context, author audit.Author, user string, admin bool) (string, error)
	// Revoke takes that back, and says what came of it.
	Revoke(ctx context.Context, author audit.Author, user string) (string, error)
}

// Approvals are the calls that wait: those of the bridge.
type Approvals interface {
	// Waiting returns at most so many, as they are for a user.
	Waiting(ctx context.Context, user string, most int) ([]interact.ApprovalRequest, error)
	// Press presses a button for a user, and reports whether it was taken.
	Press(ctx context.Context, user, name, data string) (bool, error)
	// Told returns what the last press of a question was told, once that is over.
	Told(ctx context.Context, data string) (string, error)
}

// OperationsConfig is what the views are made of.
type OperationsConfig struct {
	People    People
	Approvals Approvals
	Store     storage.KV
	// Redact is what the page masks texts with, and RedactCards what cards are masked with:
	// where they differ, a question is not seen whole.
	Redact, RedactCards func(string) string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// views has what the views share.
type views struct {
	OperationsConfig

	// said is what an administrator is told after a form, by a random name.
	said *cache.Cache[string, string]
}

// OperationsViews makes the views.
func OperationsViews(cfg OperationsConfig) ([]frame.View, error) {
	if cfg.People == nil || cfg.Approvals == nil || cfg.Store == nil || cfg.Redact == nil || cfg.RedactCards == nil {
		return nil, errors.New("admin: people, approvals, a store and what masks secrets are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &views{OperationsConfig: cfg, said: cache.New[string, string](100)}
	return []frame.View{
		{Path: peopleView, Title: "People", Show: d.people, Do: d.change},
		{Path: approvalsView, Title: "Approvals", Show: d.approvals, Do: d.decide},
		{Path: auditView, Title: "Audit", Show: d.audit},
	}, nil
}

const (
	peopleView    = "people"
	approvalsView = "approvals"
	auditView     = "audit"
	// saidAge is how long an administrator can be told what came of a form.
	saidAge = 10 * time.Minute
)

// author is what a visitor does.
func (d *views) author(v frame.Visitor) audit.Author {
	return audit.Author{Event: "page-" + rand.Text(), At: d.Now(), By: v.Person, Name: v.Name, Chat: audit.Page}
}

// tell returns where a view tells a text, without marks of Markdown.
func (d *views) tell(view, text string) string {
	name := rand.Text()
	d.said.Put(name, strings.ReplaceAll(text, "`", ""), saidAge)
	return frame.To(view, "said", name)
}

// told is what a view has to tell.
func (d *views) told(r frame.Request) []string {
	if text, ok := d.said.Get(r.Query.Get("said")); ok {
		return []string{text}
	}
	return nil
}

func (d *views) people(_ context.Context, r frame.Request) (frame.Page, error) {
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
			standing.Mood = frame.Soft
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(one.User), frame.Text(one.Name), standing, frame.At(one.Since), frame.Text(one.By), {Forms: changes(one)},
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
		Sections: []frame.Section{{Text: d.told(r), Forms: []frame.Form{add}, Table: t}, {Title: "By the settings", Table: settings}},
	}, nil
}

// changes are the buttons beside a user.
func changes(one access.Person) []frame.Form {
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

func (d *views) change(ctx context.Context, r frame.Request) (string, error) {
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
	return d.tell(peopleView, text), err
}
