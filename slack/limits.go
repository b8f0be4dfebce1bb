package slack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// outsiderMark separates the id of a user from another workspace from the id of that workspace, so that
// an access rule for this workspace does not admit them.
const outsiderMark = "@"

// channelID matches the id of a channel.
var channelID = regexp.MustCompile(`^[CG][A-Z0-9]+$`)

// memberID matches the id of a user, with the workspace if it is another one.
var memberID = regexp.MustCompile(`^[UW][A-Z0-9]+(@([TE][A-Z0-9]+|unknown))?$`)

// IsUserID implements [chats.UserIDChecker].
func (p *platform) IsUserID(id string) bool { return memberID.MatchString(id) }

func checkChannels(list []string) ([]string, error) {
	var ids []string
	for _, id := range list {
		id = strings.TrimSpace(id)
		if id == "" {
			continue
		}
		if !channelID.MatchString(id) {
			return nil, fmt.Errorf("slack: SLACK_CHANNELS: %q is no id of a channel: want one such as C0123ABCD, from the details of the channel", id)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// isDirectID reports whether a conversation is a direct chat, by its id. Its name would not show that,
// as users name channels. It may be one of two users: see [platform.isDirectWith].
func isDirectID(channel string) bool { return strings.HasPrefix(channel, "D") }

// serves reports whether the bot works in a conversation: in a direct chat, and in the channels that it
// is limited to, or in all channels if there is no limit.
func (p *platform) serves(channel string, direct bool) bool {
	return direct || len(p.channels) == 0 || slices.Contains(p.channels, channel)
}

// userID returns the id of a user for the bridge. If the workspace of the user is not known, and the
// channel is shared, the user counts as an outsider.
func (s identity) userID(user, team string, shared bool) string {
	if team == "" && !shared || s.isOurs(team) {
		return user
	}
	return user + outsiderMark + cmp.Or(team, "unknown")
}

// slackID returns Slack's id of a user, and whether they are an outsider.
func slackID(user string) (id string, outsider bool) {
	id, _, outsider = strings.Cut(user, outsiderMark)
	return id, outsider
}

// team returns the sender's workspace, if Slack names it.
func (m *message) team() string { return cmp.Or(m.UserTeam, m.SourceTeam, m.Team) }
