package markdown_test

import (
	"slices"
	"testing"

	"oneclaw/internal/markdown"
)

// Chinese, Japanese and Korean text has no spaces around emphasis.
func TestEmphasisBesidePunctuationOfScriptsWithoutSpaces(t *testing.T) {
	for source, want := range map[string][2]string{
		"**重要：**これは":            {"<b>重要：</b>これは", "*重要：*\u200bこれは"},
		"これは**「設定」**です":         {"これは<b>「設定」</b>です", "これは\u200b*「設定」*\u200bです"},
		"**서울(Seoul)**은":        {"<b>서울(Seoul)</b>은", "*서울(Seoul)*\u200b은"},
		"是**“重点”**吗，**第二。**好":   {"是<b>“重点”</b>吗，<b>第二。</b>好", ""},
		"中文~~（旧）~~中文":           {"中文<s>（旧）</s>中文", "中文\u200b~（旧）~\u200b中文"},
		"这是*《书》*。":              {"这是<i>《书》</i>。", "这是\u200b_《书》_\u200b。"},
		"2**3**4 and a**(b)c":   {"2<b>3</b>4 and a**(b)c", ""},
		"snake_case_name 蛇_形_名": {"snake_case_name 蛇_形_名", ""},
		"**Note:**text":         {"**Note:**text", ""},
		"** 空 ** 白":             {"** 空 ** 白", ""},
	} {
		doc := markdown.Parse(source)
		if got := doc.TelegramHTML(4096); len(got) != 1 || got[0].Text != want[0] {
			t.Errorf("%s is %+v, want %q", source, got, want[0])
		}
		if got := doc.SlackMrkdwn(3000); want[1] != "" && (len(got) != 1 || got[0].Text != want[1]) {
			t.Errorf("%s is %+v on Slack, want %q", source, got, want[1])
		}
	}
}

// The tag of a line break makes one, in a table too; in code it is text.
func TestTagsOfLineBreaks(t *testing.T) {
	for source, want := range map[string]string{
		"one<br>two<BR/>three<br />four": "one\ntwo\nthree\nfour",
		"one<br>\ntwo":                   "one\ntwo",
		"one<br><br>two":                 "one\n\ntwo",
		"- item<br>more":                 "• item\n    more",
		"a `<br>` b":                     "a <code>&lt;br&gt;</code> b",
		"one\n\n<br>\n\ntwo":             "one\n\ntwo",
		"<b>x</b>":                       "&lt;b&gt;x&lt;/b&gt;",
		"| a | b |\n|---|--:|\n| one<br>two | 1<br>22 |\n| x | 3 |": "<pre>a   |  b\n----+---\none |  1\ntwo | 22\nx   |  3</pre>",
	} {
		if got := markdown.Parse(source).TelegramHTML(4096); len(got) != 1 || got[0].Text != want {
			t.Errorf("%q is %+v, want %q", source, got, want)
		}
	}
	if got := markdown.Parse("one<br>two").SlackMrkdwn(3000); len(got) != 1 || got[0].Text != "one\ntwo" {
		t.Errorf("on Slack: %+v", got)
	}
	pieces := markdown.Parse("| a |\n|---|\n| one<br>two |").Pieces()
	if len(pieces) != 1 || pieces[0].Table == nil || !slices.Equal(pieces[0].Table.Rows[1], []string{"one\ntwo"}) {
		t.Errorf("a table is %+v", pieces)
	}
}
