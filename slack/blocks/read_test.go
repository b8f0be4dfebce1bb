package blocks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheTextOfEachKindOfBlockIsRead(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return `{"type":"mrkdwn","text":"` + s + `"}` }
	for name, tt := range map[string]struct{ block, want string }{
		"section":  {`{"type":"section","text":` + text("*Disk* full") + `,"fields":[` + text("Host: <https://a.example|db1>") + `,` + text("95 &lt; 96") + `]}`, "*Disk* full\nHost: <https://a.example|db1>\n95 &lt; 96"},
		"header":   {`{"type":"header","text":{"type":"plain_text","text":"a < b"}}`, "a &lt; b"},
		"context":  {`{"type":"context","elements":[{"type":"image","image_url":"https://a.example/x","alt_text":"logo"},` + text("since noon") + `]}`, "[not received: a picture, “logo”]\nsince noon"},
		"divider":  {`{"type":"divider"}`, ""},
		"markdown": {`{"type":"markdown","text":"# Title <x>"}`, "# Title &lt;x&gt;"},
		"image":    {`{"type":"image","title":{"type":"plain_text","text":"Load"},"alt_text":"a curve"}`, "[not received: a picture, “Load – a curve”]"},
		"video":    {`{"type":"video","title":{"type":"plain_text","text":"Intro"},"alt_text":"Intro"}`, "[not received: a video, “Intro”]"},
		"file":     {`{"type":"file","external_id":"x","source":"remote"}`, "[not received: a file that lies outside of Slack]"},
		"buttons": {
			`{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Approve"},"confirm":{"title":{"type":"plain_text","text":"Sure?"}}},
			{"type":"static_select","placeholder":{"type":"plain_text","text":"Who"},"options":[{"text":{"type":"plain_text","text":"Ann"},"value":"1"},{"text":{"type":"plain_text","text":"Bob"},"value":"2"}]},
			{"type":"hologram"}]}`,
			"[button: Approve]\n[choice: Who; Ann, Bob]\n[not received: a block of the kind “hologram”]",
		},
		"input":    {`{"type":"input","label":{"type":"plain_text","text":"Why"},"element":{"type":"plain_text_input","placeholder":{"type":"plain_text","text":"because"}}}`, "Why\n[field: because]"},
		"no words": {`{"type":"actions","elements":[{"type":"datepicker","action_id":"1"}]}`, "[field]"},
		"rich text": {
			`{"type":"rich_text","elements":[
			{"type":"rich_text_section","elements":[{"type":"text","text":"Ask "},{"type":"user","user_id":"U1"},{"type":"text","text":" in "},{"type":"channel","channel_id":"C1"},
				{"type":"emoji","name":"wave","skin_tone":2},{"type":"broadcast","range":"here"},{"type":"usergroup","usergroup_id":"S1"},{"type":"link","url":"https://a.example/?a=1&b=2","text":"here"},
				{"type":"text","text":"old","style":{"strike":true}},{"type":"text","text":"run()","style":{"code":true}},{"type":"color","value":"#fff"},{"type":"date","timestamp":0},{"type":"hologram"}]},
			{"type":"rich_text_list","style":"ordered","offset":2,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"one"}]},{"type":"text","text":"two"}]},
			{"type":"rich_text_list","style":"bullet","indent":1,"elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"point"}]}]},
			{"type":"rich_text_quote","elements":[{"type":"text","text":"said\nso"}]},
			{"type":"rich_text_preformatted","elements":[{"type":"text","text":"a & b"}]}]}`,
			"Ask <@U1> in <#C1>:wave::skin-tone-2:<!here><!subteam^S1><https://a.example/?a=1&amp;b=2|here>~old~`run()`#fff1970-01-01 00:00 UTC[not received: a block of the kind “hologram”]\n" +
				"3. one\n4. two\n  • point\n&gt; said\n&gt; so\n```\na &amp; b\n```",
		},
		"table": {
			`{"type":"table","rows":[[{"type":"raw_text","text":"Item"},{"type":"raw_text","text":"Price"}],
			[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"https://a.example","text":"tea|pot"}]}]},{"type":"raw_number","value":12345678901234567890}],
			[{"type":"raw_text","text":"a|b\nc"},{"type":"raw_number","value":1.50,"text":"1.50 €"}],[7,{"type":"raw_text","text":" "}],"x"]}`,
			"| Item | Price |\n|---|---|\n| <https://a.example|tea|pot> | 12345678901234567890 |\n| a\\|b c | 1.50 € |\n| [not received: a cell that I cannot read] |  |\n| [not received: a row that I cannot read] |",
		},
		"data table": {
			`{"type":"data_table","caption":"Team","rows":[[{"type":"raw_text","text":"Name"},{"type":"raw_text","text":"Do"}],[{"type":"raw_text","text":"Ann"},{"type":"action","element":{"type":"button","text":{"type":"plain_text","text":"Call"}}}]]}`,
			"Team\n| Name | Do |\n|---|---|\n| Ann | [button: Call] |",
		},
		"chart": {
			`{"type":"data_visualization","title":"Sales","chart":{"type":"bar","series":[{"name":"2026","data":[{"label":"Q1","value":1.50},{"label":"Q2","value":2}]}]}}`,
			"[bar chart] Sales\n2026: Q1 1.50, Q2 2",
		},
		"container":         {`{"type":"container","title":{"type":"plain_text","text":"Box"},"child_blocks":[{"type":"section","text":` + text("inside") + `}]}`, "Box\ninside"},
		"card":              {`{"type":"carousel","elements":[{"type":"card","title":` + text("A") + `,"body":` + text("B") + `,"hero_image":{"type":"image","alt_text":"C"}}]}`, "A\nB\n[not received: a picture, “C”]"},
		"task":              {`{"type":"task_card","title":"Search","output":{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"found"}]}]},"sources":[{"type":"url","url":"https://a.example","text":"source"}]}`, "Search\nfound\n<https://a.example|source>"},
		"new kind":          {`{"type":"hologram","scene":{"type":"mrkdwn","text":"still text"},"id":"h1"}`, "still text"},
		"new kind, no text": {`{"type":"hologram","id":"h1"}`, "[not received: a block of the kind “hologram”]"},
		"new field":         {`{"type":"section","text":` + text("a") + `,"footer":{"type":"plain_text","text":"b"}}`, "a\nb"},
		"odd field":         {`{"type":"section","text":7,"fields":"x"}`, "x"},
		"no block":          {`7`, "[not received: a part of this message that I cannot read]"},
	} {
		r := NewReader(1000)
		if got := strings.Join(r.Read(json.RawMessage("["+tt.block+"]")), "\n"); got != tt.want || r.Rest() != "" {
			t.Errorf("%s: got %q, want %q %s", name, got, tt.want, r.Rest())
		}
	}
}

