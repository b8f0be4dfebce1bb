package telegram

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

func getChat(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.findChat(p, false)
	if err != nil {
		return nil, err
	}
	return botapi.FullChat{Chat: c.apiChat(), MaxReactionCount: 11}, nil
}

func getChatMember(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	id := p.Int("user_id")
	if id <= 0 {
		return nil, badRequest("invalid user_id specified") // Client.cpp
	}
	c, err := a.findChat(p, false)
	if err != nil {
		return nil, err
	}
	if id == a.world.bot.ID {
		return a.world.chatMember(c, a.world.bot), nil
	}
	u := a.world.users[id]
	if u == nil {
		return nil, badRequest("user not found") // Client.cpp
	}
	return a.world.chatMember(c, *u), nil
}

func getChatAdministrators(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	if c.kind == Private {
		return nil, badRequest("there are no administrators in the private chat") // Client.cpp
	}
	admins := []botapi.Member{}
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if st := c.members[id]; st == Creator || st == Administrator {
			admins = append(admins, a.world.chatMember(c, *a.world.users[id]))
		}
	}
	if c.botAdmin {
		admins = append(admins, a.world.chatMember(c, a.world.bot))
	}
	return admins, nil
}

// findChat returns the chat of a call. With write, it refuses chats to which the bot cannot write.
func (a *api) findChat(p *wire.Params, write bool) (*chat, *apiError) {
	raw := p.Text("chat_id")
	if raw == "" {
		return nil, badRequest("chat_id is empty") // Client.cpp
	}
	if strings.HasPrefix(raw, "@") {
		return nil, badRequest("chat not found") // Client.cpp
	}
	id, err := strconv.ParseInt(raw, 10, 64)
	c := a.world.chats[id]
	switch {
	case err != nil, c == nil:
		return nil, badRequest("chat not found") // Client.cpp
	case c.migratedTo != 0 && write:
		e := badRequest("group chat was upgraded to a supergroup chat") // Client.cpp
		e.migrateTo = c.migratedTo
		return nil, e
	case c.kicked && (write || c.kind == Supergroup):
		return nil, errorf(403, "Forbidden: bot was kicked from the %s chat", c.kind) // Client.cpp
	case c.blocked && write:
		return nil, errorf(403, "Forbidden: bot was blocked by the user") // Client.cpp
	}
	return c, nil
}

// topicParam returns the message_thread_id of a call. It refuses unknown topics. It also refuses General
// unless general is set; calls address General by leaving the id out.
func topicParam(c *chat, p *wire.Params, general bool) (int64, *apiError) {
	if c.direct {
		id := p.Int("direct_messages_topic_id")
		switch {
		case id == 0:
			return 0, badRequest("REPLY_TO_MONOFORUM_PEER_INVALID") // core.telegram.org/method/messages.sendMessage
		case c.topics[id] == "":
			return 0, badRequest("topic not found") // td, MessageTopic.cpp
		}
		return id, nil
	}
	if p.Int("direct_messages_topic_id") != 0 {
		return 0, badRequest("chat is not a channel direct messages chat") // td, MessageTopic.cpp
	}
	id := p.Int("message_thread_id")
	if id == 0 || general && c.forum && id == generalTopic {
		return 0, nil
	}
	if _, ok := c.topics[id]; !ok || id == generalTopic {
		return 0, badRequest("message thread not found") // telegram-bot-api, Client.cpp
	}
	if c.closed[id] && !c.botAdmin {
		return 0, badRequest("TOPIC_CLOSED") // the error's name in td, DraftMessageManager.cpp
	}
	return id, nil
}
