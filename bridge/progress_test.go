package bridge_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/toolgroups"
)

// reader is a model that calls what each question names, and then says what the results were.
// Its tools take two seconds for a page.
func reader(t *testing.T, effect toolgroups.Effect) (*agent.Agent, *toolgroups.Registry) {
	t.Helper()
	model := agent.New(agent.Config{Model: obedient{}})
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "exec", Description: "Read.", Effect: effect, Activity: "reading {command}", Timeout: time.Hour,
		Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			for _, page := range []string{"page 1", "page 2 *SECRET* @all"} {
				toolgroups.Report(ctx, page)
				for range 4 {
					if err := halfSecond(ctx); err != nil {
						return toolgroups.Result{}, err
					}
				}
			}
			return toolgroups.TextResult("read")
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return model, registry
}

// progressRig is a bridge with a reader that shows what it does.
func progressRig(t *testing.T, effect toolgroups.Effect) (*harness, *growing) {
	t.Helper()
	model, registry := reader(t, effect)
	p := &growing{platform: newPlatform()}
	hide := func(text string) string { return strings.ReplaceAll(text, "SECRET", "••••") }
	r := newHarness(t, nil, func(cfg *bridge.Config) {
		cfg.Platforms = []chats.Platform{p}
		cfg.Turns.Agent, cfg.Turns.Tools = model, func() *toolgroups.Registry { return registry }
		cfg.Redact, cfg.Turns.RedactPartial = hide, hide
		cfg.ApprovalPolicy = func(toolgroups.Call, toolgroups.Tool) interact.Policy {
			if effect == toolgroups.ReadOnly {
				return interact.Policy{Rule: interact.Allow}
			}
			return interact.Policy{}
		}
	})
	r.platform = p.platform
	return r, p
}

// While tools run a line says what they do and how far they are, without secrets and without
// calling anybody; the answer takes its place.
func TestALineSaysWhatIsBeingDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := progressRig(t, toolgroups.ReadOnly)
		var lines []string
		p.seen = func(text string) { lines = append(lines, text) }
		r.accept(direct("1", "run autumn-report.pdf SECRET\nrun b.pdf"))
		r.closed(1)
		want := []string{
			"⏳ reading autumn-report.pdf ••••, page 1, and 1 more",
			"⏳ reading autumn-report.pdf ••••, page 2 ∗••••∗ ＠all, and 1 more",
		}
		if len(lines) < 3 || !slices.Equal(lines[:2], want) || lines[len(lines)-1] != "read | read" {
			t.Errorf("it was shown as %q", lines)
		}
		if all := p.wait(t, 1); len(all) != 1 || all[0].text != "read | read" || all[0].buttons != nil {
			t.Errorf("there stands %+v", all)
		}
	})
}

// A turn that takes long says so from time to time, in few edits, also where the model says
// nothing.
func TestATurnOfMinutesNeverLooksDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := previewRig(t, nil)
		var lines []string
		p.seen = func(text string) { lines = append(lines, text) }
		r.stop()
		r.cfg.Turns.Agent = agent.New(agent.Config{Model: pensive(3 * time.Minute)})
		r.start()
		r.accept(direct("1", "hello"))
		r.closed(1)
		want := []string{"💭 Thinking (20 s)", "💭 Thinking (40 s)", "💭 Thinking (1 min)", "💭 Thinking (2 min)", "at last"}
		if len(lines) > 4 {
			lines = slices.DeleteFunc(lines, func(line string) bool { return line == "💭 Thinking (3 min)" })
		}
		if !slices.Equal(lines, want) {
			t.Errorf("it was shown as %q", lines)
		}
	})
}

// pensive is a model that takes its time.
type pensive time.Duration

func (p pensive) Complete(ctx context.Context, _ agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	timer := time.NewTimer(time.Duration(p))
	defer timer.Stop()
	select {
	case <-timer.C:
		return agent.Reply{Text: "at last"}, nil
	case <-ctx.Done():
		return agent.Reply{}, context.Cause(ctx)
	}
}

// A question stands below what was shown before it, and what comes then below the question.
func TestACardStandsBelowThePreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := progressRig(t, toolgroups.Consequential)
		r.stop()
		r.cfg.Turns.Agent = agent.New(agent.Config{Model: hesitant{}})
		r.start()
		r.accept(direct("1", "run a.pdf"))
		all := p.until(t, "the end of the preview and the card", func(all []sent) bool {
			return len(all) == 2 && all[0].buttons == nil
		})
		if all[0].text != "Let me look.\n\n⏬ This goes on below." {
			t.Errorf("above the card stands %q", all[0].text)
		}
		r.restart()
		r.accept(pressOn(all[1], "p1", "1", all[1].button(t, "Allow once")))
		all = p.until(t, "the next preview", func(all []sent) bool { return len(all) == 3 })
		if len(all[2].buttons) != 1 || !strings.HasPrefix(all[2].text, "⏳ reading a.pdf") {
			t.Errorf("below the card stands %+v", all[2])
		}
		p.until(t, "the answer", func(all []sent) bool { return all[2].text == "read" && all[2].buttons == nil })
		r.closed(4)
		if all := p.wait(t, 3); len(all) != 3 || all[0].text != "Let me look.\n\n⏬ This goes on below." {
			t.Errorf("there stands %+v", all)
		}
	})
}

// hesitant is an [obedient] model that takes two seconds and says something with its calls.
type hesitant struct{}

func (hesitant) Complete(ctx context.Context, req agent.Request, tell func(agent.Delta)) (agent.Reply, error) {
	reply, err := obedient{}.Complete(ctx, req, tell)
	if err != nil || len(reply.Calls) == 0 {
		return reply, err
	}
	reply.Text = "Let me look."
	tell(agent.Delta{Text: reply.Text})
	for range 4 {
		if err := halfSecond(ctx); err != nil {
			return reply, err
		}
	}
	return reply, nil
}
