package telegram

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/telegram/markup"
	"oneclaw/internal/emulator/wire"
)

// readParams reads the arguments of a request, in any of the forms that the service accepts.
func readParams(w http.ResponseWriter, r *http.Request, limit int) (*wire.Params, *apiError) {
	p, err := wire.ReadParams(w, r, int64(limit)+1<<20)
	if err == nil {
		return p, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errorf(413, "Request Entity Too Large") // HttpReader.cpp
	}
	return nil, badRequest("can't parse request body") // assumed
}

// formattedText parses a text parameter with its parse mode or entities.
func (a *api) formattedText(p *wire.Params, name, entities string) (markup.Text, *apiError) {
	f := markup.Text{Source: p.Text(name), ParseMode: strings.ToLower(p.Text("parse_mode"))}
	if len(f.Source) > maxRawText {
		return f, badRequest("text is too long") // Client.cpp
	}
	if !utf8.ValidString(f.Source) {
		return f, badRequest("strings must be encoded in UTF-8") // MessageEntity.cpp
	}
	f.Plain = f.Source
	a.updates.life.RecordViolation(recordText(f.Source, f.ParseMode == "html"))
	switch f.ParseMode {
	case "", "none":
		if _, err := p.DecodeJSON(entities, &f.Entities); err != nil {
			return f, badRequest("can't parse entities JSON object") // Client.cpp
		}
	case "html":
		var err error
		if f.Plain, f.Entities, err = markup.ParseHTML(f.Source); err != nil {
			return f, badRequest("can't parse entities: %v", err) // SynchronousRequests.cpp
		}
	case "markdown", "markdownv2":
		return f, badRequest("the emulator does not parse %s: use HTML", f.ParseMode) // only of the emulator
	default:
		return f, badRequest("unsupported parse_mode") // Client.cpp
	}
	f.Normalize()
	f.Entities = a.world.knownMentions(f.Entities)
	return f, nil
}

// knownMentions returns entities without mentions of users whom the bot has not met, and completes the others
// (core.telegram.org/bots/api#formatting-options).
func (w *world) knownMentions(entities []botapi.Entity) []botapi.Entity {
	return slices.DeleteFunc(entities, func(e botapi.Entity) bool {
		if e.Type != "text_mention" {
			return false
		}
		if e.User == nil || w.users[e.User.ID] == nil {
			return true
		}
		*e.User = *w.users[e.User.ID]
		return false
	})
}

// parseKeyboard parses reply_markup. It returns nil if that is missing, has no buttons, or is another
// kind of markup.
func parseKeyboard(p *wire.Params) (*botapi.Keyboard, *apiError) {
	var asked struct {
		InlineKeyboard json.RawMessage `json:"inline_keyboard"`
	}
	there, err := p.DecodeJSON("reply_markup", &asked)
	if err != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object") // Client.cpp
	}
	if !there || asked.InlineKeyboard == nil {
		return nil, nil
	}
	var rows [][]json.RawMessage
	if err := json.Unmarshal(asked.InlineKeyboard, &rows); err != nil {
		return nil, badRequest(`field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays`) // Client.cpp
	}
	n := 0
	for _, row := range rows {
		if len(row) > 8 {
			return nil, badRequest("BUTTON_ROW_TOO_LONG") // assumed
		}
		for _, raw := range row {
			if n++; n > 100 {
				return nil, badRequest("reply markup is too long") // Client.cpp
			}
			if err := checkButton(raw); err != nil {
				return nil, err
			}
		}
	}
	if n == 0 {
		return nil, nil
	}
	return &botapi.Keyboard{InlineKeyboard: rows}, nil
}

// checkButton refuses a button that the service would refuse.
func checkButton(raw json.RawMessage) *apiError {
	var b struct {
		Text                         *string `json:"text"`
		CallbackData                 *string `json:"callback_data"`
		URL                          string  `json:"url"`
		Style                        string  `json:"style"`
		SwitchInlineQuery            *string `json:"switch_inline_query"`
		SwitchInlineQueryCurrentChat *string `json:"switch_inline_query_current_chat"`
		WebApp                       any     `json:"web_app"`
		CopyText                     any     `json:"copy_text"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return badRequest("can't parse inline keyboard button: InlineKeyboardButton must be an Object") // Client.cpp
	}
	switch {
	case b.Text == nil:
		return badRequest(`can't parse inline keyboard button: Can't find field "text"`) // td, JsonBuilder.cpp
	case *b.Text == "":
		return badRequest("inline keyboard button text must be non-empty") // ReplyMarkup.cpp
	case b.Style != "" && b.Style != "danger" && b.Style != "success" && b.Style != "primary":
		return badRequest("can't parse inline keyboard button: invalid button style specified") // assumed
	case b.URL != "":
		if markup.NormalizeLink(b.URL) == "" {
			return badRequest("inline keyboard button URL '%s' is invalid: Wrong HTTP URL", b.URL) // ReplyMarkup.cpp
		}
		return nil
	case b.CallbackData != nil && *b.CallbackData != "":
		if len(*b.CallbackData) > 64 {
			return badRequest("BUTTON_DATA_INVALID") // core.telegram.org/api/errors
		}
		return nil
	case b.SwitchInlineQuery != nil, b.SwitchInlineQueryCurrentChat != nil, b.WebApp != nil, b.CopyText != nil:
		return nil
	}
	return badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard") // Client.cpp
}
