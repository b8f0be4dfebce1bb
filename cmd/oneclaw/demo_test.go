package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// demoChat is a chat of the demo, as its page shows and uses it.
type demoChat struct {
	t                     *testing.T
	address, pane, thread string
}

// demoMessage is a message that the page shows.
type demoMessage struct {
	ID, Text string
	Bot      bool
	Files    []struct{ Name, Type string }
}

// say writes as the person at the page.
func (c *demoChat) say(text string, files ...map[string]any) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"pane": c.pane, "thread": c.thread, "text": text, "files": files})
	if err != nil {
		c.t.Fatal(err)
	}
	answer := c.fetch(http.MethodPost, "/say", body)
	var sent struct{ TS string }
	if err := json.Unmarshal(answer, &sent); err != nil {
		c.t.Fatalf("%s: %v", answer, err)
	}
	if c.thread == "" {
		c.thread = sent.TS // of Slack alone
	}
}

// fetch returns what the demo answers.
func (c *demoChat) fetch(method, path string, body []byte) []byte {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s %s, %v", path, res.Status, data, err)
	}
	return data
}

// until reads what the page is told until it shows, after what the person wrote last, a message of the bot
// as it should be.
func (c *demoChat) until(what string, cond func(demoMessage) bool) demoMessage {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	var last []demoMessage
	for lines.Scan() && ctx.Err() == nil {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var view map[string]json.RawMessage
		var pane struct{ Messages []demoMessage }
		if err := json.Unmarshal([]byte(data), &view); err != nil {
			c.t.Fatal(err)
		}
		if err := json.Unmarshal(view[c.pane], &pane); err != nil {
			c.t.Fatal(err)
		}
		last = pane.Messages[max(0, len(pane.Messages)-4):]
		for _, m := range slices.Backward(pane.Messages) {
			if !m.Bot {
				break
			}
			if cond(m) {
				return m
			}
		}
	}
	c.t.Fatalf("%s never shows %s, but %+v: %v", c.pane, what, last, ctx.Err())
	return demoMessage{}
}

// shows waits for a message of the bot with these texts.
func (c *demoChat) shows(texts ...string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%q", texts), func(m demoMessage) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(m.Text, text) })
	})
}

// file waits for a file whose name begins and ends like these, and returns its type and content.
func (c *demoChat) file(prefix, suffix string) (kind string, data []byte) {
	c.t.Helper()
	m := c.until("a file "+prefix+"…"+suffix, func(m demoMessage) bool {
		return len(m.Files) == 1 && strings.HasPrefix(m.Files[0].Name, prefix) && strings.HasSuffix(m.Files[0].Name, suffix)
	})
	return m.Files[0].Type, c.fetch(http.MethodGet, "/file?pane="+c.pane+"&n=0&message="+url.QueryEscape(m.ID), nil)
}