func TestWhatIsTooLongIsCutWithALine(t *testing.T) {
	t.Parallel()
	repeat := func(s string, n int) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	cell := `{"type":"raw_text","text":"cell"}`
	for name, tt := range map[string]struct{ blocks, want string }{
		"many blocks":   {repeat(`{"type":"section","text":{"type":"mrkdwn","text":"one"}}`, 1000), "[not received: 900 more blocks of this message]"},
		"many rows":     {`{"type":"table","rows":[` + repeat("["+cell+"]", 1_000_000) + `]}`, "more rows of this table]"},
		"many cells":    {`{"type":"table","rows":[[` + repeat(cell, 1_000_000) + `]]}`, "[not received: 999900 more cells of this row]"},
		"empty cells":   {`{"type":"table","rows":[` + repeat(`[{"type":"raw_text"}]`, 100_000) + `]}`, "more rows of this table]"},
		"a long text":   {`{"type":"markdown","text":"` + strings.Repeat("é", 100_000) + `"}`, "[not received: the rest of this message, which is too long]"},
		"many elements": {`{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + repeat(`{"type":"text","text":"word "}`, 100_000) + `]}]}`, "[not received: the rest of this message, which is too long]"},
		"deep":          {strings.Repeat(`{"type":"container","child_blocks":[`, 200) + `{"type":"markdown","text":"x"}` + strings.Repeat(`]}`, 200), "[not received: a part of this message that I cannot read]"},
	} {
		r := NewReader(10_000)
		got := strings.Join(append(r.Read(json.RawMessage("["+tt.blocks+"]")), r.Rest()), "\n")
		if n := utf8.RuneCountInString(got); n > 20_000 || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %d characters, ending in %q", name, n, got[max(0, len(got)-200):])
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`[{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}]`)
	f.Add(`[{"type":"rich_text","elements":[{"type":"rich_text_list","style":"ordered","elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"x","text":"y"}]}]}]}]`)
	f.Add(`[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"x"}}]},{"type":"data_visualization","chart":{"segments":[{"label":"a","value":1}]}}]`)
	f.Fuzz(func(t *testing.T, raw string) {
		const limit = 500
		r := NewReader(limit)
		for _, text := range r.Read(json.RawMessage(raw)) {
			if !utf8.ValidString(text) {
				t.Errorf("no text: %q", text)
			}
		}
		if r.left > limit || r.left < -3*maxReadCells-200 {
			t.Error(fmt.Sprint("characters left: ", r.left))
		}
	})
}
