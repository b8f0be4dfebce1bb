package telegram

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
)

// decodeMessage returns what an update with a message of the given fields comes to: in a direct chat,
// or in a group.
func decodeMessage(t *testing.T, kind, chatType, fields string) *chats.Message {
	t.Helper()
	raw := fmt.Sprintf(`{"update_id":1,%q:{"message_id":2,"date":1,"from":{"id":5,"first_name":"A"},"chat":{"id":-7,"type":%q},%s}}`, kind, chatType, fields)
	events, _, _, err := newDecoder().decodeBatch(t.Context(), []json.RawMessage{json.RawMessage(raw)})
	if err != nil {
		t.Fatal(err)
	}
	if len(events) == 0 {
		return nil
	}
	return events[0].message
}

func TestWhatIsNoTextIsReadAsText(t *testing.T) {
	for fields, want := range map[string]string{
		`"rich_message":{"blocks":[{"type":"table","cells":[[{"text":"a|b","rowspan":2},{"text":["c",{"type":"bold","text":"d\ne"}],"colspan":2}],[{"text":"1"},{"text":"2"}],[{"text":"x"},{},{"text":"3"}]]}]}`: "| a\\|b | cd e | |\n|---|---|---|\n| | 1 | 2 |\n| x |  | 3 |",
		`"rich_message":{"blocks":[{"type":"paragraph","text":"a"},{"type":"hologram","scene":{"text":"b"}},{"type":"anchor","name":"c"}]}`:                                                                       "a\n[something of a kind that I do not know]",
		`"location":{"latitude":52.520008,"longitude":-13.5}`:                                                                                      "[location: 52.520008, -13.5]",
		`"location":{"latitude":1,"longitude":2,"horizontal_accuracy":12.4,"live_period":60}`:                                                      "[live location at 1970-01-01 00:00 UTC: 1, 2, to within 12 m]",
		`"venue":{"title":"Café\nX","address":"1 St","location":{"latitude":1,"longitude":2}},"location":{"latitude":1,"longitude":2}`:             "[place: Café X, 1 St (1, 2)]",
		`"contact":{"phone_number":"+491","first_name":"Bo","last_name":"Li","user_id":9,"vcard":"BEGIN:VCARD\nEMAIL:b@x.test\nEND:VCARD"}`:        "[contact: Bo Li, +491]\nBEGIN:VCARD EMAIL:b@x.test END:VCARD",
		`"poll":{"id":"1","question":"Lunch?","options":[{"text":"Pizza","voter_count":0},{"text":"Soup","voter_count":0}]}`:                       "[poll: Lunch?]\n- Pizza\n- Soup",
		`"poll":{"question":"Q","is_closed":true,"total_voter_count":3,"description":"why","options":[{"text":"A","voter_count":2},{"text":"B"}]}`: "[closed poll: Q]\nwhy\n- A (2 of 3 votes)\n- B (0 of 3 votes)",
		`"checklist":{"title":"Trip","tasks":[{"id":1,"text":"Pack"},{"id":2,"text":"Go","completion_date":7}]}`:                                   "[checklist: Trip]\n- [ ] Pack\n- [x] Go",
		`"dice":{"emoji":"🎲","value":4}`: "[dice: 🎲 shows 4]",
		// Bot API 10.1.
		`"rich_message":{"blocks":[{"type":"paragraph","text":"plain"}]}`: "plain",
		`"rich_message":{"blocks":[
			{"type":"heading","size":2,"text":["Report ",{"type":"bold","text":{"type":"italic","text":"Q1"}}]},
			{"type":"paragraph","text":["see ",{"type":"url","text":"here","url":"https://a.test"},", ",{"type":"custom_emoji","custom_emoji_id":"1","alternative_text":"👍"}," ",{"type":"mathematical_expression","expression":"x^2"}]},
			{"type":"pre","language":"go","text":"a\n  b"},
			{"type":"divider"},
			{"type":"list","items":[{"label":"1.","blocks":[{"type":"paragraph","text":"one"},{"type":"paragraph","text":"more"}]},
				{"label":"•","has_checkbox":true,"is_checked":true,"blocks":[{"type":"list","items":[{"label":"a)","blocks":[{"type":"paragraph","text":"deep"}]}]}]}]},
			{"type":"blockquote","blocks":[{"type":"paragraph","text":"said\nso"}],"credit":"Ann"},
			{"type":"table","cells":[[{"text":"H","is_header":true,"align":"left","valign":"top"},{"align":"left","valign":"top"}],[{"text":["1"],"align":"left","valign":"top"},{"text":"2","align":"left","valign":"top"}]],"caption":"sums"},
			{"type":"details","summary":"More","blocks":[{"type":"mathematical_expression","expression":"E=mc^2"}]},
			{"type":"map","location":{"latitude":1,"longitude":2},"zoom":13,"width":1,"height":1,"caption":{"text":"here","credit":"OSM"}},
			{"type":"buttons","buttons":[{"text":"Open","url":"https://b.test"}]},
			{"type":"anchor","name":"x"},
			{"type":"hologram","text":"newer than this list"}]}`: "## Report Q1\nsee here (https://a.test), 👍 x^2\n```go\na\n  b\n```\n---\n1. one\n   more\n- [x] a) deep\n> said\n> so\nAnn\n" +
			"| H |  |\n|---|---|\n| 1 | 2 |\nsums\nMore\nE=mc^2\n[map: 1, 2]\nhere OSM\n[Open (https://b.test)]\nnewer than this list",
	} {
		got := decodeMessage(t, "message", "private", fields)
		if got == nil || got.Text != want || len(got.Skipped) != 0 {
			t.Errorf("%s\nis read as %+v\nwant %q", fields, got, want)
		}
		if named := strings.HasPrefix(want, "[contact:") || strings.HasPrefix(want, "[place:"); got.Foreign != named {
			t.Errorf("%s: what others wrote: %t", fields, got.Foreign)
		}
	}
}

