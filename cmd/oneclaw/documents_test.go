package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// officeSample is a document that another program has made.
func officeSample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../toolgroups/documents/office/testdata/files", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestConversationAboutDocuments sends a Word document, asks about it, has a workbook made, which
// arrives as a file, and has that read: the group is loaded once, when it is needed.
func TestConversationAboutDocuments(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()
	sent := &telegram.Attachment{Kind: telegram.KindDocument, Name: "report.docx", MIME: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", Data: officeSample(t, "report.docx")}
	wantIn(t, w.ask(bot, ann, "What is this about?", sent), "report.docx", "Word document, 2 pages", "The harbour handled 120 ships")
	if first := w.model.Requests()[0].ToolNames(); slices.Contains(first, "read_document") {
		t.Errorf("the first request offers %v, want the core alone", first)
	}
	wantIn(t, w.ask(bot, ann, "find Dr. Holm in it", nil), "2:7", "The crane was repaired by Dr. Holm")
	encrypted := &telegram.Attachment{Kind: telegram.KindDocument, Name: "costs.xlsx", MIME: "application/octet-stream", Data: officeSample(t, "encrypted.xlsx")}
	wantIn(t, w.ask(bot, ann, "What is in it?", encrypted), "protected with a password")
	before := len(w.answers(ann))
	wantIn(t, w.ask(bot, ann, "Make a spreadsheet: item, cost; rent, 900; food, 400", nil), "Here is table.xlsx")
	w.until(bot, "file", func(s telegram.State) bool { return s.CountAnswers(ann) == before+2 })
	w.telegram.View(func(s telegram.State) {
		m := s.Answers(ann)[before+1]
		if m.File == nil || m.File.Kind != telegram.KindDocument || m.File.Name != "table.xlsx" || !bytes.HasPrefix(m.File.Data, []byte("PK")) {
			t.Errorf("arrived: %+v with %+v", m, m.File)
		}
	})
	bot.kill(syscall.SIGTERM)
	bot = w.run()
	wantIn(t, w.ask(bot, ann, "Read table.xlsx", nil), "Excel workbook, 1 sheet", "rent")
	if w.loads() != 1 {
		t.Errorf("the group was loaded %d times", w.loads())
	}
	bot.kill(syscall.SIGTERM)
}

// TestDocumentsOnSlack is the same in a thread.
func TestDocumentsOnSlack(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	server, channel, members := w.withSlack(t, "Ann")
	bot := start(t, w.env, "run")
	waitSlack(t, server, "socket", func(s slack.State) bool { return s.ActiveSockets() > 0 })
	root, err := server.Say(channel, members[0], "<@U0BOT> what is this about?", &slack.SayOptions{
		Files: []slack.Attachment{{Name: "costs.xlsx", MIME: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", Data: officeSample(t, "costs.xlsx")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	waitSlack(t, server, "answer", func(s slack.State) bool { return s.CountAnswers(channel) == 1 })
	if _, err := server.Say(channel, members[0], "Table as a Word document: planet, moons; Mars, 2", &slack.SayOptions{Thread: root.TS}); err != nil {
		t.Fatal(err)
	}
	waitSlack(t, server, "file", func(s slack.State) bool { return s.CountAnswers(channel) == 3 })
	server.View(func(s slack.State) {
		answers := s.Answers(channel)
		wantIn(t, answers[0].Text, "Excel workbook, 3 sheets", "=SUM(C2:C4)")
		wantIn(t, answers[1].Text, "Here is")
		if files := answers[2].Files; len(files) != 1 || files[0].Name != "table.docx" || !strings.HasPrefix(string(files[0].Data), "PK") {
			t.Errorf("arrived: %+v", answers[2])
		}
	})
	bot.kill(syscall.SIGTERM)
}
