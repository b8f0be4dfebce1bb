package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// smallModel is a local model with Ollama's manners and a small context.
type smallModel struct {
	t       *testing.T
	context int
	// group, if not empty, is loaded with the first message.
	group string

	mu        sync.Mutex
	summaries int
	largest   int // tokens of the largest request
}

// Reply implements openai.Responder.
func (m *smallModel) Reply(_ context.Context, req openai.Request) (openai.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := len(req.ToolsJSON)
	for _, one := range req.Messages {
		size += len(one.Content)
	}
	if m.largest = max(m.largest, size/4); req.Truncated > 0 {
		m.t.Errorf("request %d of %d tokens lost %d messages in silence", req.Seq, size/4, req.Truncated)
	}
	if strings.HasPrefix(req.Messages[0].Content, "You sum up the beginning") {
		m.summaries++
		return openai.Reply{Text: strings.Repeat("They talk on. ", 100)}, nil
	}
	if last := req.Messages[len(req.Messages)-1]; m.group != "" && len(req.Messages) == 2 && last.Role == "user" {
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "load_tool_group", Arguments: fmt.Sprintf(`{"group_name":%q}`, m.group)}}}, nil
	}
	return openai.Reply{Text: strings.Repeat("answers ", 250)}, nil
}

// servedBy starts a model server with the manners of Ollama and sends the bot there.
func (w *harness) servedBy(context int, brain openai.Responder) {
	w.t.Helper()
	p, _ := openai.ProfileByName("ollama")
	srv, err := openai.New(openai.Config{Profile: p, Context: context, MaxTools: 200, Responder: brain})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = srv.Close() })
	if w.env["OPENAI_BASE_URL"], err = srv.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.env["OPENAI_MODEL"] = p.Model
}

// Forty long messages need few summaries in a small context, with a large group too, and nothing that is sent
// is cut by the server.
func TestASmallContextHoldsALongConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		context, most int
		group         string
	}{{8_192, 10, ""}, {8_192, 10, "pdf"}, {8_192, 10, "google_gmail"}, {32_768, 3, "google_gmail"}} {
		t.Run(fmt.Sprint(c.context, c.group), func(t *testing.T) {
			w := newHarness(t, openai.Offline{})
			m := &smallModel{t: t, context: c.context, group: c.group}
			w.servedBy(c.context, m)
			bot, ann := w.run(), w.person("Ann")
			for n := range 40 {
				got := w.ask(bot, ann, fmt.Sprint("Message ", n+1, strings.Repeat(" and so on", 200)), nil)
				if wantIn(t, got, "answers"); strings.Contains(got, "too long") || strings.Contains(got, "takes only") {
					t.Errorf("message %d is answered with a notice: %s", n+1, tail(got, 200))
				}
			}
			bot.kill(syscall.SIGTERM)
			if t.Logf("%d summaries, requests of up to %d tokens", m.summaries, m.largest); m.summaries > c.most || m.largest > c.context*9/10 {
				t.Errorf("%d summaries, want at most %d; the largest request has %d tokens", m.summaries, c.most, m.largest)
			}
		})
	}
}

// textPDF is a document of pages of text, each of which ends with its mark.
func textPDF(pages int) *telegram.Attachment {
	var out bytes.Buffer
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	out.WriteString("%PDF-1.4\n")
	object("<</Type/Catalog/Pages 2 0 R>>")
	var kids strings.Builder
	for n := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*n)
	}
	object(fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", pages, kids.String()))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	for n := range pages {
		object(fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>", 5+2*n))
		text := "BT /F 9 Tf 12 TL 20 780 Td\n" + strings.Repeat("("+strings.Repeat("words ", 12)+") Tj T*\n", 40) + fmt.Sprintf("(end of page %d.) Tj ET", n+1)
		object(fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(text), text))
	}
	at := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&out, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, at)
	return &telegram.Attachment{Kind: telegram.KindDocument, Name: "long.pdf", MIME: "application/pdf", Data: out.Bytes()}
}

