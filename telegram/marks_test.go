package telegram

import (
	"slices"
	"testing"

	"oneclaw/bridge/chats"
)

// Formatting may be what a message says, so the model reads it as Markdown.
func TestFormattingThatCarriesMeaningReachesTheModel(t *testing.T) {
	for fields, want := range map[string]string{
		`"text":"milk, bread, eggs: what is left?","entities":[{"type":"strikethrough","offset":0,"length":6},{"type":"strikethrough","offset":6,"length":5}]`:                                                                        "~~milk,~~ ~~bread~~, eggs: what is left?",
		`"caption":"🎉 old new","caption_entities":[{"type":"strikethrough","offset":3,"length":4}],"photo":[{"file_id":"p"}]`:                                                                                                         "🎉 ~~old~~ new",
		`"text":"I was told\nso and so\nIs it true?","entities":[{"type":"blockquote","offset":0,"length":20}]`:                                                                                                                       "> I was told\n> so and so\n\nIs it true?",
		`"text":"see he said no what now","entities":[{"type":"expandable_blockquote","offset":4,"length":10}]`:                                                                                                                       "see \n> he said no\n\n what now",
		`"text":"print(1)\nprint(2)","entities":[{"type":"pre","offset":0,"length":17,"language":"python"}]`:                                                                                                                          "```python\nprint(1)\nprint(2)\n```",
		"\"text\":\"run a```b now\",\"entities\":[{\"type\":\"pre\",\"offset\":4,\"length\":5}]":                                                                                                                                      "run \n````\na```b\n````\n now",
		`"text":"run ls -l and a","entities":[{"type":"code","offset":4,"length":5}]`:                                                                                                                                                 "run `ls -l` and a",
		"\"text\":\"run a`b now\",\"entities\":[{\"type\":\"code\",\"offset\":4,\"length\":3}]":                                                                                                                                       "run `` a`b `` now",
		`"text":"ls -l","entities":[{"type":"code","offset":0,"length":5}]`:                                                                                                                                                           "ls -l",
		`"text":"let us meet tomorrow at 5","entities":[{"type":"date_time","offset":12,"length":13,"unix_time":1772730000,"date_time_format":"wDT"}]`:                                                                                "let us meet tomorrow at 5 (2026-03-05 17:00 UTC)",
		`"text":"milk and see here","entities":[{"type":"strikethrough","offset":0,"length":17},{"type":"text_link","offset":13,"length":4,"url":"https://a.b"}]`:                                                                     "~~milk and see here (https://a.b)~~",
		`"text":"a b c","entities":[{"type":"bold","offset":0,"length":5},{"type":"spoiler","offset":2,"length":1}]`:                                                                                                                  "a ||b|| c",
		`"text":"the urgent one","entities":[{"type":"bold","offset":4,"length":7}]`:                                                                                                                                                  "the urgent one",
		`"text":"/clear now","entities":[{"type":"bot_command","offset":0,"length":6},{"type":"strikethrough","offset":7,"length":3}]`:                                                                                                "/clear now",
		`"poll":{"id":"1","question":"old new","question_entities":[{"type":"strikethrough","offset":0,"length":3}],"options":[{"persistent_id":"0","text":"a b","text_entities":[{"type":"strikethrough","offset":2,"length":1}]}]}`: "[poll: ~~old~~ new]\n- a ~~b~~",
		`"checklist":{"title":"Trip","tasks":[{"id":1,"text":"Pack all","text_entities":[{"type":"strikethrough","offset":5,"length":3}]}]}`:                                                                                          "[checklist: Trip]\n- [ ] Pack ~~all~~",
		`"rich_message":{"blocks":[{"type":"paragraph","text":["10",{"type":"superscript","text":"6"}," H",{"type":"subscript","text":"2"},"O ",{"type":"superscript","text":["a","b"]}," ",{"type":"strikethrough","text":"no"}," ",
			{"type":"code","text":"x"}," ",{"type":"bold","text":"b"}," ",{"type":"marked","text":"m"}," ",{"type":"date_time","text":"today","unix_time":1772730001,"date_time_format":"D"}]},
			{"type":"pre","text":"a` + "```" + `b"}]}`: "10^6 H_2O ^(ab) ~~no~~ `x` b ==m== today (2026-03-05 17:00:01 UTC)\n````\na```b\n````",
	} {
		got := decodeMessage(t, "message", "private", fields)
		if got == nil || got.Text != want {
			t.Errorf("%s\nis read as %+v\nwant %q", fields, got, want)
		}
	}
	const struck = `"text":"milk, eggs","entities":[{"type":"strikethrough","offset":0,"length":4}]`
	for name, fields := range map[string]string{
		"answered":  `"text":"what is left?","reply_to_message":{"message_id":1,"date":1,"from":{"id":6,"first_name":"B"},"chat":{"id":-7,"type":"private"},` + struck + `}`,
		"quoted":    `"text":"what is left?","external_reply":{"origin":{"type":"hidden_user","sender_user_name":"B","date":1}},"quote":{"position":0,"is_manual":true,` + struck + `}`,
		"forwarded": `"forward_origin":{"type":"hidden_user","sender_user_name":"B","date":1},` + struck,
	} {
		if got := decodeMessage(t, "message", "private", fields); got == nil || len(got.Quoted) != 1 || got.Quoted[0].Text != "~~milk~~, eggs" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := decodeMessage(t, "message", "supergroup", `"text":"@oneclaw_bot milk, eggs","entities":[{"type":"bold","offset":0,"length":23},{"type":"mention","offset":0,"length":12},{"type":"strikethrough","offset":13,"length":4}]`); got == nil || got.Text != "~~milk~~, eggs" {
		t.Errorf("behind a mention: %+v", got)
	}
}

// A reply can point at a part of a message: the model learns at which.
func TestAReplyNamesTheItemThatItPointsAt(t *testing.T) {
	const (
		list  = `"checklist":{"title":"Trip","tasks":[{"id":1,"text":"Pack"},{"id":7,"text":"Book a room"}]}`
		poll  = `"poll":{"id":"1","question":"Lunch?","options":[{"persistent_id":"a1","text":"Soup","voter_count":0},{"persistent_id":"b2","text":"Pizza","voter_count":0}]}`
		reply = `"text":"how do I do this one?","reply_to_message":{"message_id":1,"date":1,"from":{"id":6,"first_name":"B"},"chat":{"id":-7,"type":"private"},`
		from  = `"text":"how do I do this one?","external_reply":{"origin":{"type":"hidden_user","sender_user_name":"B","date":1},`
	)
	for fields, want := range map[string]string{
		reply + list + `},"reply_to_checklist_task_id":7`: "Book a room",
		from + list + `},"reply_to_checklist_task_id":7`:  "Book a room",
		reply + list + `},"reply_to_checklist_task_id":9`: "one that is no longer there",
		reply + poll + `},"reply_to_poll_option_id":"b2"`: "Pizza",
		reply + list + `}`: "",
		reply + `"text":"x"},"reply_to_poll_option_id":"b2"`: "",
	} {
		got := decodeMessage(t, "message", "private", fields)
		if got == nil || len(got.Quoted) != 1 || got.Quoted[0].Item != want || got.Text != "how do I do this one?" {
			t.Errorf("%s\nis read as %+v, want the item %q", fields, got, want)
		}
	}
	got := decodeMessage(t, "message", "private", `"text":"where is this?","reply_to_story":{"chat":{"id":6,"type":"private","first_name":"B"},"id":3}`)
	if got == nil || len(got.Quoted) != 1 || !slices.Equal(got.Quoted[0].Skipped, []string{"a story: I can't read that yet"}) || got.Quoted[0].By != "B" {
		t.Errorf("a reply to a story is read as %+v", got)
	}
}

// Pictures come with a message wherever they are in it.
func TestPicturesOfLivePhotosAndPollsAreTaken(t *testing.T) {
	const (
		live = `"live_photo":{"file_id":"v","duration":3,"photo":[{"file_id":"small","width":1,"height":1},{"file_id":"p","width":9,"height":9}]}`
		from = `"text":"what is this?","external_reply":{"origin":{"type":"hidden_user","sender_user_name":"B","date":1},`
	)
	refs := func(files []chats.Attachment) (all []string) {
		for _, f := range files {
			all = append(all, f.Ref+" "+f.Name)
		}
		return all
	}
	if got := decodeMessage(t, "message", "private", `"photo":[{"file_id":"p","width":9,"height":9}],`+live); got == nil || !slices.Equal(refs(got.Files), []string{"p photo.jpg"}) {
		t.Errorf("a live photo is read as %+v", got)
	}
	got := decodeMessage(t, "message", "private", from+live+`}`)
	if got == nil || len(got.Quoted) != 1 || !slices.Equal(refs(got.Quoted[0].Files), []string{"p photo.jpg"}) || len(got.Quoted[0].Skipped) != 0 {
		t.Errorf("one of another chat is read as %+v", got)
	}
	got = decodeMessage(t, "message", "private", from+`"live_photo":{"file_id":"v","duration":3}}`)
	if got == nil || len(got.Quoted) != 1 || !slices.Equal(got.Quoted[0].Skipped, []string{"a live photo: I can't read that yet"}) {
		t.Errorf("one without a picture is read as %+v", got)
	}
	got = decodeMessage(t, "message", "private", `"poll":{"id":"1","question":"Which?","media":{"photo":[{"file_id":"q","width":1,"height":1}]},"options":[
		{"persistent_id":"0","text":"A","voter_count":0,"media":{`+live+`}},{"persistent_id":"1","text":"B","voter_count":0,"media":{"location":{"latitude":1,"longitude":2}}},
		{"persistent_id":"2","text":"C","voter_count":0,"media":{"video":{"file_id":"x"}}},{"persistent_id":"3","text":"D","voter_count":0,"media":{"link":{"url":"https://a.test"}}}],
		"explanation":"because","explanation_media":{"document":{"file_id":"d","file_name":"why.pdf"}}}`)
	const text = "[poll: Which?] [file: question]\n- A [file: option-1]\n- B [location: 1, 2]\n- C [a video or a sticker, which I cannot see]\n- D https://a.test\n[explanation: because] [file: explanation]"
	if got == nil || got.Text != text || !slices.Equal(refs(got.Files), []string{"q question.jpg", "p option-1.jpg", "d why.pdf"}) {
		t.Errorf("a poll with pictures is read as %+v", got)
	}
}
