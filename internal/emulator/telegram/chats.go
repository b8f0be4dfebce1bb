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
	c, err := a.find(p, false)
	if err != nil {
		return nil, err
	}
	return botapi.FullChat{Chat: c.wire(), MaxReactionCount: 11}, nil
}

func getChatMember(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	id := p.Int("user_id")
	if id <= 0 {
		return nil, badRequest("invalid user_id specified") // Client.cpp
	}
	c, err := a.find(p, false)
	if err != nil {
		return nil, err
	}
	if id == a.world.bot.ID {
		return a.world.member(c, a.world.bot), nil
	}
	u := a.world.users[id]
	if u == nil {
		return nil, badRequest("user not found") // Client.cpp
	}
	return a.world.member(c, *u), nil
}

func getChatAdministrators(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	c, err := a.find(p, true)
	if err != nil {
		return nil, err
	}
	if c.kind == Private {
		return nil, badRequest("there are no administrators in the private chat") // Client.cpp
	}
	admins := []botapi.Member{}
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if st := c.members[id]; st == Creator || st == Administrator {
			admins = append(admins, a.world.member(c, *a.world.users[id]))
		}
	}
	if c.botAdmin {
		admins = append(admins, a.world.member(c, a.world.bot))
	}
	return admins, nil
}

// find returns a chat. With write, it refuses chats that the bot cannot write to.
func (a *api) find(p *wire.Params, write bool) (*chat, *apiError) {
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
	case c.migrated != 0 && write:
		e := badRequest("group chat was upgraded to a supergroup chat") // Client.cpp
		e.migrateTo = c.migrated
		return nil, e
	case c.kicked && (write || c.kind == Supergroup):
		return nil, errorf(403, "Forbidden: bot was kicked from the %s chat", c.kind) // Client.cpp
	case c.blocked && write:
		return nil, errorf(403, "Forbidden: bot was blocked by the user") // Client.cpp
	}
	return c, nil
}

// thread checks a message_thread_id: it refuses an unknown topic, and the General one, which is
// used by leaving the id out.
func thread(c *chat, p *wire.Params, general bool) (int64, *apiError) {
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