// A model with a small context reads a long document in pieces, each of which it sees whole, and knows what
// is remembered.
func TestASmallContextReadsAPDFInPieces(t *testing.T) {
	t.Parallel()
	const pages, pieces = 12, 12
	for _, size := range []int{8_192, 32_768} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := newHarness(t, openai.Offline{})
			small := &smallModel{t: t, context: size}
			file, step := "", 0
			call := func(name, args string) openai.Reply {
				step++
				return openai.Reply{Calls: []openai.ToolCall{{ID: fmt.Sprint("call_", step), Name: name, Arguments: args}}}
			}
			w.servedBy(size, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
				if reply, err := small.Reply(ctx, req); strings.HasPrefix(reply.Text, "They talk") || err != nil {
					return reply, err
				}
				last := req.Messages[len(req.Messages)-1]
				if found := attached.FindStringSubmatch(last.Content); last.Role == "user" && found != nil {
					file = found[1]
				}
				switch {
				case step == 0:
					return call("save_memory", `{"content":"Ann takes her tea without sugar."}`), nil
				case step == 1 && last.Role == "user" && file != "":
					return call("load_tool_group", `{"group_name":"pdf"}`), nil
				case step == 2:
					return call("pdf_extract_text", fmt.Sprintf(`{"path":%q}`, file)), nil
				case step >= 3 && step < 3+pieces:
					if piece := step - 3; piece == 0 {
						wantIn(t, last.Content, "Go on with pages") // all of it at once is too much for any model
					} else if !strings.Contains(last.Content, fmt.Sprintf("end of page %d.", piece)) || strings.Contains(last.Content, "Go on") {
						t.Errorf("piece %d is not whole: %s", piece, tail(last.Content, 300))
					}
					return call("pdf_extract_text", fmt.Sprintf(`{"path":%q,"pages":"%d"}`, file, step-2)), nil
				case last.Role == "user" && strings.Contains(last.Content, "tea"):
					if text := req.Messages[0].Content + last.Content; !strings.Contains(text, "without sugar") {
						t.Errorf("what was remembered is not in the request: %s", tail(text, 600))
					}
					return openai.Reply{Text: "Without sugar."}, nil
				}
				return openai.Reply{Text: "Done: " + tail(last.Content, 20)}, nil
			}))
			bot, ann := w.run(), w.person("Ann")
			w.ask(bot, ann, "Please remember how I take it: without sugar", nil)
			wantIn(t, w.ask(bot, ann, "/clear", nil), "cleared")
			wantIn(t, w.ask(bot, ann, "How do I take my tea?", nil), "Without sugar")
			wantIn(t, w.ask(bot, ann, "Read all of it.", textPDF(pages)), fmt.Sprintf("end of page %d.", pages))
			wantIn(t, w.ask(bot, ann, "How do I take my tea?", nil), "Without sugar")
			bot.kill(syscall.SIGTERM)
			if small.summaries > 2 || small.largest > size*9/10 {
				t.Errorf("%d summaries, the largest request has %d tokens", small.summaries, small.largest)
			}
		})
	}
}

// A context that is too small is said at the start, by doctor, and once in the chat, and what to do.
func TestATooSmallContextIsSaid(t *testing.T) {
	t.Parallel()
	for size, small := range map[int]bool{4_096: true, 8_192: false, 32_768: false} {
		w := newHarness(t, openai.Offline{})
		w.servedBy(size, openai.Offline{})
		all, _ := examined(t, w.env)
		if found := all["model"]; (found.Status == doctor.VerdictWarn) != small || strings.Contains(found.Text, "OLLAMA_CONTEXT_LENGTH=8192") != small {
			t.Errorf("doctor says of %d: %+v", size, found)
		}
		bot, ann := w.run(), w.person("Ann")
		told := 0
		for range 3 {
			if answer := w.ask(bot, ann, "hello", nil); strings.Contains(answer, "takes only") {
				told++
				wantIn(t, answer, fmt.Sprintf("takes only %d tokens", size), "oneclaw doctor")
			}
		}
		bot.kill(syscall.SIGTERM)
		if (told == 1) != small || strings.Contains(bot.out.String(), "the model is of limited use") != small {
			t.Errorf("with %d tokens the chat is told %d times, and the start logs %s", size, told, tail(bot.out.String(), 600))
		}
	}
}
