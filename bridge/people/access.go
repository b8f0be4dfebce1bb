package people

import (
	"fmt"
	"strings"

	"oneclaw/toolgroups"
)

// Access says who may talk to the bot. It is closed by default: an empty Access lets
// nobody in.
//
// Each entry is platform:id for one user, platform:* for everybody on a platform, or
// * for everybody but those from another workspace (see [chats.Message.User]).
type Access struct {
	// Allow lists who may talk to the bot.
	Allow []string
	// Admins lists who may clear shared chats and configure; they may talk, too.
	Admins []string
}

// Validate reports the first entry that is none of the three forms.
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

// Empty reports whether nobody may talk to the bot.
func (a Access) Empty() bool { return len(a.Allow) == 0 && len(a.Admins) == 0 }

// Role returns what a user of a platform may do.
func (a Access) Role(platform, user string) toolgroups.Role {
	switch {
	case user == "":
		return toolgroups.RoleStranger
	case matches(a.Admins, platform, user):
		return toolgroups.RoleAdmin
	case matches(a.Allow, platform, user):
		return toolgroups.RoleUser
	}
	return toolgroups.RoleStranger
}

// matches reports whether one of the entries names a user. People from outside of the
// platform's workspace need an entry of their own.
func matches(list []string, platform, user string) bool {
	outsider := strings.Contains(user, "@")
	for _, entry := range list {
		everybody := entry == "*" || entry == platform+":*"
		if everybody && !outsider || entry == platform+":"+user {
			return true
		}
	}
	return false
}
