package telegram

import (
	"context"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
)

// Bounds of the cache of administrators: long enough for a burst of requests, short enough that a
// revoked role soon takes effect.
const (
	adminTTL  = time.Minute
	maxAdmins = 1000
)

// IsAdmin reports whether the user owns or administers the group. In a private chat no user does. A
// sender in the name of the group itself is an anonymous administrator.
func (p *platform) IsAdmin(ctx context.Context, chat chats.Chat, user string) (bool, error) {
	if err := checkAddress(chats.Address{Chat: chat}); err != nil {
		return false, err
	}
	if !strings.HasPrefix(chat.ID, "-") {
		return false, nil
	}
	in, topic := splitID(chat)
	if user == in && topic == "" {
		return true, nil
	}
	id, err := strconv.ParseInt(user, 10, 64)
	if err != nil || id <= 0 {
		return false, nil // a channel
	}
	key := adminKey{in, user}
	if admin, ok := p.admins.Get(key); ok {
		return admin, nil
	}
	var member struct {
		Status string `json:"status"`
	}
	err = p.api.call(ctx, "getChatMember", tgbotapi.Params{"chat_id": in, "user_id": user}, &member)
	if err != nil {
		return false, err
	}
	admin := member.Status == "creator" || member.Status == "administrator"
	p.admins.Put(key, admin, adminTTL)
	return admin, nil
}

// Bounds of the cache of titles: a renamed group soon has its new one, and a failure is not repeated for each row of
// a page.
const (
	titleTTL        = 10 * time.Minute
	unknownTitleTTL = time.Minute
	maxTitles       = 1000
)

// ChatName implements [chats.ChatNamer].
func (p *platform) ChatName(ctx context.Context, to chats.Chat) string {
	id := chatID(to)
	if title, ok := p.titles.Get(id); ok {
		return title
	}
	var found chat
	age := titleTTL
	if err := p.api.call(ctx, "getChat", tgbotapi.Params{"chat_id": id}, &found); err != nil {
		age = unknownTitleTTL
	}
	title := oneLine(found.Title)
	p.titles.Put(id, title, age)
	return title
}

// IsChat implements [chats.ChatSender]: anonymous administrators write in the name of their group, and anyone may in
// that of a channel of theirs.
func (p *platform) IsChat(user string) bool { return strings.HasPrefix(user, "-") }

type adminKey struct{ chat, user string }
