package telegram

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

// TestEverythingUnreadIsNamed has people send each kind of thing that the bot cannot
// read, and checks that what only goes with a message or is told by the chat is no such.
func TestEverythingUnreadIsNamed(t *testing.T) {
	const unknownKind = "something of a kind that I do not know"
	for field, want := range map[string]string{
		`"video":{"file_id":"v"}`:                                         "a video",
		`"sticker":{"file_id":"s","emoji":"👍"}`:                           "a sticker",
		`"game":{"title":"g"}`:                                            "a game",
		`"story":{"id":1}`:                                                "a story",
		`"paid_media":{"star_count":1}`:                                   "paid media",
		`"rich_message":{"blocks":[]}`:                                    "a rich message",
		`"invoice":{"title":"i"}`:                                         "an invoice",
		`"giveaway":{"winner_count":1}`:                                   "a giveaway",
		`"passport_data":{"data":[]}`:                                     "passport data",
		`"hologram":{"file_id":"h"}`:                                      unknownKind,
		`"holograms":[{"file_id":"h"}],"forward_origin":{},"caption":"x"`: unknownKind,
		`"new_chat_members":[{"id":6}]`:                                   "",
		`"pinned_message":{"message_id":1,"voice":{"file_id":"v"}}`:       "",
		`"forum_topic_created":{"name":"T"}`:                              "",
		`"gift":{"gift":{}}`:                                              "",
		`"write_access_allowed":{},"quote":{"text":"x"}`:                  "",
		`"suggested_post_something_new":{"state":"x"}`:                    "",
		`"hologram_count":5,"is_hologram":true,"hologram_id":"h"`:         "",
		`"text":"words","hologram":{"file_id":"h"}`:                       "",
	} {
		t.Run(field, func(t *testing.T) {
			raw := `{"update_id":1,"message":{"message_id":2,"date":1,"from":{"id":5,"first_name":"A"},"chat":{"id":5,"type":"private"},` + field + `}}`
			events, _, _, _ := newDecoder().decodeBatch(t.Context(), []json.RawMessage{json.RawMessage(raw)})
			var got []string
			for _, e := range events {
				got = append(got, e.message.Skipped...)
			}
			var said []string
			switch want {
			case "":
			case unknownKind:
				said = []string{unknownKind}
			default:
				said = []string{want + ": I can't read that yet"}
			}
			if !slices.Equal(got, said) {
				t.Errorf("said to be unread: %q, want %q", got, want)
			}
		})
	}
}

// TestMetadataIsNoEdit has Telegram report as edits what changes no text, before and
// after the message was accepted.
func TestMetadataIsNoEdit(t *testing.T) {
	s := newEmulated(t)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	m := s.say(t, s.ann, "see https://a.test", nil)
	in.wait(t, atLeast(1))
	edit := func(text string) emulator.Sent {
		t.Helper()
		sent, err := s.Edit(s.ann, m.Message, text)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	preview := edit("see https://a.test")
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(preview.Update) })
	// Each of these changes the text, the last one back to what it was at first.
	for i, text := range []string{"see https://b.test", "see https://a.test"} {
		edit(text)
		again := edit(text)
		in.wait(t, atLeast(2+i))
		s.until(t, func(st emulator.State) bool { return st.IsConfirmed(again.Update) })
	}
	// Both may have come in one batch, where the second is not known to change nothing.
	got := slices.Compact(in.texts())
	if want := []string{"see https://a.test", "see https://b.test", "see https://a.test"}; !slices.Equal(got, want) {
		t.Errorf("accepted %q, want %q", got, want)
	}
	if got := in.texts(); got[0] == got[1] {
		t.Errorf("the preview of a link counts as an edit: %q", got)
	}
}

// TestEditThatWasNotKeptComesAgain checks that an edit which could not be accepted is
// not taken for one that changes nothing when it comes again.
func TestEditThatWasNotKeptComesAgain(t *testing.T) {
	t.Parallel()
	s := newEmulated(t)
	m := s.say(t, s.ann, "first", nil)
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	in.wait(t, atLeast(1))
	in.mu.Lock()
	in.errs = []error{errors.New("disk full")}
	in.mu.Unlock()
	if _, err := s.Edit(s.ann, m.Message, "second"); err != nil {
		t.Fatal(err)
	}
	if got := in.wait(t, atLeast(2)); got[1].Text != "second" || got[1].Kind != chats.KindEdit {
		t.Errorf("accepted %+v", got)
	}
}

// TestAnEditThatCallsTheBotIsAMessage has somebody in a group add the mention that they forgot.
func TestAnEditThatCallsTheBotIsAMessage(t *testing.T) {
	s := newEmulated(t, emulator.Config{NoPrivacyMode: true})
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Members: []int64{s.ann}})
	in := newInbox()
	stop := run(t, s.p, in)
	defer stop()
	m := s.say(t, group, "what is the time?", nil)
	sent, err := s.Edit(group, m.Message, "@oneclaw_bot what is the time?")
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(sent.Update) })
	got := in.wait(t, atLeast(1))[0]
	if got.Kind != chats.KindText || got.Text != "what is the time?" || got.ID != strconv.FormatInt(m.Message, 10) {
		t.Errorf("accepted %+v", got)
	}
}

