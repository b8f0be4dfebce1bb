package access

import (
	"fmt"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// Access lists who may talk to the bot. It is closed by default: an empty Access lets no user in.
//
// Each entry is platform:id for one user, platform:* for all users of a platform, or * for all users
// except those from another workspace (see [chats.Message.User]).
type Access struct {
	// Allow lists the users who may talk to the bot.
	Allow []string
	// Admins lists the users who may also clear shared chats and change the configuration.
	Admins []string
}

// Validate returns an error that names the first entry without one of the forms that [Access] describes.
func (a Access) Validate() error {
	for _, list := range [][]string{a.Allow, a.Admins} {
		for _, entry := range list {
			platform, id, ok := strings.Cut(entry, ":")
			if entry != "*" && (!ok || platform == "" || id == "" || strings.ContainsAny(entry, " /")) {
				return fmt.Errorf("access: %q is not of the form telegram:123, telegram:* or *", entry)
			}
		}
	}
	return nil
}

// Empty reports whether the lists let no user in.
func (a Access) Empty() bool { return len(a.Allow) == 0 && len(a.Admins) == 0 }

// Role returns the role that the lists give to a user, platform:id. Users from outside the platform's
// workspace need an entry of their own.
func (a Access) Role(user string) toolgroups.Role {
	platform, id, _ := strings.Cut(user, ":")
	entries := []string{user}
	if !strings.Contains(id, "@") {
		entries = append(entries, platform+":*", "*")
	}
	names := func(entry string) bool { return slices.Contains(entries, entry) }
	switch {
	case id == "":
		return toolgroups.RoleStranger
	case slices.ContainsFunc(a.Admins, names):
		return toolgroups.RoleAdmin
	case slices.ContainsFunc(a.Allow, names):
		return toolgroups.RoleUser
	}
	return toolgroups.RoleStranger
}
