package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Commands returns the registry's chat commands.
func (d *Registry) Commands() []queue.Command {
	return []queue.Command{
		{CommandInfo: chats.CommandInfo{Name: "whoami", Description: "Your id and what you may do"}, Ephemeral: true, Run: d.handleWhoami},
		{CommandInfo: chats.CommandInfo{Name: "people", Description: "Who may talk to me: list and remove", Admin: true}, Ephemeral: true, Run: d.handlePeople},
		{CommandInfo: chats.CommandInfo{Name: claimCommand, Description: "Make me yours", Personal: true}, Hidden: true, Public: true, Run: d.claimBot},
	}
}

func (d *Registry) handleWhoami(_ context.Context, j *queue.Run, _ string) (string, error) {
	can := "You may talk to me."
	switch d.Role(j.Message.SenderID()) {
	case toolgroups.RoleOwner:
		can = "You are my owner."
	case toolgroups.RoleAdmin:
		can = "You are one of my administrators."
	}
	return fmt.Sprintf("You are `%s`. %s\n\nThis chat is `%s`.", j.Message.SenderID(), can, j.Message.Chat), nil
}

const cardPeople = "people"

const peopleUsage = "`/people` lists who may talk to me. `/people add telegram:123` lets a person in, " +
	"`/people admin telegram:123` makes them an administrator, `/people remove telegram:123` takes all of that back. " +
	"/whoami shows each person their own id."

func (d *Registry) handlePeople(ctx context.Context, j *queue.Run, args string) (string, error) {
	role := d.Role(j.Message.SenderID())
	if role < toolgroups.RoleAdmin {
		return "Sorry, /people is for my administrators.", nil
	}
	if !j.Message.Direct {
		return "I do not show in a shared chat who may talk to me. Please ask me in a direct chat.", nil
	}
	verb, user, _ := strings.Cut(strings.Join(strings.Fields(args), " "), " ")
	switch {
	case verb == "":
		text, choices := d.renderList(role)
		return d.cfg.Cards.Answer(ctx, j, interact.Card{Kind: cardPeople, Text: text, Choices: choices})
	case user == "" || strings.Contains(user, " "):
		return peopleUsage, nil
	case verb == "add":
		return d.add(ctx, j.Author(d.cfg.Store), role, user, standingUser)
	case verb == "admin":
		return d.add(ctx, j.Author(d.cfg.Store), role, user, standingAdmin)
	case verb == "remove":
		return d.Revoke(ctx, j.Author(d.cfg.Store), user)
	}
	return peopleUsage, nil
}

// handlePeoplePress lets in or removes the user whose button an administrator pressed in the list.
func (d *Registry) handlePeoplePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	if press.Expired {
		return interact.Result{}, nil
	}
	if press.Role < toolgroups.RoleAdmin {
		return interact.Result{Toast: "Sorry, this is for my administrators."}, nil
	}
	toast, err := d.applyPress(ctx, press)
	if err != nil {
		return interact.Result{}, err
	}
	text, choices := d.renderList(press.Role)
	return interact.Result{Toast: toast, Text: text, Choices: choices, Close: len(choices) == 0}, nil
}

// applyPress lets in or removes a user, and returns a short result.
func (d *Registry) applyPress(ctx context.Context, press interact.Press) (string, error) {
	if user, admits := strings.CutPrefix(press.Choice, choiceLetIn); admits {
		if _, err := d.add(ctx, press.Author, press.Role, user, standingUser); err != nil || d.Role(user) > toolgroups.RoleStranger {
			return "They may talk to me now.", err
		}
		return "They cannot talk to me: I am not on their platform.", nil
	}
	_, refusal, err := d.remove(ctx, press.Author, press.Role, press.Choice)
	return cmp.Or(refusal, "Removed. "+whatRests), err
}

// maxListed bounds the lines of the list, and its buttons, so that the list fits into one message.
const maxListed = 30

// choiceLetIn begins the choice that lets in a user who has asked.
const choiceLetIn = "+"

// renderList returns users and settings as text, with a button for each user who has asked, and for each
// whom this role can remove.
func (d *Registry) renderList(role toolgroups.Role) (string, [][]interact.Choice) {
	var lines []string
	var choices [][]interact.Choice
	now := d.cfg.Now()
	for _, p := range d.register.filter(func(p person) bool { return p.hasAsked(now) }) {
		lines = append(lines, "- "+p.displayName()+" – waits to be let in")
		if len(choices) < maxListed {
			label := wording.OneLine("Let in "+cmp.Or(p.Name, p.User), interact.MaxLabel)
			choices = append(choices, []interact.Choice{{Label: label, Value: choiceLetIn + p.User, Style: chats.StylePrimary}})
		}
	}
	for _, p := range d.register.withRole(toolgroups.RoleUser) {
		lines = append(lines, fmt.Sprintf("- %s – %s since %s", p.displayName(), p.Standing, p.Since.UTC().Format("2 January 2006")))
		if len(choices) < maxListed && role > p.Standing.role() {
			label := wording.OneLine("Remove "+cmp.Or(p.Name, p.User), interact.MaxLabel)
			choices = append(choices, []interact.Choice{{Label: label, Value: p.User, Style: chats.StyleDanger}})
		}
	}
	for _, entry := range d.cfg.Access.Admins {
		lines = append(lines, fmt.Sprintf("- `%s` – %s, in my settings", entry, standingAdmin))
	}
	for _, entry := range d.cfg.Access.Allow {
		lines = append(lines, fmt.Sprintf("- `%s` – %s, in my settings", entry, standingUser))
	}
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("- … and %d more", more))
	}
	return strings.Join(lines, "\n") + "\n\n" + peopleUsage, choices
}