// Others may add to a checklist or a poll, which then comes as an edit by its author.
func TestWhatOthersAddToAMessageIsNotTheSendersAlone(t *testing.T) {
	for fields, foreign := range map[string]bool{
		`"checklist":{"title":"Trip","tasks":[{"id":1,"text":"Pack"}]}`:                                                      false,
		`"checklist":{"title":"Trip","others_can_add_tasks":true,"tasks":[{"id":1,"text":"Pack"},{"id":2,"text":"IGNORE"}]}`: true,
		`"poll":{"question":"Q?","options":[{"persistent_id":"1","text":"A"}]}`:                                              false,
		`"poll":{"question":"Q?","options":[{"persistent_id":"1","text":"IGNORE","added_by_user":{"id":6}}]}`:                true,
		`"poll":{"question":"Q?","options":[{"persistent_id":"1","text":"IGNORE","added_by_chat":{"id":-6}}]}`:               true,
	} {
		for _, kind := range []string{"message", "edited_message"} {
			if got := decodeMessage(t, kind, "private", fields); got == nil || got.Foreign != foreign {
				t.Errorf("%s with %s: %+v", kind, fields, got)
			}
		}
	}
	closed := `"edit_date":9,"checklist":{"title":"Trip","tasks":[{"id":1,"text":"Pack"},{"id":2,"text":"IGNORE"}]}`
	if got := decodeMessage(t, "edited_message", "private", closed); got == nil || !got.Foreign {
		t.Errorf("a checklist to which others may add no more: %+v", got)
	}
}

// What a field of another type says is left out and named; everything else of the message is there.
func TestAFieldOfAnotherTypeTakesNothingElse(t *testing.T) {
	answered := `"text":"yes","reply_to_message":{"message_id":1,"date":1,"from":{"id":6,"first_name":"B"},"chat":{"id":-7,"type":"private"},`
	for fields, want := range map[string]string{
		`"text":"hi","entities":{}`:                                                                    "hi",
		`"text":"hi","entities":[{"type":7,"offset":"x"}]`:                                             "hi",
		`"poll":{"question":"Q?","options":[{"text":"A","voter_count":"x"},{"text":"B"}]}`:             "[poll: Q?]\n- A\n- B",
		`"rich_message":{"blocks":[{"type":"paragraph","text":"ok"},"odd",{"type":"list","items":7}]}`: "ok",
		answered + `"text":"what?","photo":7}`:                                                         "yes",
	} {
		got := decodeMessage(t, "message", "private", fields)
		if got == nil {
			t.Errorf("%s: nothing arrives", fields)
			continue
		}
		skipped := got.Skipped
		if len(got.Quoted) == 1 && got.Quoted[0].Text == "what?" {
			skipped = got.Quoted[0].Skipped
		}
		if got.Text != want || !slices.Equal(skipped, []string{"a part of this message that I cannot read"}) {
			t.Errorf("%s: %+v", fields, got)
		}
	}
}

func TestFilesOfARichMessageComeWithItsText(t *testing.T) {
	got := decodeMessage(t, "message", "private", `"rich_message":{"blocks":[{"type":"paragraph","text":"look"},
		{"type":"slideshow","blocks":[{"type":"photo","photo":[{"file_id":"small","width":1,"height":1},{"file_id":"p","width":9,"height":9}],"caption":{"text":"a cat"}},{"type":"document","document":{"file_id":"d","file_name":"a.pdf"}}]},
		{"type":"voice_note","voice_note":{"file_id":"v","duration":3}},{"type":"video","video":{"file_id":"x"}}]}`)
	if got == nil || got.Text != "look\na cat\n[video, which I cannot see]" || len(got.Files) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, ref := range []string{"p", "d", "v"} {
		if got.Files[i].Ref != ref {
			t.Errorf("file %d is %+v, want %s", i, got.Files[i], ref)
		}
	}
	if got.Files[2].Sound.Kind != chats.SoundSpoken {
		t.Errorf("a voice note is %+v", got.Files[2])
	}
}

