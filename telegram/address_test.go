package telegram

import (
	"encoding/json"
	"testing"
	"unicode/utf16"
)

func at(text, part string) entity {
	for i := range text {
		if len(text) >= i+len(part) && text[i:i+len(part)] == part {
			return entity{Type: "mention", Offset: len(utf16.Encode([]rune(text[:i]))), Length: len(utf16.Encode([]rune(part)))}
		}
	}
	return entity{}
}

func TestRead(t *testing.T) {
	self := user{ID: 42, Username: "OneClaw_Bot"}
	const name = "@oneclaw_bot"
	tests := map[string]struct {
		text     string
		entities []entity
		want     decodedText
	}{
		"plain":               {"hello", nil, decodedText{text: "hello"}},
		"leading mention":     {name + " hello", []entity{at(name+" hello", name)}, decodedText{text: "hello", mentioned: true}},
		"leading with comma":  {name + ", hello", []entity{at(name, name)}, decodedText{text: "hello", mentioned: true}},
		"leading with a face": {name + ": :) 🎉 hello", []entity{at(name, name)}, decodedText{text: ":) 🎉 hello", mentioned: true}},
		"trailing mention":    {"hello " + name + " ", []entity{at("hello "+name, name)}, decodedText{text: "hello", mentioned: true}},
		"in a sentence":       {"what can " + name + " do?", []entity{at("what can "+name, name)}, decodedText{text: "what can " + name + " do?", mentioned: true}},
		"emoji before":        {"👩‍👩‍👧 🎉 " + name, []entity{at("👩‍👩‍👧 🎉 "+name, name)}, decodedText{text: "👩‍👩‍👧 🎉", mentioned: true}},
		"emoji at both sides": {"🎉" + name + "🎉", []entity{at("🎉"+name, name)}, decodedText{text: "🎉" + name + "🎉", mentioned: true}},
		"mention of others":   {"@someone hello", []entity{at("@someone", "@someone")}, decodedText{text: "@someone hello"}},
		"longer name":         {name + "2 hello", []entity{at(name+"2", name+"2")}, decodedText{text: name + "2 hello"}},
		"name without entity": {name + " hello", nil, decodedText{text: name + " hello"}},
		"nothing else":        {name, []entity{at(name, name)}, decodedText{text: name, mentioned: true}},
		"called twice":        {name + " " + name + " hi", []entity{at(name, name), {Type: "mention", Offset: 13, Length: 12}}, decodedText{text: "hi", mentioned: true}},
		"text mention": {
			"Claw: hello",
			[]entity{{Type: "text_mention", Length: 4, User: &user{ID: 42}}},
			decodedText{text: "hello", mentioned: true},
		},
		"text mention of others": {"Claw: hello", []entity{{Type: "text_mention", Length: 4, User: &user{ID: 43}}}, decodedText{text: "Claw: hello"}},
		"text mention of nobody": {"Claw: hello", []entity{{Type: "text_mention", Length: 4}}, decodedText{text: "Claw: hello"}},
		"beyond the end":         {"hi", []entity{{Type: "mention", Offset: 1, Length: 5}, {Type: "mention", Offset: 9, Length: 1}}, decodedText{text: "hi"}},
		"negative":               {"hi", []entity{{Type: "mention", Offset: -1, Length: 2}, {Type: "mention", Length: -1}}, decodedText{text: "hi"}},
		"overflow":               {"hi", []entity{{Type: "mention", Offset: 1, Length: 1<<63 - 1}}, decodedText{text: "hi"}},
		"half a character":       {"🎉🎉", []entity{{Type: "text_link", Offset: 0, Length: 1, URL: "u"}}, decodedText{text: "\uFFFD (u)\uFFFD🎉"}},
		"command":                {"/clear", nil, decodedText{text: "/clear", command: "clear"}},
		"command with our name":  {"/clear@OneClaw_bot now", nil, decodedText{text: "/clear now", command: "clear", target: "OneClaw_bot"}},
		"command of others":      {"/clear@other_bot", nil, decodedText{text: "/clear@other_bot", command: "clear", target: "other_bot"}},
		"command after mention":  {name + " /Clear", []entity{at(name, name)}, decodedText{text: "/Clear", mentioned: true, command: "clear"}},
		"path":                   {"/usr/bin", nil, decodedText{text: "/usr/bin"}},
		"link":                   {"see here", []entity{{Type: "text_link", Offset: 4, Length: 4, URL: "https://a.b"}}, decodedText{text: "see here (https://a.b)"}},
		"mention and link": {
			name + " see here",
			[]entity{at(name, name), {Type: "text_link", Offset: 17, Length: 4, URL: "https://a.b"}},
			decodedText{text: "see here (https://a.b)", mentioned: true},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := self.decodeText(tt.text, tt.entities); got != tt.want {
				t.Errorf("read(%q) = %+v, want %+v", tt.text, got, tt.want)
			}
		})
	}
}

