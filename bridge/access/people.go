package access

import (
	"context"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/toolgroups"
)

// Person is a user with a standing.
type Person struct {
	// User is the user as platform:id, Name the user's name on the platform.
	User, Name string
	// Standing is owner, admin, user, asked or refused; By is the user who decided it.
	Standing, By string
	Since        time.Time
	// Until is when a standing without a role expires.
	Until time.Time
	// Role is the user's current role, which the settings may raise above that of the standing.
	Role toolgroups.Role
}

// ListPeople returns each user who was admitted, has asked or was refused, the highest role first.
func (d *Registry) ListPeople() []Person {
	now := d.cfg.Now()
	var all []Person
	for _, one := range d.register.filter(func(one person) bool { return one.User != "" && !one.isExpired(now) }) {
		all = append(all, Person{
			User: one.User, Name: one.Name, Standing: string(one.Standing), By: one.By, Since: one.Since, Until: one.Until, Role: d.Role(one.User),
		})
	}
	return all
}

// Settings returns the access that the settings grant.
func (d *Registry) Settings() Access { return d.cfg.Access }

// Admit admits a user, or makes them an administrator, if the author's role allows it. It returns the
// result as Markdown.
func (d *Registry) Admit(ctx context.Context, author audit.Author, user string, admin bool) (string, error) {
	as := standingUser
	if admin {
		as = standingAdmin
	}
	return d.runAsAdmin(ctx, author, func(author audit.Author, role toolgroups.Role) (string, error) {
		return d.add(ctx, author, role, user, as)
	})
}

// whatRests says what a removal leaves behind, of which nothing else would tell whoever lets that person in again.
const whatRests = "Their schedules, webhooks and accounts rest, and go on if they are let in again."

// Revoke revokes what a user was granted in a chat, if the author's role allows it. It returns the
// result as Markdown.
func (d *Registry) Revoke(ctx context.Context, author audit.Author, user string) (string, error) {
	return d.runAsAdmin(ctx, author, func(author audit.Author, role toolgroups.Role) (string, error) {
		one, refusal, err := d.remove(ctx, author, role, user)
		if err != nil || refusal != "" {
			return refusal, err
		}
		return one.displayName() + " may no longer talk to me. Their running work is stopped. " + whatRests, nil
	})
}

// runAsAdmin runs f with the author's current role. If the author is no administrator, it returns a
// refusal instead.
func (d *Registry) runAsAdmin(ctx context.Context, author audit.Author, f func(audit.Author, toolgroups.Role) (string, error)) (string, error) {
	if err := d.register.refresh(ctx, author.By); err != nil {
		return "", err
	}
	role := d.Role(author.By)
	if role < toolgroups.RoleAdmin {
		return "This is for my administrators.", nil
	}
	author.KV = d.cfg.Store
	return f(author, role)
}
