package slack

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// authTest names the organization instead of the workspace if the app is installed there
// (docs.slack.dev/reference/methods/auth.test).
func authTest(c *call) (any, *refusal) {
	answer := map[string]any{
		"url": "https://" + strings.ToLower(c.cfg.TeamName) + ".slack.com/", "team": c.cfg.TeamName, "team_id": c.cfg.Team,
		"user": c.cfg.BotName, "user_id": c.cfg.BotUser, "bot_id": BotID, "is_enterprise_install": false,
	}
	if org := c.cfg.Organization; org != "" {
		answer["team_id"], answer["enterprise_id"], answer["is_enterprise_install"] = org, org, true
	}
	return answer, nil
}

func teamInfo(c *call) (any, *refusal) {
	name := c.cfg.TeamName
	return map[string]any{"team": map[string]any{"id": c.cfg.Team, "name": name, "domain": strings.ToLower(name)}}, nil
}

func userInfo(c *call) (any, *refusal) {
	u := c.world.users[c.p.Text("user")]
	if u == nil {
		return nil, newRefusal("user_not_found") // its page
	}
	return map[string]any{"user": c.world.userJSON(u)}, nil
}

func channelInfo(c *call) (any, *refusal) {
	ch := c.world.channels[c.p.Text("channel")]
	if ch == nil || !ch.hasBot && ch.kind != public {
		return nil, newRefusal("channel_not_found") // its page
	}
	if scope := kindScope(ch.kind, "read"); !c.app.hasScope(scope) {
		return nil, c.app.missingScope(scope)
	}
	return map[string]any{"channel": c.world.channelJSON(ch)}, nil
}

// listUserGroups returns the user groups (docs.slack.dev/reference/methods/usergroups.list).
func listUserGroups(c *call) (any, *refusal) {
	groups := make([]any, len(c.world.userGroups))
	for i, g := range c.world.userGroups {
		groups[i] = map[string]any{"id": g.id, "handle": g.handle, "name": g.handle, "is_usergroup": true}
	}
	return map[string]any{"usergroups": groups}, nil
}

// apiTest returns its own arguments, or the error that they ask for (docs.slack.dev/reference/methods/api.test).
func apiTest(c *call) (any, *refusal) {
	if code := c.p.Text("error"); code != "" {
		return nil, newRefusal(code)
	}
	return map[string]any{"args": json.RawMessage(c.p.EncodeJSON(func(string) bool { return true }))}, nil
}

// listUsers returns all users, the bot among them.
func listUsers(c *call) (any, *refusal) {
	ids, next, err := paginate(c, slices.Sorted(maps.Keys(c.world.users)), func(id string) string { return id })
	if err != nil {
		return nil, err
	}
	members := make([]any, len(ids))
	for i, id := range ids {
		members[i] = c.world.userJSON(c.world.users[id])
	}
	return map[string]any{"members": members, "response_metadata": map[string]any{"next_cursor": next}}, nil
}

// listMembers returns the members of a channel.
func listMembers(c *call) (any, *refusal) {
	if _, err := channelInfo(c); err != nil {
		return nil, err
	}
	ch := c.world.channels[c.p.Text("channel")]
	members := slices.Clone(ch.members)
	if ch.hasBot {
		members = append(members, c.cfg.BotUser)
	}
	ids, next, err := paginate(c, members, func(id string) string { return id })
	if err != nil {
		return nil, err
	}
	return map[string]any{"members": ids, "response_metadata": map[string]any{"next_cursor": next}}, nil
}

// getPermalink returns the address of a message.
func getPermalink(c *call) (any, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel"), false)
	if err != nil {
		return nil, err
	}
	m := ch.byTS[c.p.Text("message_ts")]
	if m == nil || m.deleted {
		return nil, newRefusal("message_not_found") // its page
	}
	link := "https://" + strings.ToLower(c.cfg.TeamName) + ".slack.com/archives/" + ch.id + "/p" + strings.ReplaceAll(m.ts, ".", "")
	return map[string]any{"channel": ch.id, "permalink": link}, nil
}

// listConversations returns the public channels, and those of the other requested types in which the bot is.
func listConversations(c *call) (any, *refusal) {
	return c.conversations(func(ch *channel) bool { return ch.hasBot || ch.kind == public })
}

// userConversations returns the bot's channels of the requested types, or those that it has in common with a user.
func userConversations(c *call) (any, *refusal) {
	user := c.p.Text("user") // of another user, the channels that the bot is in as well
	if _, known := c.world.users[user]; user != "" && !known {
		return nil, newRefusal("user_not_found") // its page
	}
	return c.conversations(func(ch *channel) bool { return ch.hasBot && (user == "" || slices.Contains(ch.members, user)) })
}

