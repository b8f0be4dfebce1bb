package main

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage/postgres/pgtest"
)

// withImages sets up the model that makes pictures.
func (w *harness) withImages() {
	w.env["ONECLAW_IMAGES_MODEL"], w.env["ONECLAW_IMAGES_QUALITY"], w.env["ONECLAW_BUDGET_USER_USD"] = openai.ImageModel, "medium", "1"
}

// picture waits for a picture of the given size among the files that the bot has sent.
func (s *botChat) picture(width, height int) (found shown) {
	s.t.Helper()
	s.until("picture", func(all []shown) bool {
		return slices.ContainsFunc(all, func(m shown) bool {
			about, err := png.DecodeConfig(bytes.NewReader(m.file.data))
			found = m
			return err == nil && about.Width == width && about.Height == height
		})
	})
	return found
}

// TestPicturesAreMadeAndChanged: what is asked for arrives as a picture, the next message changes it, a
// refusal is said plainly and costs nothing, and the rest is paid at its real price.
func TestPicturesAreMadeAndChanged(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.Offline{}, func(s *botChat) {
		s.w.withImages()
		s.start()
		s.say(0, "draw a cat")
		s.one("Here is a cat.")
		first := s.picture(1024, 1024)
		wantIn(s.t, first.file.name, "a-cat-", ".png")
		s.say(0, "make it blue")
		s.one("changed.")
		s.until("the changed picture", func(all []shown) bool {
			return slices.ContainsFunc(all, func(m shown) bool { return strings.HasPrefix(m.file.name, "blue-") })
		})
		s.say(0, "draw gore")
		s.one("The provider's filter refused this picture, and it cost nothing.")
		made := s.w.model.Pictures()
		if len(made) != 2 || made[0].Prompt != "a cat" || made[0].Quality != "medium" || made[1].Prompt != "blue" || !bytes.Equal(made[1].Source, first.file.data) {
			s.t.Errorf("made %+v", made)
		}
		// 439 tokens of pictures twice at $30 a million, and the source and the words at $8.
		s.say(0, "/usage")
		wantIn(s.t, s.one("you:").text, "$0.03 of $1.00")
		if first := s.w.model.Requests()[0].ToolNames(); slices.Contains(first, "generate_image") {
			s.t.Errorf("the first request offers %v, want the core alone", first)
		}
	})
}

// TestAPictureThatIsRepliedToIsChanged: the picture is that of the message replied to, and the new one has
// its form.
func TestAPictureThatIsRepliedToIsChanged(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.withImages()
	ann := w.person("Ann")
	bot := w.run()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 60, 20))); err != nil {
		t.Fatal(err)
	}
	w.ask(bot, ann, "hello", nil)
	photo := w.say(ann, "hi", &telegram.Attachment{Kind: telegram.KindDocument, Name: "wide.png", MIME: "image/png", Data: b.Bytes()})
	w.until(bot, "answer", func(s telegram.State) bool { return s.CountAnswers(ann) == 2 })
	w.ask(bot, ann, "hello", nil)
	if _, err := w.telegram.Say(ann, ann, "make it blue", &telegram.SayOptions{ReplyTo: photo.Message}); err != nil {
		t.Fatal(err)
	}
	w.until(bot, "picture", func(s telegram.State) bool { return s.CountAnswers(ann) == 5 })
	if made := w.model.Pictures(); len(made) != 1 || made[0].Size != "1536x1024" || !bytes.Equal(made[0].Source, b.Bytes()) {
		t.Errorf("made %+v", made)
	}
	bot.kill(syscall.SIGTERM)
}

// TestAKilledPictureIsPaidAndNotMadeAgain kills the bot while the picture is made.
func TestAKilledPictureIsPaidAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"bolt", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t, openai.Offline{})
			w.withImages()
			if engine == "postgres" {
				server := &pgtest.Server{}
				t.Cleanup(func() { _ = server.Stop() })
				w.env["ONECLAW_STORE"], w.env["ONECLAW_SECRET_KEY"] = server.Database(t), strings.Repeat("ab", 32)
			}
			reached, free := make(chan struct{}), make(chan struct{})
			w.model.OnPicture(func(openai.PictureRequest) *openai.Error {
				close(reached)
				<-free
				return nil
			})
			ann := w.person("Ann")
			bot := w.run()
			w.say(ann, "draw a cat", nil)
			<-reached
			bot.kill(syscall.SIGKILL)
			close(free)
			bot = w.run()
			wantIn(t, w.shows(bot, ann, "I was interrupted while I used"), "It may have cost money already.")
			if n := len(w.model.Pictures()); n != 1 {
				t.Errorf("%d pictures were made", n)
			}
			// It counts as it was expected: 1,756 tokens at $30 a million.
			wantIn(t, w.ask(bot, ann, "/usage", nil), "$0.05 of $1.00")
			bot.kill(syscall.SIGTERM)
		})
	}
}

// drawer is a model that makes a picture once. Its answer waits until the bot was killed.
type drawer struct {
	openai.Offline
	reached chan struct{}
	once    atomic.Bool
}

func (d *drawer) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if strings.HasPrefix(last.Content, "Made and sent") || strings.HasPrefix(last.Content, "[made by tools") {
		if d.once.CompareAndSwap(false, true) {
			close(d.reached)
			<-ctx.Done()
			return openai.Reply{}, ctx.Err()
		}
	}
	return d.Offline.Reply(ctx, req)
}

// TestAPictureArrivesThroughAKill kills the bot after the picture is made: it arrives once, and is not
// made again.
func TestAPictureArrivesThroughAKill(t *testing.T) {
	t.Parallel()
	model := &drawer{reached: make(chan struct{})}
	w := newHarness(t, model)
	w.withImages()
	ann := w.person("Ann")
	bot := w.run()
	w.say(ann, "draw a cat", nil)
	<-model.reached
	bot.kill(syscall.SIGKILL)
	bot = w.run()
	w.shownTo(bot, ann, "Here is a cat.") // the picture may stand below it by now
	w.until(bot, "picture", func(s telegram.State) bool {
		return slices.ContainsFunc(s.Answers(ann), func(m telegram.Message) bool { return m.File != nil && m.File.Kind == telegram.KindPhoto })
	})
	w.ask(bot, ann, "hello", nil)
	pictures := 0
	w.telegram.View(func(s telegram.State) {
		for _, m := range s.Answers(ann) {
			if m.File != nil {
				pictures++
			}
		}
	})
	if n := len(w.model.Pictures()); n != 1 || pictures != 1 {
		t.Errorf("%d pictures were made, %d arrived", n, pictures)
	}
	bot.kill(syscall.SIGTERM)
}

// TestPicturesNeedABudget: without one, no picture is asked for. A picture that uses the budget up arrives.
func TestPicturesNeedABudget(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.withImages()
	w.env["ONECLAW_BUDGET_USER_USD"] = "0.01"
	ann := w.person("Ann")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "draw a cat", nil), "budget is used up: you have used $0.01 of $0.01")
	w.until(bot, "picture", func(s telegram.State) bool {
		all := s.Answers(ann)
		return len(all) == 2 && all[1].File != nil
	})
	wantIn(t, w.ask(bot, ann, "draw a dog", nil), "budget is used up")
	if n := len(w.model.Pictures()); n != 1 {
		t.Errorf("%d pictures were made", n)
	}
	bot.kill(syscall.SIGTERM)
}
