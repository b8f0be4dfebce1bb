package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// strictPlatform refuses the content of its messages.
type strictPlatform struct {
	*platform
	refuses func(part chats.Part) bool

	mu    sync.Mutex
	tried []chats.Part
}

// Render gives each part a form without formatting.
func (p *strictPlatform) Render(markdown string) []chats.Part {
	parts := p.platform.Render(markdown)
	for i := range parts {
		parts[i].Plain = strings.ReplaceAll(parts[i].Text, "*", "")
	}
	return parts
}

func (p *strictPlatform) try(part chats.Part) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tried = append(p.tried, part); p.refuses(part) {
		return &chats.SendError{Outcome: chats.Refused, ContentRefused: true, Err: errors.New("400 odd")}
	}
	return nil
}

func (p *strictPlatform) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if err := p.try(part); err != nil {
		return "", err
	}
	return p.platform.Send(ctx, to, part)
}

func (p *strictPlatform) Edit(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	if err := p.try(part); err != nil {
		return err
	}
	return p.platform.Edit(ctx, to, id, part)
}

func (p *strictPlatform) Room(chats.Address, string) time.Duration { return 0 }

func (p *strictPlatform) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	return p.platform.Send(ctx, to, show.Part)
}

func (p *strictPlatform) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	return p.platform.Edit(ctx, to, id, show.Part)
}

func (p *strictPlatform) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	return p.Edit(ctx, to, id, part)
}

var refusalLine = regexp.MustCompile(`^I could not show this part of my answer: the chat service refused it, even as plain text\.\n\nIncident ([0-9a-zA-Z-]+)$`)

// TestARefusedTextEndsWithSomethingThatAPersonSees: a text that a platform refuses is shown as plain text without
// buttons, and otherwise as a line with an incident; so is a preview whose answer was refused.
func TestARefusedTextEndsWithSomethingThatAPersonSees(t *testing.T) {
	formatted := func(part chats.Part) bool { return part.Text != "" || part.Buttons != nil }
	everyForm := func(part chats.Part) bool { return !strings.Contains(part.Plain, "Incident") }
	anything := func(chats.Part) bool { return true }
	long := func(part chats.Part) bool { return strings.Contains(part.Text+part.Plain, "two") && everyForm(part) }
	for name, tt := range map[string]struct {
		answer  string
		slowly  bool
		refuses func(chats.Part) bool
		want    []string // an empty text stands for the line
		state   receipts.State
	}{
		"formatting":                       {"**one**\ftwo", false, formatted, []string{"one", "two"}, receipts.Done},
		"every form":                       {"**one**", false, everyForm, []string{""}, receipts.Failed},
		"every form of one part":           {"one\ftwo\fthree", false, long, []string{"one", "", "three"}, receipts.Failed},
		"anything":                         {"one", false, anything, nil, receipts.Failed},
		"formatting of a shown answer":     {"**one** two three", true, formatted, []string{"one two three"}, receipts.Done},
		"every form of a shown answer":     {"**one** two three", true, everyForm, []string{""}, receipts.Failed},
		"formatting of a long answer":      {"**one** two three\ffour", true, formatted, []string{"one two three", "four"}, receipts.Done},
		"every form of a long answer":      {"**one** two three\ffour", true, long, []string{"", "four"}, receipts.Failed},
		"every form of a later part of it": {"**one** three four\ftwo", true, long, []string{"**one** three four", ""}, receipts.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				think := answering(tt.answer)
				if tt.slowly {
					think = words(tt.answer)
				}
				p := &strictPlatform{platform: newPlatform(), refuses: tt.refuses}
				r := newHarness(t, think, func(cfg *bridge.Config) {
					cfg.Platforms = []chats.Platform{p}
					cfg.Turns.RedactPartial = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
				})
				r.platform = p.platform
				r.accept(direct("1", "x"))
				r.closed(1)
				var receipt receipts.Receipt
				for entry, err := range r.cfg.Store.List(t.Context(), storage.Range{Prefix: receipts.Prefix}) {
					if err = errors.Join(err, json.Unmarshal(entry.Value, &receipt)); err != nil {
						t.Fatal(err)
					}
				}
				if receipt.State != tt.state {
					t.Errorf("the receipt says %q, want %q", receipt.State, tt.state)
				}
				got := p.texts()
				for i, text := range got {
					m := refusalLine.FindStringSubmatch(text)
					if m == nil {
						continue
					}
					got[i] = ""
					if !slices.ContainsFunc(receipt.Answer.Parts, func(p receipts.Part) bool { return p.Incident == m[1] }) {
						t.Errorf("the receipt has no incident %s", m[1])
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("shown is %q, want %q", got, tt.want)
				}
				for _, s := range p.sent {
					if s.buttons != nil {
						t.Errorf("%q has buttons", s.text)
					}
				}
				if n := len(p.tried); n > 8 {
					t.Errorf("tried %d times", n)
				}
				r.stop()
			})
		})
	}
}

// TestACardWhoseButtonsAreRefusedIsClosed: a card that a person cannot decide on must not wait, and a change of
// a card that is refused is shown as plain text.
func TestACardWhoseButtonsAreRefusedIsClosed(t *testing.T) {
	t.Parallel()
	v, p := &voter{}, &strictPlatform{platform: newPlatform()}
	p.refuses = func(part chats.Part) bool { return part.Buttons != nil || strings.Contains(part.Text, "*") }
	r := newHarness(t, echo, voting(v, func(cfg *bridge.Config) { cfg.Platforms = []chats.Platform{p} }))
	r.platform = p.platform
	card := vote()
	card.Text = "**Tea**?"
	r.post("a", chatOne, card)
	p.until(t, "closed card", func(all []sent) bool { return len(all) == 1 && all[0].text == "nobody voted" })
	if seen := v.seen(); len(seen) != 1 || !seen[0].Expired {
		t.Errorf("presses: %+v", seen)
	}
	p.mu.Lock()
	p.refuses = func(part chats.Part) bool { return strings.Contains(part.Text, "*") }
	p.mu.Unlock()
	r.post("b", chatOne, vote())
	shown := p.wait(t, 2)[1]
	v.mu.Lock()
	v.decide = func(interact.Press) (interact.Result, error) {
		return interact.Result{Text: "**no**", Close: true}, nil
	}
	v.mu.Unlock()
	r.accept(pressOn(shown, "p", "1", shown.button(t, "No")))
	p.until(t, "changed card", func(all []sent) bool { return all[1].text == "no" && all[1].buttons == nil })
}

// gonePlatform no longer has the messages that it is to edit.
type gonePlatform struct{ *platform }

func (gonePlatform) Edit(context.Context, chats.Address, string, chats.Part) error {
	return &chats.SendError{Outcome: chats.Refused, Err: errors.New("400 message to edit not found")}
}

// People delete cards, which is no error of the bot.
func TestACardThatSomebodyDeletedIsNoError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := gonePlatform{newPlatform()}
	r := newHarness(t, echo, voting(&voter{}, func(cfg *bridge.Config) {
		cfg.Platforms, cfg.Logger = []chats.Platform{p}, slog.New(slog.NewTextHandler(&log, nil))
	}))
	r.platform = p.platform
	r.post("a", chatOne, vote())
	card := p.wait(t, 1)[0]
	r.accept(pressOn(card, "p", "1", card.button(t, "No")))
	p.toast(t, "p")
	r.accept(direct("2", "hello"))
	p.one(t, "re: hello")
	r.stop()
	if said := log.String(); strings.Contains(said, "level=ERROR") || !strings.Contains(said, "a message could not be edited") {
		t.Errorf("the log says %s", said)
	}
}
