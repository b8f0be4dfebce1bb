package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	peopleView = "people"
	// pressPause and pressTries bound the wait for the answer to a button: a press is worked on like one in
	// the chat.
	pressPause, pressTries = 50 * time.Millisecond, 40
	// maxName bounds a name in a sentence, in characters.
	maxName = 80
)

// people shows the calls that wait for approval and who may talk to the bot. With a form it decides about one.
func (p *Pages) people(ctx context.Context, r request) (page, error) {
	shown := page{Lead: "What you may decide in the chat you may decide here. Only the owner makes and removes administrators. A removed person loses access at once, and their running work is stopped."}
	if r.form != nil {
		said, err := p.decide(ctx, r)
		if err != nil {
			return page{}, err
		}
		shown.Sections = append(shown.Sections, section{Text: []string{strings.ReplaceAll(said, "`", "")}})
	}
	calls, err := p.waitingCalls(ctx, r)
	if err != nil {
		return page{}, err
	}
	names, err := p.approvalNames(ctx, calls)
	if err != nil {
		return page{}, err
	}
	for _, q := range calls {
		shown.Sections = append(shown.Sections, p.approvalSection(q, names))
	}
	if len(calls) == 0 {
		shown.Sections = append(shown.Sections, section{Title: "Approvals", Text: []string{"No call of a tool waits for a person."}})
	}
	settings, err := p.settingsSection(ctx)
	shown.Sections = append(shown.Sections, p.peopleSection(r), settings)
	return shown, err
}

// waitingCalls returns the calls that wait, first those that the visitor may decide, then by when they expire.
func (p *Pages) waitingCalls(ctx context.Context, r request) ([]interact.ApprovalRequest, error) {
	calls, err := p.Approvals.Waiting(ctx, r.visitor.User, maxScanned)
	rank := func(q interact.ApprovalRequest) int {
		if q.DenyData == "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(calls, func(a, b interact.ApprovalRequest) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Expires.Compare(b.Expires))
	})
	return calls[:min(len(calls), maxRows)], err
}

// approvalNames returns the names of those who wait for calls, and of the chats.
func (p *Pages) approvalNames(ctx context.Context, calls []interact.ApprovalRequest) (map[string]string, error) {
	var ids []string
	for _, q := range calls {
		if ids = append(ids, q.Requester); !q.Direct {
			ids = append(ids, q.Chat.WithoutThread().String())
		}
	}
	return p.names(ctx, ids...)
}

// approvalID returns the id of the section with a call.
func approvalID(q interact.ApprovalRequest) string {
	return "approval-" + queue.Hash(q.Chat.String(), q.Tool, q.Expires.String())
}

// placeName returns the name of the chat in which a call waits.
func placeName(q interact.ApprovalRequest, names map[string]string) string {
	if q.Direct {
		return "direct chat"
	}
	return names[q.Chat.WithoutThread().String()]
}

// approvalSection shows a call with its exact arguments, and the buttons. A call of which the page
// masks a part can be denied here but allowed only in the chat: an approver must see all of it.
func (p *Pages) approvalSection(q interact.ApprovalRequest, names map[string]string) section {
	place := placeName(q, names)
	if !q.Direct {
		place = wording.Quote(place, maxName)
	}
	about := fmt.Sprintf("%s for %s, in: %s", q.Tool, wording.Quote(names[q.Requester], maxName), place) // people choose both names
	press := func(submit, data string, danger bool) form {
		return form{View: peopleView, Submit: submit, About: about, Danger: danger, Fields: []field{{Name: "press", Value: data}}}
	}
	s := section{ID: approvalID(q), Title: "Approval: " + about, Facts: []fact{{"Until", at(q.Expires)}}}
	if q.DenyData == "" {
		s.Text = []string{"You may not decide this."}
		return s
	}
	onCard := p.RedactCards(q.Text)
	s.Quotes = []quote{{Text: onCard, Markdown: true}}
	switch {
	case q.AllowData == "":
	case p.masks(onCard):
		s.Text = []string{"Something in it looks like a secret and is masked here. To allow it, look at the question in the chat."}
	default:
		s.Forms = []form{press("Allow once", q.AllowData, false)}
	}
	s.Forms = append(s.Forms, press("Deny", q.DenyData, true))
	return s
}

