package bridge

import (
	"context"
	"fmt"
	"strings"

	"oneclaw/toolgroups"
)

func whoami(_ context.Context, b *Bridge, _ *lane, j *Job, _ string) (string, error) {
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

// maxListedPeople bounds the list of /people.
const maxListedPeople = 50

// peopleCommand lists who may talk to the bot, and changes that.
func peopleCommand(ctx context.Context, b *Bridge, _ *lane, j *Job, args string) (string, error) {
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
		return b.listPeople(), nil
	case len(words) == 2 && words[0] == "remove":
		return b.removePerson(ctx, by, role, words[1])
	case len(words) == 2 && (words[0] == "add" || words[0] == "admin"):
		return b.addPerson(ctx, by, role, words[1], words[0] == "admin")
	}
	return peopleUsage, nil
}

const peopleUsage = "`/people` lists who may talk to me. `/people add telegram:123` lets somebody in, " +
	"`/people admin telegram:123` makes them an administrator, `/people remove telegram:123` takes it all back. " +
	"/whoami tells everybody their own id."

func (b *Bridge) listPeople() string {
	var text strings.Builder
	known := b.people.all(func(p person) bool { return p.Standing.role() > toolgroups.RoleStranger })
	for n, p := range known {
		if n == maxListedPeople {
			fmt.Fprintf(&text, "- … and %d more\n", len(known)-n)
			break
		}
		fmt.Fprintf(&text, "- %s – %s since %s\n", p.title(), p.Standing, p.Since.UTC().Format("2 January 2006"))
	}
	for _, entry := range b.cfg.Access.Admins {
		fmt.Fprintf(&text, "- `%s` – admin, in my settings\n", entry)
	}
	for _, entry := range b.cfg.Access.Allow {
		fmt.Fprintf(&text, "- `%s` – user, in my settings\n", entry)
	}
	return text.String() + "\n" + peopleUsage
}

// removePerson takes back what was given to somebody in a chat. It holds at once: what
// they asked for and is not answered yet is not answered any more.
func (b *Bridge) removePerson(ctx context.Context, by string, role toolgroups.Role, user string) (string, error) {
	b.people.changing.Lock()
	defer b.people.changing.Unlock()
	one, known := b.people.find(user)
	configured := b.configured(user)
	switch {
	case !known && configured > toolgroups.RoleStranger:
		return inSettings(user), nil
	case !known:
		return fmt.Sprintf("I do not know `%s`. `/people` lists who may talk to me.", shorten(user, maxCalled)), nil
	case one.Standing == isOwner:
		return "My owner can not be removed.", nil
	case role <= one.Standing.role():
		return "Only my owner can remove an administrator.", nil
	}
	if err := b.people.remove(ctx, user); err != nil {
		return "", err
	}
	if configured > toolgroups.RoleStranger {
		return inSettings(user), nil
	}
	b.expel(user)
	b.log.Info("person removed", "user", user, "by", by)
	return one.title() + " may not talk to me any more. What was running for them is stopped.", nil
}

func inSettings(user string) string {
	return fmt.Sprintf("`%s` is let in by my settings (ONECLAW_ALLOW, ONECLAW_ADMINS); it has to be changed there.", user)
}

// configured is what the settings give a user, platform:id.
func (b *Bridge) configured(user string) toolgroups.Role {
	platform, id, _ := strings.Cut(user, ":")
	return b.cfg.Access.Role(platform, id)
}

// addPerson lets somebody in, or makes them an administrator, who was named by their id.
func (b *Bridge) addPerson(ctx context.Context, by string, role toolgroups.Role, user string, admin bool) (string, error) {
	chat, err := ParseChat(user)
	if err != nil || chat.Thread != "" || b.platforms[chat.Platform] == nil {
		return "Name a person by platform and id, such as `telegram:123`. /whoami tells everybody their own.", nil //nolint:nilerr // it is told to the person
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
	one = person{User: user, Name: one.Name, Chat: one.Chat, Standing: given, By: by, Since: b.cfg.Now()}
	if err := b.people.put(ctx, one); err != nil {
		return "", err
	}
	b.log.Info("person let in", "user", user, "standing", string(given), "by", by)
	if admin {
		return one.title() + " is an administrator now.", nil
	}
	return one.title() + " may talk to me now.", nil
}