func TestEditionsForget(t *testing.T) {
	e := newSeenTexts()
	of := func(id int, kind chats.Kind, text string) []event {
		return []event{{message: &chats.Message{Chat: private.Chat, ID: strconv.Itoa(id), Kind: kind, Text: text}}}
	}
	for i := range 3 * maxSeenTexts {
		e.remember(of(i, chats.KindText, "text"))
	}
	for id := range 3 * maxSeenTexts {
		want := 0
		if id < 2*maxSeenTexts {
			want = 1 // forgotten
		}
		if got := e.dropUnchanged(of(id, chats.KindEdit, "text")); len(got) != want {
			t.Fatalf("the edit of message %d that changes nothing gives %d events, want %d", id, len(got), want)
		}
		if got := e.dropUnchanged(of(id, chats.KindEdit, "new text")); len(got) != 1 {
			t.Errorf("the edit of message %d is dropped", id)
		}
	}
}

// TestTopicThatIsGone answers in a topic that was deleted, of a group and of a private
// chat: the answer stands in the chat, once, and says why.
//
// Topics that are gone.
func TestTopicThatIsGone(t *testing.T) {
	for _, kind := range []string{emulator.Supergroup, emulator.Private} {
		t.Run(kind, func(t *testing.T) {
			s := newEmulated(t)
			user := s.AddUser(emulator.User{}).ID
			chat := s.chat(t, emulator.ChatSpec{Kind: kind, Forum: true, User: user})
			topic, err := s.AddTopic(chat, "T")
			if err != nil {
				t.Fatal(err)
			}
			sent, err := s.Say(chat, user, "@oneclaw_bot hi", &emulator.SayOptions{Thread: topic})
			if err != nil {
				t.Fatal(err)
			}
			in := newInbox()
			stop := run(t, s.p, in)
			defer stop()
			asked := in.wait(t, atLeast(1))[0]
			if asked.Chat != to(chat, topic, 0).Chat || asked.Direct != (kind == emulator.Private) {
				t.Fatalf("asked %+v", asked)
			}
			if err := s.DeleteTopic(chat, topic); err != nil {
				t.Fatal(err)
			}
			to := chats.Address{Chat: asked.Chat, ReplyTo: strconv.FormatInt(sent.Message, 10)}
			_ = s.p.SetTyping(t.Context(), to, true) // refused, and nothing follows from it
			for i, part := range []chats.Part{{Text: "<b>late</b>", Plain: "late", Buttons: oneButton("Yes", "x")}, {Text: "<broken", Plain: "plain"}} {
				if _, err := s.p.Send(t.Context(), to, part); err != nil {
					t.Fatalf("Send = %v", err)
				}
				answers := s.answers(chat)
				if len(answers) != i+1 {
					t.Fatalf("%d messages of %d", len(answers), i+1)
				}
				a := answers[i]
				if a.Thread != 0 || a.ReplyTo != 0 || a.Text != topicNotice+"\n\n"+part.Plain || len(a.Buttons) != len(part.Buttons) {
					t.Errorf("there stands %+v", a)
				}
			}
		})
	}
}

// TestMentionsCallNobody checks that what a model writes calls nobody, and that what is
// no mention looks as it should.
func TestMentionsCallNobody(t *testing.T) {
	s := newEmulated(t)
	text := "@ann, ask @bob_2 (or *@carl*, [@dora](https://d.test)) or mail eve@example.com; run `@decorator` and\n\n```py\n@cached\ndef f(): pass\n```\n\n[Eve](tg://user?id=5) > @frank"
	parts := s.p.Render(text)
	plain := chats.Part{Plain: parts[0].Plain}
	for name, part := range map[string]chats.Part{"html": parts[0], "plain": plain} {
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), part); err != nil {
			t.Fatal(err)
		}
		answers := s.answers(s.ann)
		a := answers[len(answers)-1]
		for _, e := range a.Entities {
			if e.Type == "mention" || e.Type == "text_mention" || strings.HasPrefix(e.URL, "tg:") {
				t.Errorf("%s: %+v calls somebody in %q", name, e, a.Text)
			}
		}
		seen := strings.ReplaceAll(a.Text, "\u200b", "")
		for _, want := range []string{"@ann, ask @bob_2", "@carl", "@dora", "mail eve@example.com;", "@decorator", "@cached\ndef f()", "@frank"} {
			if !strings.Contains(seen, want) {
				t.Errorf("%s: %q is not in %q", name, want, seen)
			}
		}
		if !strings.Contains(a.Text, "eve@example.com") {
			t.Errorf("%s: the address is broken in %q", name, a.Text)
		}
		if name == "html" && (!strings.Contains(a.Text, "@decorator") || !strings.Contains(a.Text, "@cached")) {
			t.Errorf("code is broken in %q", a.Text)
		}
	}
	f := out("a.txt", "for @ann and x@y.z", []byte("x"))
	if _, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), f); err != nil {
		t.Fatal(err)
	}
	answers := s.answers(s.ann)
	if a := answers[len(answers)-1]; a.Text != "for @\u200bann and x@y.z" || len(a.Entities) != 0 {
		t.Errorf("caption %q with %+v", a.Text, a.Entities)
	}
}