func TestGroupsAreGated(t *testing.T) {
	const emoji = "🎉🎉 @oneclaw_bot hi"
	tests := map[string]struct {
		message string // the fields besides chat, sender and id
		want    string // the text; empty for not for the bot
	}{
		"talk":                      {`"text":"hello all"`, ""},
		"mention":                   {`"text":"@OneClaw_Bot hi","entities":[{"type":"mention","offset":0,"length":12}]`, "hi"},
		"mention after emoji":       {`"text":"` + emoji + `","entities":[{"type":"mention","offset":5,"length":12}]`, emoji},
		"offsets in code points":    {`"text":"` + emoji + `","entities":[{"type":"mention","offset":3,"length":12}]`, ""},
		"mention in a caption":      {`"caption":"@oneclaw_bot hi","caption_entities":[{"type":"mention","offset":0,"length":12}],"photo":[{"file_id":"p"}]`, "hi"},
		"name in code":              {`"text":"@oneclaw_bot hi","entities":[{"type":"code","offset":0,"length":12}]`, ""},
		"reply to the bot":          {`"text":"why?","reply_to_message":{"message_id":1,"from":{"id":42,"is_bot":true}}`, "why?"},
		"reply to others":           {`"text":"why?","reply_to_message":{"message_id":1,"from":{"id":6}}`, ""},
		"reply from another topic":  {`"text":"why?","external_reply":{"chat":{"id":-3,"type":"supergroup"},"message_id":7,"origin":{"type":"user","date":1,"sender_user":{"id":42,"is_bot":true,"first_name":"O"}}}`, "why?"},
		"reply there to others":     {`"text":"why?","external_reply":{"chat":{"id":-3,"type":"supergroup"},"message_id":7,"origin":{"type":"user","date":1,"sender_user":{"id":6,"first_name":"B"}}}`, ""},
		"reply to the bot's topic":  {`"text":"why?","reply_to_message":{"message_id":1,"from":{"id":42},"forum_topic_created":{}}`, ""},
		"announced command":         {`"text":"/clear"`, "/clear"},
		"unknown command":           {`"text":"/start"`, ""},
		"unknown command, our name": {`"text":"/start@oneclaw_bot x"`, "/start x"},
		"command of another bot":    {`"text":"/clear@other_bot"`, ""},
		"another bot's, as reply":   {`"text":"/clear@other_bot","reply_to_message":{"message_id":1,"from":{"id":42}}`, ""},
		"voice in reply to the bot": {`"voice":{"file_id":"v"},"reply_to_message":{"message_id":1,"from":{"id":42}}`, "voice.ogg"},
		"voice":                     {`"voice":{"file_id":"v"}`, ""},
	}
	for name, tt := range tests {
		for _, kind := range []string{"group", "supergroup", "private", "channel", "something new"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				raw := `{"update_id":1,"message":{"message_id":2,"date":1,"from":{"id":5,"first_name":"A"},"chat":{"id":-3,"type":"` + kind + `"},` + tt.message + `}}`
				events, _, _, _ := newDecoder("clear").decodeBatch(t.Context(), []json.RawMessage{json.RawMessage(raw)})
				got := ""
				for _, e := range events {
					got = e.message.Text
					for _, f := range e.message.Files {
						if f.Sound.Kind != "" {
							got += f.Name
						}
					}
					for _, s := range e.message.Skipped {
						got += s
					}
				}
				switch {
				case kind == "channel" && got != "":
					t.Errorf("a channel's post gave %q", got)
				case kind == "private" && got == "":
					t.Error("a private message was dropped")
				case kind != "channel" && kind != "private" && got != tt.want:
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	}
}