// TestDemoMakesPicturesDocumentsAndSpeech talks to the demo as its page does, in both chats: a picture is
// made and changed, a document read, searched and written, and an answer spoken. The page can show, save and
// play each.
func TestDemoMakesPicturesDocumentsAndSpeech(t *testing.T) {
	t.Parallel()
	address := startDemo(t)
	for pane, sign := range map[string]string{"telegram": "/", "slack": "!"} {
		t.Run(pane, func(t *testing.T) {
			t.Parallel()
			c := &demoChat{t: t, address: address, pane: pane}
			c.say("Draw a cat")
			c.shows("Here is a cat.")
			kind, first := c.file("a-cat-", ".png")
			if about, err := png.DecodeConfig(bytes.NewReader(first)); kind != "image/png" || err != nil || about.Width != 1024 {
				t.Errorf("a picture as %q: %+v, %v", kind, about, err)
			}
			c.say("Make it blue")
			if _, second := c.file("blue-", ".png"); bytes.Equal(first, second) {
				t.Error("the picture is as it was")
			}

			c.say("What is this about?", map[string]any{"name": "report.docx", "type": "application/octet-stream", "data": officeSample(t, "report.docx")})
			c.shows("report.docx", "Word document, 2 pages", "The harbour handled 120 ships")
			c.say("find Dr. Holm in it")
			c.shows("2:7", "The crane was repaired by Dr. Holm")
			c.say("Make a spreadsheet: item, cost; rent, 900; food, 400")
			if kind, book := c.file("table", ".xlsx"); kind != "" || !bytes.HasPrefix(book, []byte("PK")) {
				t.Errorf("a workbook as %q: %.20q", kind, book)
			}
			c.say("Read table.xlsx")
			c.shows("Excel workbook, 1 sheet")

			c.say(sign + "voice on")
			c.shows("I speak my answers here.")
			c.say("17*23")
			c.shows("17*23 = ", "391")
			want := map[string]struct{ kind, name, begin string }{"telegram": {"audio/ogg", "", "OggS"}, "slack": {"audio/mpeg", "answer.mp3", "\xff\xfb"}}[pane]
			if kind, sound := c.file(want.name, ""); kind != want.kind || !bytes.HasPrefix(sound, []byte(want.begin)) {
				t.Errorf("an answer as %q: %.20q", kind, sound)
			}
		})
	}
}

// TestDemoPageShowsPicturesAndPlaysRecordings looks at both chats in a browser.
func TestDemoPageShowsPicturesAndPlaysRecordings(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	for pane, sign := range map[string]string{"telegram": "/", "slack": "!"} {
		suggest(t, ctx, pane, "Draw a cat", 1)
		waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .msg img")].some((i) => i.complete && i.naturalWidth === 1024)`, pane))
		suggest(t, ctx, pane, sign+"voice on", 2)
		says(t, ctx, pane, "I speak my answers here")
		suggest(t, ctx, pane, "17*23", 3)
		waitFor(t, ctx, fmt.Sprintf(`document.querySelectorAll("#%s .msg audio").length === 1`, pane))
		do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const a = document.querySelector("#%s .msg audio"); a.preload = "auto"; a.load(); })()`, pane)))
		waitFor(t, ctx, fmt.Sprintf(`document.querySelector("#%s .msg audio").readyState > 0`, pane))
		picture(t, ctx, "demo-media-"+pane)
	}
}

// TestDemoPageSendsWhatAPhoneCan sends a place from the menu of Telegram, and edits a message in both chats.
func TestDemoPageSendsWhatAPhoneCan(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	waitFor(t, ctx, `[...document.querySelectorAll("#slack .sample")].every((b) => b.hidden)`)
	do(t, ctx, chromedp.Click(chromedp.CSS("#telegram .more summary")))
	waitFor(t, ctx, `document.querySelector("#telegram .more").open`)
	picture(t, ctx, "demo-attach")
	do(t, ctx, chromedp.Click(chromedp.CSS(`#telegram .sample[value="place"]`)))
	says(t, ctx, "telegram", "I have the place: Harbour Café")
	for _, pane := range []string{"telegram", "slack"} {
		do(t, ctx, chromedp.Focus(chromedp.CSS("#"+pane+" textarea")), chromedp.KeyEvent("17*2"), chromedp.KeyEvent("\r"))
		says(t, ctx, pane, "34")
		do(t, ctx, chromedp.Focus(fmt.Sprintf(`(//section[@id=%q]//button[@class="reply edit"])[last()]`, pane)), chromedp.KeyEvent("\r"))
		waitFor(t, ctx, fmt.Sprintf(`document.querySelector("%s .staged").innerText.includes("Editing")`, inside(pane)))
		do(t, ctx, chromedp.KeyEvent("3"), chromedp.KeyEvent("\r"))
		waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .mine")].at(-1).innerText.includes("17*23")`, pane))
		picture(t, ctx, "demo-edit-"+pane)
	}
}
