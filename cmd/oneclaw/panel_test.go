package main

import (
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
	bot := w.run()
	w.ask(bot, ann, "hello", nil)
	wantIn(t, w.ask(bot, ann, "/tools", nil), "Loaded: none. I load tools as needed (", "% cheaper).")
	w.tap(bot, ann, "Show all")
	wantIn(t, w.shows(bot, ann, "13 of 163 tools are loaded"), "So far in this chat: about ", "were saved")
	wantIn(t, w.tap(bot, ann, "PDF Tools"), "Loading PDF Tools.")
	w.shows(bot, ann, "Loaded: pdf.")
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
	wantIn(t, w.ask(bot, ann, "/tools", nil), "Loaded: pdf.")
}