// remove revokes at once what a user was granted in a chat, and cancels the user's jobs unless the
// settings still let the user in. The refusal says why no user was removed, or that the settings decide.
func (d *Registry) remove(ctx context.Context, author audit.Author, role toolgroups.Role, user string) (one person, refusal string, err error) {
	d.changeMu.Lock()
	defer d.changeMu.Unlock()
	if err := d.register.refresh(ctx, user); err != nil {
		return one, "", err
	}
	one = d.register.find(user)
	known, inSettings := one.User != "", d.cfg.Access.Role(user) > toolgroups.RoleStranger
	switch {
	case !known && !inSettings:
		return one, "I do not know them. /people lists who may talk to me.", nil
	case one.Standing == standingOwner:
		return one, "My owner cannot be removed.", nil
	case role <= one.Standing.role():
		return one, "Only my owner can remove an administrator.", nil
	}
	if known {
		if err := author.Record(ctx, "remove", user); err != nil {
			return one, "", err
		}
		if err := d.register.revoke(ctx, one, author.By, d.cfg.Now()); err != nil {
			return one, "", err
		}
		if !inSettings {
			d.cfg.Jobs.CancelUser(user)
		}
		if err := interact.ForgetLasting(ctx, d.cfg.Store, user); err != nil {
			return one, "", err
		}
		if d.cfg.OnRemoved != nil {
			if err := d.cfg.OnRemoved(ctx, user); err != nil {
				return one, "", err
			}
		}
		d.cfg.Log.Info("person removed", "user", user, "by", author.By)
	}
	if inSettings {
		return one, "My settings allow them: change ONECLAW_ALLOW or ONECLAW_ADMINS.", nil
	}
	return one, "", nil
}

// add admits a user by id, or makes the user an administrator.
func (d *Registry) add(ctx context.Context, author audit.Author, role toolgroups.Role, user string, as standing) (string, error) {
	if refusal := d.checkUserID(user); refusal != "" {
		return refusal, nil
	}
	if as == standingAdmin && role < toolgroups.RoleOwner {
		return "Only my owner can make an administrator.", nil
	}
	d.changeMu.Lock()
	defer d.changeMu.Unlock()
	if err := d.register.refresh(ctx, user); err != nil {
		return "", err
	}
	one := d.register.find(user)
	if d.Role(user) >= as.role() && one.Message == nil { // otherwise an earlier attempt was interrupted
		return fmt.Sprintf("`%s` can do that already. `/people` lists who may talk to me.", user), nil
	}
	again := ""
	if one.Standing == standingRefused {
		again = " If they could before, their schedules, webhooks and accounts go on."
	}
	switch {
	case one.Standing == standingAsked && one.Card != "":
		if err := d.cfg.Cards.Invalidate(ctx, one.Card, "_Let in with /people._"); err != nil {
			return "", err
		}
	case one.Message == nil && one.Standing != standingAsked:
		one.User, one.Since, one.Card = user, d.cfg.Now(), ""
	}
	if one.Standing.role() > as.role() { // an interrupted attempt of the owner's
		as = one.Standing
	}
	if err := d.admit(ctx, one, as, author); err != nil {
		return "", err
	}
	if as == standingAdmin {
		return one.displayName() + " is an administrator now." + again, nil
	}
	return one.displayName() + " may talk to me now." + again, nil
}

// checkUserID returns why a text is not the id of one user; empty if it is.
func (d *Registry) checkUserID(user string) string {
	chat, err := chats.ParseChat(user)
	platform := d.cfg.Platforms[chat.Platform]
	switch {
	case err != nil || chat.Thread != "" || platform == nil:
		return "Name a person by platform and id, such as `telegram:123`. /whoami shows each person their own id."
	case strings.Contains(chat.ID, "*"):
		return fmt.Sprintf("`%s` is not a person: I let people in one by one. Only my settings (ONECLAW_ALLOW) can let everyone in.", user)
	case !d.IsPerson(user):
		return fmt.Sprintf("No person there can have the id `%s`. /whoami shows each person their own id.", user)
	}
	return ""
}

// IsPerson implements [interact.Roles].
func (d *Registry) IsPerson(user string) bool {
	platform, id, _ := strings.Cut(user, ":")
	checker, checks := d.cfg.Platforms[platform].(chats.UserIDChecker)
	return !checks || checker.IsUserID(id)
}

// Administrators returns the ids of the bot's administrators on a platform, including the owner; "*"
// stands for an entry platform:*.
func (d *Registry) Administrators(platform string) []string {
	var ids []string
	add := func(user string) {
		if id, ok := strings.CutPrefix(user, platform+":"); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, entry := range d.cfg.Access.Admins {
		add(entry)
	}
	for _, one := range d.register.withRole(toolgroups.RoleAdmin) {
		add(one.User)
	}
	return ids
}
