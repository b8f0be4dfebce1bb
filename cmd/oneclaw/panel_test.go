package main

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestThePanelLoadsAGroup: the panel says what tools cost and have saved, and a button
// loads a group, whose tools the next request offers, after a restart, too.
func TestThePanelLoadsAGroup(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	bot := w.run()
	w.ask(bot, ann, "hello", nil)
	wantIn(t, w.ask(bot, ann, "/tools", nil), "Just ask: I load the tools that I need. For example:\n", "PDF Tools – “What does page 3 of this PDF say?”", "Loaded: none.")
	w.tap(bot, ann, "Show all")
	wantIn(t, w.shows(bot, ann, "13 of 165 tools are loaded"), "So far in this chat: about ", "were saved")
	wantIn(t, w.tap(bot, ann, "PDF Tools"), "Loading PDF Tools.")
	w.shows(bot, ann, "Loaded: PDF Tools.")
	w.ask(bot, ann, "hello", nil)
	if !slices.Contains(w.lastTools(), "pdf_info") {
		t.Errorf("the next request offers %v", w.lastTools())
	}
	bot.kill(syscall.SIGTERM)
	bot = w.run()
	w.ask(bot, ann, "hello", nil)
	if !slices.Contains(w.lastTools(), "pdf_info") {
		t.Errorf("after a restart a request offers %v", w.lastTools())
	}
	wantIn(t, w.ask(bot, ann, "/tools", nil), "Loaded: PDF Tools.")
}
