package slack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// elsewhere is written behind the id of a user who is not of the bot's workspace, before
// the id of theirs: whom the bridge lets in as everybody here, it does not let in there.
const elsewhere = "@"

// channelID is the form of the id of a channel.
var channelID = regexp.MustCompile(`^[CG][A-Z0-9]+$`)

// memberID is the form of the id of a user, with the workspace of those from elsewhere.
var memberID = regexp.MustCompile(`^[UW][A-Z0-9]+(@([TE][A-Z0-9]+|unknown))?$`)

// IsUserID implements [bridge.UserNamer].
func (p *Platform) IsUserID(id string) bool { return memberID.MatchString(id) }

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

// isDirectID reports whether a conversation is one of two people. What it is called says
// nothing: people name channels.
func isDirectID(channel string) bool { return strings.HasPrefix(channel, "D") }

// works reports whether the bot works in a conversation: a direct chat, or one of the
// channels it is limited to, where it is.
func (p *Platform) works(channel string, direct bool) bool {
	return direct || len(p.channels) == 0 || slices.Contains(p.channels, channel)
}

// userID is the id of a user for the bridge. Slack names the workspace of everybody who
// writes; where it does not and the channel is shared, it is not ours.
func (s self) userID(user, team string, shared bool) string {
	if team == "" && !shared || s.isOurs(team) {
		return user
	}
	return user + elsewhere + cmp.Or(team, "unknown")
}

// slackID is the id that Slack knows a user by, and whether they are an outsider.
func slackID(user string) (id string, outsider bool) {
	id, _, outsider = strings.Cut(user, elsewhere)
	return id, outsider
}

// team is the workspace of who wrote a message, where Slack names it.
func (m *message) team() string { return cmp.Or(m.UserTeam, m.SourceTeam, m.Team) }
