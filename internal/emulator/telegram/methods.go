package telegram

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/emulator/wire"
)

func getMe(_ context.Context, a *api, _ *wire.Params) (any, *apiError) {
	topics := slices.ContainsFunc(a.world.chatOrder, func(id int64) bool {
		return a.world.chats[id].kind == Private && a.world.chats[id].forum
	})
	return botapi.Bot{User: a.world.bot, CanJoinGroups: true, CanReadAllGroupMessages: a.cfg.NoPrivacyMode, HasTopicsEnabled: topics}, nil
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func setMyCommands(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	var commands []struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}
	if _, err := p.DecodeJSON("commands", &commands); err != nil {
		return nil, badRequest("can't parse commands JSON object") // Client.cpp
	}
	if len(commands) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH") // assumed
	}
	for i := range commands {
		c := &commands[i]
		c.Command = strings.TrimPrefix(c.Command, "/")
		if !commandName.MatchString(c.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID") // core.telegram.org/api/errors
		}
		if n := utf8.RuneCountInString(c.Description); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID") // core.telegram.org/api/errors
		}
	}
	kept, err := json.Marshal(commands)
	if err != nil {
		return nil, badRequest("can't parse commands JSON object") // Client.cpp
	}
	scope, refused := commandScope(p)
	if refused != nil {
		return nil, refused
	}
	a.world.commands[scope] = kept
	a.world.hub.Wake()
	return true, nil
}

// commandScope returns the key for a scope and language. The scope is in compact JSON.
func commandScope(p *wire.Params) (string, *apiError) {
	scope := map[string]any{}
	if _, err := p.DecodeJSON("scope", &scope); err != nil {
		return "", badRequest("can't parse BotCommandScope JSON object") // Client.cpp
	}
	kind, _ := scope["type"].(string)
	switch kind {
	case "", "default":
		kind = "default"
		scope = map[string]any{}
	case "all_private_chats", "all_group_chats", "all_chat_administrators", "chat", "chat_administrators", "chat_member":
	default:
		return "", badRequest("can't parse BotCommandScope: Unsupported type specified") // Client.cpp
	}
	rest, _ := json.Marshal(scope)
	return kind + "|" + string(rest) + "|" + p.Text("language_code"), nil
}

func getMyCommands(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	scope, err := commandScope(p)
	if err != nil {
		return nil, err
	}
	if kept, ok := a.world.commands[scope]; ok {
		return kept, nil
	}
	return []string{}, nil
}

func deleteMyCommands(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	scope, err := commandScope(p)
	if err != nil {
		return nil, err
	}
	delete(a.world.commands, scope)
	return true, nil
}

// maxActions bounds the stored chat actions of a chat.
const maxActions = 1000

func sendChatAction(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	action := p.Text("action")
	switch action {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice",
		"upload_document", "choose_sticker", "find_location", "record_video_note", "upload_video_note":
	default:
		return nil, badRequest("wrong parameter action in request") // Client.cpp
	}
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	if c.direct {
		return nil, badRequest("CHANNEL_MONOFORUM_UNSUPPORTED") // core.telegram.org/bots/api#sendchataction, in other words
	}
	if _, err := topicParam(c, p, true); err != nil {
		return nil, err
	}
	shown := Action{Chat: c.id, Thread: p.Int("message_thread_id"), Action: action, At: a.world.now()}
	if len(c.actions) >= maxActions {
		c.actions = c.actions[1:]
	}
	c.actions = append(c.actions, shown)
	a.world.emit(event{Kind: eventAction, Chat: c.id, Text: action}, nil, nil)
	return true, nil
}

func sendMessageDraft(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	body, err := a.formattedText(p, "text", "entities")
	if err != nil {
		return nil, err
	}
	c, err := a.findChat(p, true)
	if err != nil {
		return nil, err
	}
	topic, err := topicParam(c, p, false)
	if err != nil {
		return nil, err
	}
	id := p.Int("draft_id")
	switch {
	case c.kind != Private:
		return nil, badRequest("TEXTDRAFT_PEER_INVALID") // assumed
	case id == 0:
		return nil, badRequest("RANDOM_ID_INVALID") // core.telegram.org/api/errors
	case markup.UTF16Length(body.Plain) > maxText:
		return nil, badRequest("message is too long") // MessageContent.cpp
	}
	if len(c.drafts) >= 100 {
		clear(c.drafts)
	}
	c.drafts[id] = Draft{ID: id, Thread: topic, Text: body.Plain, At: a.world.now()}
	a.world.emit(event{Kind: eventDraft, Chat: c.id, Message: id}, nil, nil)
	return true, nil
}

// reactions are the emoji that can be reactions (Bot API, ReactionTypeEmoji).
const reactions = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"

func knownReaction(emoji string) bool {
	return emoji != "" && slices.Contains(strings.Fields(reactions), emoji)
}

func setMessageReaction(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	var list []botapi.Reaction
	if _, err := p.DecodeJSON("reaction", &list); err != nil {
		return nil, badRequest("can't parse reaction types JSON object") // Client.cpp
	}
	if len(list) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY") // core.telegram.org/api/errors
	}
	var emoji []string
	for _, r := range list {
		if r.Type != "emoji" && r.Type != "custom_emoji" {
			return nil, badRequest("can't parse ReactionType: invalid reaction type specified") // Client.cpp
		}
		if r.Type != "emoji" || !knownReaction(r.Emoji) {
			return nil, badRequest("REACTION_INVALID") // core.telegram.org/api/errors
		}
		emoji = append(emoji, r.Emoji)
	}
	c, err := a.findChat(p, false)
	if err != nil {
		return nil, err
	}
	m := c.byID[p.Int("message_id")]
	if m == nil || m.deleted {
		return nil, badRequest("message to react not found") // Client.cpp
	}
	m.botReactions = emoji
	a.world.emit(event{Kind: eventReaction, Chat: c.id, Message: m.id}, c, m)
	return true, nil
}

// answerCallbackQuery answers a button press (core.telegram.org/bots/api#answercallbackquery).
// Assumed: each press can be answered once.
func answerCallbackQuery(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	if markup.UTF16Length(p.Text("text")) > 200 {
		return nil, badRequest("MESSAGE_TOO_LONG") // MessagesManager.cpp
	}
	q := a.world.callbacks[p.Text("callback_query_id")]
	if q == nil || q.Answered {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid") // Client.cpp
	}
	q.Answered, q.Text, q.ShowAlert = true, p.Text("text"), p.Bool("show_alert")
	a.world.emit(event{Kind: eventAnswer, Chat: q.Chat, Message: q.Message, Text: q.Text}, nil, nil)
	return true, nil
}
