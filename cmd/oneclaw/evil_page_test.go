package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups/browser"
)

// browsing opens the address that the user names, and repeats what it was told.
func browsing(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == "tool" {
		return openai.Reply{Text: "told: " + last.Content}, nil
	}
	_, address, _ := strings.Cut(last.Content, "open ")
	wait := 1
	if strings.HasSuffix(address, "/evil") {
		wait = 20 // as long as it may take
	}
	arguments := fmt.Sprintf(`{"url":%q,"mode":"extract","wait_seconds":%d}`, address, wait)
	return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "browser", Arguments: arguments}}}, nil
}

// TestAPageIsClosedThatTakesTooMuchMemory has the real program open a page that
// takes memory until it is stopped, and then an ordinary one.
//
// A page cannot take the memory of the host.
func TestAPageIsClosedThatTakesTooMuchMemory(t *testing.T) {
	t.Parallel()
	if _, err := browser.FindChromium(""); err != nil {
		t.Skip("Chromium is not installed")
	}
	site := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		page := "<p>an ordinary page</p><script>document.title = 'x'</script>"
		if r.URL.Path == "/evil" {
			page = `<p>hungry</p><script>
				// In one go: the page is not there before it has what it wants, however busy the machine is.
				const kept = [];
				while (kept.length < 96) kept.push(new Uint8Array(16 << 20).fill(1));
			</script>`
		}
		out.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(out, page)
	}))
	defer site.Close()
	w := newHarness(t, openai.ResponderFunc(browsing))
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"] = "127.0.0.1/32"
	w.env["ONECLAW_TOOLS_BROWSER_MEMORY_MIB"] = "700"
	ann := w.person("Ann")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "open "+site.URL+"/evil", nil), "told:", "more than 700 MiB of memory")
	wantIn(t, w.ask(bot, ann, "open "+site.URL+"/good", nil), "told:", "an ordinary page")
}
