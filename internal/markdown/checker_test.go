package markdown_test

import (
	"sync"
	"testing"

	"oneclaw/internal/markdown"
)

// TestCheckersRefuse shows that the checkers, on which the other tests rest,
// refuse what a platform would.
func TestCheckersRefuse(t *testing.T) {
	for _, html := range []string{
		"<b>a", "a</b>", "<b><i>a</b></i>", "<b></b>", "a & b", "a &copy; b", "a > b", "a < b", "<u1>a</u1>", "<b class=\"x\">a</b>",
		"<pre><b>a</b></pre>", "<code><i>a</i></code>", "<a href=\"http://a\"><a href=\"http://b\">c</a></a>", "<a href=\"javascript:x\">a</a>",
		"<a href=\"http://a?b&c\">a</a>", "<a href=\"http://a\"\">a</a>", "<blockquote>a<blockquote>b</blockquote></blockquote>",
		"<code class=\"language-go\">a</code>", "<pre><code class=\"language-\">a</code></pre>", "\xff",
	} {
		if _, err := checkTelegram(html); err == nil {
			t.Errorf("%q passes", html)
		}
	}
	for _, mrkdwn := range []string{"a < b", "a > b", "a & b", "&copy;", "<!channel>", "<@U123>", "<#C1|x>", "hi @channel", "@Everyone", "```a", "\xff"} {
		if _, err := checkSlack(mrkdwn); err == nil {
			t.Errorf("%q passes", mrkdwn)
		}
	}
	if err := whole("a b c", nil, []string{"a", "c"}); err == nil {
		t.Error("a lost word passes")
	}
}

// TestDocumentIsShared renders one document from several goroutines, for the
// race detector.
func TestDocumentIsShared(t *testing.T) {
	doc := markdown.Parse(benchmarkAnswer(2000))
	want := join(doc.SlackMrkdwn(200))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			doc.TelegramHTML(200)
			if got := join(doc.SlackMrkdwn(200)); got != want {
				t.Errorf("got %s", got)
			}
		})
	}
	group.Wait()
}
