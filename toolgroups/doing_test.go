package toolgroups_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"oneclaw/toolgroups"
)

func TestWhatACallDoesInEverydayWords(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "••••") }
	for _, tt := range []struct{ name, doing, arguments, want string }{
		{"pdf_extract_text", "reading {path}", `{"path":"docs/2026/autumn-report.pdf"}`, "reading autumn-report.pdf"},
		{"pdf_extract_text", "reading {path}", `{"path":7}`, "reading"},
		{"webfetch", "reading {url}", `{"url":"https://ann:hunter2@example.com:8443/a/b/?token=hunter2"}`, "reading example.com:8443"},
		{"webfetch", "reading {url}", `{"url":" https://ann@example.com:8443/a/b/?q=1#x "}`, "reading example.com/a/b"},
		{"search_web", "searching the web for {query}", `{"query":"the\nword hunter2"}`, "searching the web for the word ••••"},
		{"search_web", "searching the web for {query}", `not JSON`, "searching the web for"},
		{"calendar_create_event", "", `{"title":"Lunch"}`, "creating event (calendar): Lunch"},
		{"gmail_search", "", `{"query":"is:unread"}`, "searching gmail: is:unread"},
		{"list_models", "", `{}`, "listing models"},
		{"linear_searchIssues", "", `{"limit":3}`, "searching issues (linear)"},
		{"weather", "", `null`, "using weather"},
		{"read", "", `{"path":"/"}`, "reading"},
		{"write_file", "", `{"path":"` + strings.Repeat("long", 40) + `"}`, "writing file: " + strings.Repeat("long", 7) + "lon…"},
	} {
		tool := toolgroups.Tool{Name: tt.name, Activity: tt.doing}
		if got := toolgroups.DescribeCall(tool, json.RawMessage(tt.arguments), hide); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.name, tt.arguments, got, tt.want)
		}
	}
}

// Whatever a model calls and a server names, the line is short, one line, and shows no secret.
func TestWhatACallDoesIsOneShortLine(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "••••") }
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ /a-z\n]{0,40}hunter2[ /.a-z]{0,40}`)).Draw(t, "value")
		arguments, err := json.Marshal(map[string]string{"path": value, "query": value, "url": "http://x/" + value})
		if err != nil {
			t.Fatal(err)
		}
		tool := toolgroups.Tool{Name: rapid.String().Draw(t, "name"), Activity: rapid.SampledFrom([]string{"", "reading {path}", "{url}", "{query} {path}"}).Draw(t, "doing")}
		got := toolgroups.DescribeCall(tool, arguments, hide)
		if utf8.RuneCountInString(got) > 60 || strings.ContainsAny(got, "\n\r\u202e\u200b") || strings.Contains(got, "hunter2") {
			t.Fatalf("%q", got)
		}
	})
}

func TestADownloadTellsHowFarItIs(t *testing.T) {
	for total, want := range map[int64][]string{
		2_500_000: {"1 of 3 MB", "2 of 3 MB"},
		-1:        {"1 MB", "2 MB"},
	} {
		var got []string
		ctx := toolgroups.WithReporter(t.Context(), func(step string) { got = append(got, step) })
		in := strings.NewReader(strings.Repeat("x", 2_500_000))
		n, err := io.Copy(io.Discard, iotest.HalfReader(toolgroups.ReportingReader(ctx, in, total)))
		if n != 2_500_000 || err != nil || !slices.Equal(got, want) {
			t.Errorf("%d bytes, %v, reported %q", n, err, got)
		}
	}
	// What is too long to be masked is left out, and so is all that nobody hears.
	ctx := toolgroups.WithReporter(t.Context(), func(step string) { t.Errorf("reported %d bytes", len(step)) })
	toolgroups.Report(ctx, strings.Repeat("x", 5000))
	toolgroups.Report(t.Context(), "x")
	in := strings.NewReader("")
	if toolgroups.ReportingReader(t.Context(), in, 0) != io.Reader(in) {
		t.Error("a download is counted for nobody")
	}
}
