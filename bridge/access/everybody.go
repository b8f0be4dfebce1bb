package access

import (
	"context"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/toolgroups"
)

// Person is a user with a standing.
type Person struct {
	// User is platform:id, Name what the platform calls them.
	User, Name string
	// Standing is owner, admin, user, asked or refused; By is who decided that.
	Standing, By string
	Since        time.Time
	// Until is when a standing without a role ends.
	Until time.Time
	// Role is what they may do.
	Role toolgroups.Role
}

// Everybody returns each user who was let in, has asked or was refused, the highest role first.
func (d *Registry) Everybody() []Person {
	now := d.cfg.Now()
	var all []Person
	for _, one := range d.register.all(func(one person) bool { return one.User != "" && !one.over(now) }) {
		all = append(all, Person{
			User: one.User, Name: one.Name, Standing: string(one.Standing), By: one.By, Since: one.Since, Until: one.Until, Role: d.Role(one.User),
		})
	}
	return all
}

// Settings are who may talk to the bot by its settings.
func (d *Registry) Settings() Access { return d.cfg.Access }

// Give lets a person in as a user or an administrator, as far as who does it may, and says what
// came of it in Markdown.
func (d *Registry) Give(ctx context.Context, author audit.Author, user string, admin bool) (string, error) {
	as := isUser
	if admin {
		as = isAdmin
	}
	return d.do(ctx, author, func(author audit.Author, role toolgroups.Role) (string, error) {
		return d.add(ctx, author, role, user, as)
	})
}

// Take takes back what a user was allowed in a chat, and says what came of it.
func (d *Registry) Take(ctx context.Context, author audit.Author, user string) (string, error) {
	return d.do(ctx, author, func(author audit.Author, role toolgroups.Role) (string, error) {
		one, refusal, err := d.remove(ctx, author, role, user)
		if err != nil || refusal != "" {
			return refusal, err
		}
		return one.title() + " may no longer talk to me. Their running work is stopped.", nil
	})
}

// do does something for an administrator, whose role is that of this moment.
func (d *Registry) do(ctx context.Context, author audit.Author, f func(audit.Author, toolgroups.Role) (string, error)) (string, error) {
	if err := d.look(ctx, author.By); err != nil {
		return "", err
	}
	role := d.Role(author.By)
	if role < toolgroups.RoleAdmin {
		return "This is for my administrators.", nil
	}
	author.KV = d.cfg.Store
	return f(author, role)
}