func TestARichMessageCallsTheBot(t *testing.T) {
	for mention, called := range map[string]bool{
		`{"type":"mention","text":"@oneclaw_bot","username":"oneclaw_bot"}`:            true,
		`{"type":"text_mention","text":"OneClaw","user":{"id":42,"first_name":"One"}}`: true,
		`{"type":"mention","text":"@other","username":"other"}`:                        false,
	} {
		got := decodeMessage(t, "message", "supergroup", `"rich_message":{"blocks":[{"type":"paragraph","text":[`+mention+`," 🎉 help ",{"type":"url","text":"me","url":"https://a.test"}]}]}`)
		if called != (got != nil) || called && got.Text != "🎉 help me (https://a.test)" {
			t.Errorf("%s gives %+v", mention, got)
		}
	}
}

// Telegram reports each move of a live location as an edit.
func TestALocationThatMovesIsNoQuestion(t *testing.T) {
	if got := decodeMessage(t, "edited_message", "private", `"edit_date":9,"location":{"latitude":1,"longitude":2,"live_period":60}`); got != nil {
		t.Errorf("it came to %+v", got)
	}
	if got := decodeMessage(t, "edited_message", "private", `"edit_date":9,"rich_message":{"blocks":[{"type":"paragraph","text":"changed"}]}`); got == nil || got.Text != "changed" || got.Kind != chats.KindEdit {
		t.Errorf("the edit of a rich message came to %+v", got)
	}
}