func (p *Pages) peopleSection(r request) section {
	t := &table{Caption: "Who was let in, has asked or was refused", Columns: columns("Person", "Standing", "Since", "By", "Change"), Empty: "No person was let in from a chat."}
	all := p.People.ListPeople()
	from, _ := strconv.Atoi(r.query.Get("from"))
	from = min(max(from, 0), len(all))
	if from > 0 {
		t.First = r.link("from", "")
	}
	if end := from + maxRows; end < len(all) {
		t.Next = r.link("from", strconv.Itoa(end))
	}
	names := map[string]string{}
	for _, one := range all {
		names[one.User] = one.Name
	}
	for _, one := range all[from:min(from+maxRows, len(all))] {
		standing := text(one.Standing)
		if one.Role < toolgroups.RoleUser {
			standing.Mood = muted
		}
		t.Rows = append(t.Rows, []cell{text(labelled(one.Name, one.User)), standing, at(one.Since), text(cmp.Or(names[one.By], one.By)), {Forms: personButtons(one)}})
	}
	add := form{View: peopleView, Submit: "Let in", Fields: []field{
		{Name: "user", Label: "Let in a person by their id", Hint: "telegram:123"},
		{Name: "do", Label: "As", Value: "user", Options: []option{{"user", "a user"}, {"admin", "an administrator"}}},
	}}
	return section{ID: peopleView, Title: "People", Forms: []form{add}, Table: t}
}

func (p *Pages) settingsSection(ctx context.Context) (section, error) {
	t := &table{Caption: "Allowed by the settings", Columns: columns("Entry", "May"), Empty: "No one."}
	given := p.People.Settings()
	entries := slices.Concat(given.Admins, given.Allow)
	names, err := p.names(ctx, slices.DeleteFunc(slices.Clone(entries), func(entry string) bool { return strings.HasSuffix(entry, "*") })...)
	for i, entry := range entries {
		may := "administrate"
		if i >= len(given.Admins) {
			may = "talk to the bot"
		}
		t.Rows = append(t.Rows, []cell{text(labelled(names[entry], entry)), text(may)})
	}
	return section{Title: "By the settings", Table: t}, err
}

// personButtons returns the buttons beside a user.
func personButtons(one access.Person) []form {
	change := func(do, submit string, danger bool) form {
		return form{View: peopleView, Submit: submit, About: cmp.Or(one.Name, one.User), Danger: danger, Fields: []field{{Name: "user", Value: one.User}, {Name: "do", Value: do}}}
	}
	switch {
	case one.Role >= toolgroups.RoleOwner:
		return nil
	case one.Role >= toolgroups.RoleAdmin:
		return []form{change("remove", "Remove", true)}
	case one.Role >= toolgroups.RoleUser:
		return []form{change("admin", "Make administrator", false), change("remove", "Remove", true)}
	}
	return []form{change("user", "Let in", false)}
}

// decide presses a button of a question, or changes who may talk to the bot, and describes the result.
func (p *Pages) decide(ctx context.Context, r request) (said string, err error) {
	v, user := r.visitor, strings.TrimSpace(r.form.Get("user"))
	author := audit.Author{Event: "page-" + rand.Text(), At: p.Now(), By: v.User, Name: v.Name, Chat: audit.PageChat}
	switch {
	case r.form.Has("press"):
		return p.press(ctx, r)
	case r.form.Get("do") == "user":
		said, err = p.People.Admit(ctx, author, user, false)
	case r.form.Get("do") == "admin":
		said, err = p.People.Admit(ctx, author, user, true)
	case r.form.Get("do") == "remove":
		said, err = p.People.Revoke(ctx, author, user)
	default:
		return "", errNotFound
	}
	if errors.Is(err, storage.ErrConflict) {
		return "That has just changed. Please look again.", nil
	}
	return said, err
}

func (p *Pages) press(ctx context.Context, r request) (string, error) {
	data := r.form.Get("press")
	taken, err := p.Approvals.Press(ctx, r.visitor.User, r.visitor.Name, data)
	if err != nil {
		return "", err
	}
	if !taken {
		return "That question is over, or not yours to decide.", nil
	}
	for range pressTries {
		if said, err := p.Approvals.PressResult(ctx, data); err != nil || said != "" {
			return "The question was answered: " + said, err
		}
		if err := retry.Wait(ctx, pressPause); err != nil {
			return "", err
		}
	}
	return "Your decision is being carried out: reload this page in a moment.", nil
}