// conversations returns the channels of the requested types that are listed.
func (c *call) conversations(listed func(ch *channel) bool) (any, *refusal) {
	types := c.p.Text("types")
	if types == "" {
		types = "public_channel"
	}
	kinds := map[string]string{"public_channel": public, "private_channel": Private, "mpim": groupDM, "im": DM}
	wanted := map[string]bool{}
	for t := range strings.SplitSeq(types, ",") {
		kind, known := kinds[t]
		if !known {
			return nil, newRefusal("invalid_types") // its page
		}
		if scope := kindScope(kind, "read"); !c.app.hasScope(scope) {
			return nil, c.app.missingScope(scope)
		}
		wanted[kind] = true
	}
	var list []*channel
	for _, id := range c.world.channelOrder {
		if ch := c.world.channels[id]; wanted[ch.kind] && listed(ch) && (!ch.archived || !c.p.Bool("exclude_archived")) {
			list = append(list, ch)
		}
	}
	list, next, err := paginate(c, list, func(ch *channel) string { return ch.id })
	if err != nil {
		return nil, err
	}
	channels := make([]any, len(list))
	for i, ch := range list {
		channels[i] = c.world.channelJSON(ch)
	}
	return map[string]any{"channels": channels, "response_metadata": map[string]any{"next_cursor": next}}, nil
}

func openConversation(c *call) (any, *refusal) {
	users := strings.Split(c.p.Text("users"), ",")
	if c.p.Text("users") == "" {
		return nil, newRefusal("users_list_not_supplied") // its page
	}
	for _, id := range users {
		if c.world.users[id] == nil || id == c.cfg.BotUser {
			return nil, newRefusal("user_not_found") // its page
		}
	}
	if len(users) == 1 {
		return map[string]any{"channel": map[string]any{"id": c.world.openDM(users[0]).id}}, nil
	}
	if !c.app.hasScope("mpim:write") {
		return nil, c.app.missingScope("mpim:write")
	}
	return map[string]any{"channel": map[string]any{"id": c.world.addChannel(ChannelSpec{Kind: groupDM, Members: users}).id}}, nil
}

// readableChannel returns a channel, or a refusal if the bot may not read its messages.
func (c *call) readableChannel() (*channel, *refusal) {
	ch, err := c.world.findChannel(c.p.Text("channel"), false)
	if err != nil {
		return nil, err
	}
	if scope := kindScope(ch.kind, "history"); !c.app.hasScope(scope) {
		return nil, c.app.missingScope(scope)
	}
	return ch, nil
}

func listHistory(c *call) (any, *refusal) {
	ch, err := c.readableChannel()
	if err != nil {
		return nil, err
	}
	var list []*message
	for _, m := range slices.Backward(ch.messages) {
		if !m.deleted && m.ephemeral == "" && (m.parent == nil || m.broadcast) {
			list = append(list, m)
		}
	}
	return c.pageMessages(list, nil)
}

func listReplies(c *call) (any, *refusal) {
	ch, err := c.readableChannel()
	if err != nil {
		return nil, err
	}
	root := ch.byTS[c.p.Text("ts")]
	if root == nil || root.ephemeral != "" || root.deleted && len(root.replies) == 0 {
		return nil, newRefusal("thread_not_found") // its page
	}
	list := []*message{root} // the ts of a reply selects only the reply
	for _, ts := range root.replies {
		if m := ch.byTS[ts]; m != nil && !m.deleted {
			list = append(list, m)
		}
	}
	return c.pageMessages(list, root)
}

// pageMessages selects messages by limit, oldest, latest and cursor. A history with only oldest begins
// at its oldest end (slackhq/slack-api-docs #4); assumed: each page has the newest message first. The
// root of a thread precedes the replies, however old it is
// (docs.slack.dev/reference/methods/conversations.replies); assumed: on the first page only.
func (c *call) pageMessages(list []*message, root *message) (any, *refusal) {
	oldest, latest := c.p.Text("oldest"), c.p.Text("latest")
	inclusive := c.p.Bool("inclusive")
	list = slices.DeleteFunc(list, func(m *message) bool {
		return m != root && (oldest != "" && (m.ts < oldest || m.ts == oldest && !inclusive) ||
			latest != "" && (m.ts > latest || m.ts == latest && !inclusive))
	})
	fromOldest := root == nil && oldest != "" && latest == ""
	if fromOldest {
		slices.Reverse(list)
	}
	list, next, err := paginate(c, list, func(m *message) string { return m.ts })
	if err != nil {
		return nil, err
	}
	if fromOldest {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	messages := make([]*wireMessage, len(list))
	for i, m := range list {
		if messages[i] = c.world.messageJSON(m); c.p.Bool("include_all_metadata") {
			messages[i].Metadata = m.metadata
		}
	}
	return map[string]any{
		"messages": messages, "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next},
	}, nil
}

// paginate returns the page of a list that the call's cursor and limit select, and the next cursor.
func paginate[T any](c *call, list []T, name func(T) string) (page []T, next string, err *refusal) {
	if cursor := c.p.Text("cursor"); cursor != "" {
		i := slices.IndexFunc(list, func(one T) bool { return name(one) == cursor })
		if i < 0 {
			return nil, "", newRefusal("invalid_cursor") // its page
		}
		list = list[i:]
	}
	limit := int(c.p.Int("limit"))
	if limit < 0 || limit > 1000 {
		return nil, "", newRefusal("invalid_limit") // its page
	}
	if limit == 0 {
		limit = 100
	}
	if len(list) > limit {
		return list[:limit], name(list[limit]), nil
	}
	return list, "", nil
}