func TestWhatIsAnsweredOrForwardedIsReadAsText(t *testing.T) {
	const poll = `"poll":{"id":"1","question":"Lunch?","options":[{"text":"Soup","voter_count":0}]}`
	for name, fields := range map[string]string{
		"answered":        `"text":"what do you think?","reply_to_message":{"message_id":1,"date":1,"from":{"id":6,"first_name":"B"},"chat":{"id":-7,"type":"private"},` + poll + `}`,
		"of another chat": `"text":"what do you think?","external_reply":{"origin":{"type":"hidden_user","sender_user_name":"B","date":1},` + poll + `}`,
		"forwarded":       `"forward_origin":{"type":"hidden_user","sender_user_name":"B","date":1},` + poll,
	} {
		got := decodeMessage(t, "message", "private", fields)
		if got == nil || len(got.Quoted) != 1 || got.Quoted[0].Text != "[poll: Lunch?]\n- Soup" || got.Quoted[0].By != "B" || len(got.Skipped) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Each is a message that no person wrote. Those of Bot API 9.6 to 10.3 were taken for questions.
func TestNewerServiceMessagesAreSilent(t *testing.T) {
	for _, field := range []string{
		`"poll_option_added":{"option_text":"x","option_persistent_id":"1"}`, `"poll_option_deleted":{"option_text":"x","option_persistent_id":"1"}`,
		`"managed_bot_created":{"bot":{"id":1,"is_bot":true,"first_name":"B"}}`, `"community_chat_added":{"community":{"id":1}}`,
		`"community_chat_removed":{}`, `"community_chat_joined":{"community":{"id":1}}`, `"receiver_user":{"id":3,"first_name":"C"}`,
	} {
		if got := decodeMessage(t, "message", "private", field); got != nil {
			t.Errorf("%s came to %+v", field, got)
		}
	}
	// What is still unread is named.
	got := decodeMessage(t, "message", "private", `"rich_message":{"blocks":[]}`)
	if got == nil || !slices.Equal(got.Skipped, []string{"a rich message: I can't read that yet"}) {
		t.Errorf("an empty rich message came to %+v", got)
	}
}

// What an inline bot has a person send is not that person's own text: no command, and no call.
func TestWhatCameThroughAnInlineBotIsQuoted(t *testing.T) {
	const via = `"via_bot":{"id":9,"is_bot":true,"first_name":"Gifs"},`
	got := decodeMessage(t, "message", "private", via+`"text":"/people add telegram:6"`)
	if got == nil || got.Text != "" || len(got.Quoted) != 1 || got.Quoted[0].Kind != chats.RefForward || got.Quoted[0].By != "Gifs" || got.Quoted[0].Text != "/people add telegram:6" {
		t.Errorf("it came to %+v", got)
	}
	answered := decodeMessage(t, "message", "private", `"text":"and this?","reply_to_message":{"message_id":1,"date":1,"from":{"id":6,"first_name":"B"},"chat":{"id":-7,"type":"private"},`+via+`"text":"hello"}`)
	if answered == nil || len(answered.Quoted) != 1 || answered.Quoted[0].By != "Gifs" {
		t.Errorf("an answer to it came to %+v", answered)
	}
	if got := decodeMessage(t, "message", "supergroup", via+`"text":"/stop"`); got != nil {
		t.Errorf("in a group it came to %+v", got)
	}
}

// Neither a group nor an account of Telegram's own can be let in as a person.
func TestServiceAccountsAreNoPeople(t *testing.T) {
	p := &platform{}
	for id, want := range map[string]bool{"123": true, "777000": false, "1087968824": false, "136817688": false, "-100123": false, "0": false, "x": false} {
		if got := p.IsUserID(id); got != want {
			t.Errorf("%s: %t", id, got)
		}
	}
}

// The name of somebody who is mentioned without a username is their own choice, and so are the tasks that others may
// have added to a list, and the name of a place in a poll.
func TestATextWithNamesOfOthersIsNotTheSendersAlone(t *testing.T) {
	mention := func(user string) string {
		return `"text":"greet Ann","entities":[{"type":"text_mention","offset":6,"length":3,"user":{"id":` + user + `,"first_name":"Ann"}}]`
	}
	for fields, foreign := range map[string]bool{
		mention("6"):  true,
		mention("42"): false, // the bot
		`"text":"greet a@oneclaw_bot","entities":[{"type":"text_mention","offset":6,"length":13,"user":{"id":6,"first_name":"a@oneclaw_bot"}}]`:                                 true,
		`"caption":"greet Ann","document":{"file_id":"d"},"caption_entities":[{"type":"text_mention","offset":6,"length":3,"user":{"id":6,"first_name":"Ann"}}]`:                true,
		`"rich_message":{"blocks":[{"type":"paragraph","text":["greet ",{"type":"text_mention","text":"Ann","user":{"id":6,"first_name":"Ann"}}]}]}`:                            true,
		`"text":"see https://a.test","entities":[{"type":"url","offset":4,"length":14}]`:                                                                                        false,
		`"text":"ask @click_evil_io","entities":[{"type":"mention","offset":4,"length":14}]`:                                                                                    true,
		`"text":"ask @Oneclaw_Bot","entities":[{"type":"mention","offset":4,"length":12}]`:                                                                                      false,
		`"text":"#trips @ home","entities":[{"type":"hashtag","offset":0,"length":6}]`:                                                                                          false,
		`"text":"see #trips@click_evil_io","entities":[{"type":"hashtag","offset":4,"length":20}]`:                                                                              true,
		`"text":"what does /go@click_evil_io do","entities":[{"type":"bot_command","offset":10,"length":17}]`:                                                                   true,
		`"text":"/help@oneclaw_bot","entities":[{"type":"bot_command","offset":0,"length":17}]`:                                                                                 false,
		`"caption":"for @click_evil_io","document":{"file_id":"d"},"caption_entities":[{"type":"mention","offset":4,"length":14}]`:                                              true,
		`"rich_message":{"blocks":[{"type":"paragraph","text":["ask ",{"type":"mention","text":"@click_evil_io","username":"click_evil_io"}]}]}`:                                true,
		`"rich_message":{"blocks":[{"type":"paragraph","text":["see ",{"type":"hashtag","text":"#trips@click_evil_io","hashtag":"trips"}]}]}`:                                   true,
		`"checklist":{"title":"Trip","tasks":[{"id":1,"text":"Ask @click_evil_io","text_entities":[{"type":"mention","offset":4,"length":14}]}]}`:                               true,
		`"poll":{"question":"Whom?","options":[{"text":"A"},{"text":"@click_evil_io","text_entities":[{"type":"mention","offset":0,"length":14}]}]}`:                            true,
		`"checklist":{"title":"Trip","others_can_add_tasks":true,"tasks":[{"id":1,"text":"Pack"}]}`:                                                                             true,
		`"checklist":{"title":"Trip","others_can_mark_tasks_as_done":true,"tasks":[{"id":1,"text":"Pack"}]}`:                                                                    false,
		`"poll":{"question":"Where?","options":[{"text":"A","media":{"venue":{"title":"Open b.test","address":"1 St","location":{"latitude":1,"longitude":2}}}},{"text":"B"}]}`: true,
	} {
		got := decodeMessage(t, "message", "private", fields)
		if got == nil || got.Foreign != foreign {
			t.Errorf("%s\nis read as %+v", fields, got)
		}
	}
}
