package bridge

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
	"oneclaw/toolgroups"
)

func whoami(_ context.Context, b *Bridge, j *jobs.Job, _ string) (string, error) {
	m := j.Message
	can := "You may talk to me."
	switch b.role(m) {
	case toolgroups.RoleOwner:
		can = "You are my owner."
	case toolgroups.RoleAdmin:
		can = "You are one of my administrators."
	}
	return fmt.Sprintf("You are `%s:%s`. %s\n\nThis chat is `%s`.", m.Chat.Platform, m.User, can, m.Chat), nil
}

// maxListedPeople bounds the list of /people: it is one message.
const maxListedPeople = 30

const cardPeople = "people"

// peopleCommand lists who may talk to the bot, and changes that.
func peopleCommand(ctx context.Context, b *Bridge, j *jobs.Job, args string) (string, error) {
	m := j.Message
	role := b.role(m)
	if role < toolgroups.RoleAdmin {
		return "Sorry, /people is for my administrators.", nil
	}
	if !m.Direct {
		return "Who may talk to me is nothing for a shared chat: ask me in a direct one.", nil
	}
	by := m.Chat.Platform + ":" + m.User
	words := strings.Fields(args)
	switch {
	case len(words) == 0:
		text, choices := b.listPeople(role)
		return b.answerCard(ctx, j, cards.Card{Kind: cardPeople, Text: text, Choices: choices})
	case len(words) == 2 && words[0] == "remove":
		text, _, err := b.removePerson(ctx, by, role, words[1])
		return text, err
	case len(words) == 2 && (words[0] == "add" || words[0] == "admin"):
		return b.addPerson(ctx, by, role, words[1], words[0] == "admin")
	}
	return peopleUsage, nil
}

const peopleUsage = "`/people` lists who may talk to me. `/people add telegram:123` lets somebody in, " +
	"`/people admin telegram:123` makes them an administrator, `/people remove telegram:123` takes it all back. " +
	"/whoami tells everybody their own id."

// listPeople returns the list, with a button for each whom this role can remove.
func (b *Bridge) listPeople(role toolgroups.Role) (string, [][]cards.Choice) {
	var text strings.Builder
	var choices [][]cards.Choice
	known := b.people.all(func(p person) bool { return p.Standing.role() > toolgroups.RoleStranger })
	for n, p := range known {
		if n == maxListedPeople {
			fmt.Fprintf(&text, "- … and %d more\n", len(known)-n)
			break
		}
		fmt.Fprintf(&text, "- %s – %s since %s\n", p.title(), p.Standing, p.Since.UTC().Format("2 January 2006"))
		if p.Standing != isOwner && role > p.Standing.role() {
			label := wording.OneLine("Remove "+cmp.Or(p.Name, p.User), cards.MaxLabel)
			choices = append(choices, []cards.Choice{{Label: label, Value: p.User, Style: chats.StyleDanger}})
		}
	}
	settings := func(entries []string, as standing) {
		for n, entry := range entries {
			if n < maxListedPeople {
				fmt.Fprintf(&text, "- `%s` – %s, in my settings\n", entry, as)
			}
		}
	}
	settings(b.cfg.Access.Admins, isAdmin)
	settings(b.cfg.Access.Allow, isUser)
	return text.String() + "\n" + peopleUsage, choices
}

// peoplePressed removes somebody whose button was pressed in the list.
func (b *Bridge) peoplePressed(ctx context.Context, press cards.Press) (cards.Result, error) {
	if press.Expired {
		return cards.Result{}, nil
	}
	if press.Role < toolgroups.RoleAdmin {
		return cards.Result{Toast: "Sorry, this is for my administrators."}, nil
	}
	_, toast, err := b.removePerson(ctx, press.User, press.Role, press.Choice)
	if err != nil {
		return cards.Result{}, err
	}
	text, choices := b.listPeople(press.Role)
	return cards.Result{Toast: toast, Text: text, Choices: choices, Close: len(choices) == 0}, nil
}

// removePerson takes back what was given to somebody in a chat. It holds at once: what
// they asked for and is not answered yet is not answered any more. It returns what has
// come of it, in Markdown and in plain words.
func (b *Bridge) removePerson(ctx context.Context, by string, role toolgroups.Role, user string) (text, plain string, err error) {
	b.people.changing.Lock()
	defer b.people.changing.Unlock()
	one, known := b.people.find(user)
	inSettings := b.configured(user) > toolgroups.RoleStranger
	refusal := ""
	switch {
	case !known && !inSettings:
		refusal = "I do not know them. /people lists who may talk to me."
	case one.Standing == isOwner:
		refusal = "My owner can not be removed."
	case known && role <= one.Standing.role():
		refusal = "Only my owner can remove an administrator."
	}
	if refusal != "" {
		return refusal, refusal, nil
	}
	if known {
		if err := b.people.bar(ctx, one, by, b.cfg.Now()); err != nil {
			return "", "", err
		}
		b.log.Info("person removed", "user", user, "by", by)
	}
	if inSettings {
		return fmt.Sprintf("`%s` is let in by my settings (ONECLAW_ALLOW, ONECLAW_ADMINS); it has to be changed there.", user),
			"My settings let them in: change ONECLAW_ALLOW or ONECLAW_ADMINS.", nil
	}
	b.lanes.Expel(user, errBarred)
	return one.title() + " may not talk to me any more. What was running for them is stopped.", "Removed.", nil
}

// configured is what the settings give a user, platform:id.
func (b *Bridge) configured(user string) toolgroups.Role {
	platform, id, _ := strings.Cut(user, ":")
	return b.cfg.Access.Role(platform, id)
}

// addPerson lets somebody in, or makes them an administrator, who was named by their id.
func (b *Bridge) addPerson(ctx context.Context, by string, role toolgroups.Role, user string, admin bool) (string, error) {
	chat, err := chats.ParseChat(user)
	if err != nil || chat.Thread != "" || b.platforms[chat.Platform] == nil {
		return "Name a person by platform and id, such as `telegram:123`. /whoami tells everybody their own.", nil //nolint:nilerr // it is told to the person
	}
	if strings.Contains(chat.ID, "*") {
		return fmt.Sprintf("`%s` names nobody: I let people in one by one. Only my settings (ONECLAW_ALLOW) can let everybody in.", user), nil
	}
	if namer, ok := b.platforms[chat.Platform].(chats.UserNamer); ok && !namer.NamesUser(chat.ID) {
		return fmt.Sprintf("Nobody there can have the id `%s`. /whoami tells everybody their own.", user), nil
	}
	if admin && role < toolgroups.RoleOwner {
		return "Only my owner can make an administrator.", nil
	}
	b.people.changing.Lock()
	defer b.people.changing.Unlock()
	one, _ := b.people.find(user)
	given := isUser
	if admin {
		given = isAdmin
	}
	if max(one.Standing.role(), b.configured(user)) >= given.role() {
		return fmt.Sprintf("`%s` can do that already. `/people` lists who may talk to me.", user), nil
	}
	if one.Standing == hasAsked {
		if err := b.void(ctx, one.Card, "_Let in with /people._"); err != nil {
			return "", err
		}
	} else {
		one.User, one.Since, one.Card = user, b.cfg.Now(), ""
	}
	if err := b.letIn(ctx, one, given, by); err != nil {
		return "", err
	}
	if admin {
		return one.title() + " is an administrator now.", nil
	}
	return one.title() + " may talk to me now.", nil
}
