package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/toolgroups"
)

// draws is an agent whose tool writes a file for each line of the question and wants
// them delivered; the answer is "done".
func draws(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		last := turn.History[len(turn.History)-1]
		if last.Role == agent.RoleUser {
			last = agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "0", Name: "draw", Arguments: last.Text}}}
			if !yield(last, nil) {
				return
			}
		}
		if last.Role == agent.RoleAssistant {
			result := agent.Message{Role: agent.RoleTool, CallID: "0", Status: agent.StatusOK, Text: "drawn"}
			for name := range strings.SplitSeq(last.Calls[0].Arguments, "\n") {
				write(turn.Scope.Workspace, name)
				result.Files = append(result.Files, toolgroups.File{Path: name, Caption: "see " + name})
			}
			failed := result
			failed.Status, failed.Files = agent.StatusError, []toolgroups.File{{Path: "failed.png"}}
			if !yield(result, nil) || !yield(failed, nil) {
				return
			}
		}
		yield(agent.Message{Role: agent.RoleAssistant, Text: "done", Final: true}, nil)
	}
}

// write makes a file whose name says what it should be like.
func write(workspace, name string) {
	content := "bytes of " + filepath.Clean(name)
	switch {
	case strings.Contains(name, "missing"), strings.HasPrefix(name, ".."), strings.Contains(name, "folder"):
		_ = os.MkdirAll(filepath.Join(workspace, "folder.png"), 0o700)
		return
	case strings.Contains(name, "empty"):
		content = ""
	case strings.Contains(name, "large"):
		content = strings.Repeat("x", 1001)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(workspace, name)), 0o700); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, name), []byte(content), 0o600); err != nil {
		panic(err)
	}
}

func picture(name string) string { return "<" + name + "|see " + name + "|bytes of " + name + ">" }

func TestFilesOfToolsAreSent(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("%02d.png", i)
	}
	shown := []string{"done"}
	for _, name := range many[:10] {
		shown = append(shown, picture(name))
	}
	for name, c := range map[string]struct {
		files string
		want  []string
	}{
		"one":               {"a.png", []string{"done", picture("a.png")}},
		"in order":          {"b.png\na.pdf", []string{"done", picture("b.png"), picture("a.pdf")}},
		"each once":         {"a.png\nb.png\n./a.png", []string{"done", picture("a.png"), picture("b.png")}},
		"in a folder":       {"out/a.png", []string{"done", "<a.png|see out/a.png|bytes of out/a.png>"}},
		"vanished":          {"missing.png\na.png", []string{"done", "[missing.png could not be sent: the file is gone]", picture("a.png")}},
		"empty":             {"empty.txt", []string{"done", "[empty.txt could not be sent: the file is empty]"}},
		"too large":         {"large.png", []string{"done", "[large.png could not be sent: it is larger than the 0 MB that I can send here]"}},
		"a folder":          {"folder.png", []string{"done", "[folder.png could not be sent: it is no file of my workspace]"}},
		"outside":           {"../x", []string{"done", "[x could not be sent: it is no file of my workspace]"}},
		"more than allowed": {strings.Join(many, "\n"), append(shown, "I send at most 10 files at once. These are in my workspace: 10.png, 11.png")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, draws)
				r.accept(direct("1", c.files))
				if diff := cmp.Diff(c.want, texts(r.platform.wait(t, len(c.want)))); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
				// The files belong to the turn that made them.
				r.accept(direct("2", "next.png"))
				got := texts(r.platform.wait(t, len(c.want)+2))[len(c.want):]
				if diff := cmp.Diff([]string{"done", picture("next.png")}, got); diff != "" {
					t.Errorf("the next answer (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

func TestFilesOfATurnLongerThanTheWindowAreSent(t *testing.T) {
	r := newHarness(t, draws, func(cfg *bridge.Config) { cfg.Turns.WindowTokens = 1 })
	r.accept(direct("1", "a.png"))
	r.platform.wait(t, 2)
	r.accept(direct("2", "b.png"))
	want := []string{"done", picture("a.png"), "done", picture("b.png")}
	if diff := cmp.Diff(want, texts(r.platform.wait(t, 4))); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// The log tells the model that the file was made, so the user gets it even where the
// turn ends without an answer.
func TestFilesOfATurnThatFailsAreSent(t *testing.T) {
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) {
			for m, err := range draws(ctx, turn) {
				if m.Final {
					yield(agent.Message{}, &agent.ModelError{Kind: agent.KindAuth, Err: errors.New("no key")})
					return
				}
				if !yield(m, err) {
					return
				}
			}
		}
	})
	r.accept(direct("1", "a.png"))
	got := texts(r.platform.wait(t, 2))
	if !strings.Contains(got[0], "can't answer right now") || got[1] != picture("a.png") {
		t.Errorf("shown %q", got)
	}
}

func TestAPlatformWithoutFilesNamesThem(t *testing.T) {
	r := newHarness(t, draws)
	r.cfg.Platforms = []chats.Platform{struct{ chats.Platform }{r.platform}}
	r.restart()
	r.accept(direct("1", "a.png\nb.pdf"))
	want := []string{"done", "I cannot send files here. They are in my workspace: a.png, b.pdf"}
	if diff := cmp.Diff(want, texts(r.platform.wait(t, 2))); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func TestDeliveryStatesOfFiles(t *testing.T) {
	broken := errors.New("broken")
	always := func(o chats.Outcome) map[int]*chats.SendError {
		fail := map[int]*chats.SendError{}
		for n := 2; n < 22; n++ {
			fail[n] = &chats.SendError{Outcome: o, Err: broken}
		}
		return fail
	}
	a := picture("a.png")
	unsure := always(chats.Unknown)
	for n := 10; n < 22; n++ {
		delete(unsure, n)
	}
	for _, c := range []struct {
		name string
		fail map[int]*chats.SendError
		want []string
	}{
		{"later is tried again without a mark", map[int]*chats.SendError{2: {Outcome: chats.Later, Err: broken}}, []string{"done", a}},
		{"unknown is sent once more with a mark", map[int]*chats.SendError{2: {Outcome: chats.Unknown, Err: broken}}, []string{"done", a, a + " (repeat)"}},
		{"refused becomes a line", map[int]*chats.SendError{2: {Outcome: chats.Refused, Err: broken}}, []string{"done", "[a.png could not be sent: sending it failed; it is in my workspace]"}},
		{"never taken becomes a line", always(chats.Later), []string{"done", "[a.png could not be sent: sending it failed; it is in my workspace]"}},
		{"always unknown becomes a line", unsure, append(append([]string{"done", a}, slices.Repeat([]string{a + " (repeat)"}, 7)...), "[a.png may not have arrived: sending it failed; it is in my workspace]")},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, draws)
				r.platform.fail = outcomes(c.fail)
				r.accept(direct("1", "a.png"))
				for n := 1; n < len(c.want); n++ {
					for range 40 { // the pauses are longer than one wait
						if synctest.Wait(); len(r.platform.texts()) > n {
							break
						}
						pass(t, 60)
					}
				}
				var got []string
				for _, s := range r.platform.wait(t, len(c.want)) {
					got = append(got, shown(s))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

// TestACrashAtAnyStepOfAFileLosesNothing kills the bridge at every single step of an
// answer with two files.
func TestACrashAtAnyStepOfAFileLosesNothing(t *testing.T) {
	t.Parallel()
	diesAtEachStep(t, 20, drawAndDie)
}

func drawAndDie(t *testing.T, life *mortal) {
	t.Helper()
	r := newHarness(t, draws)
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
	r.start()
	m := direct("1", "a.png\nb.pdf")
	_ = r.bridge.Accept(t.Context(), m) // where it died, the platform gives it again
	if life.dies == 0 {
		shown.wait(t, 3)
	} else {
		waitDead(t, life, shown)
	}
	r.stop()
	r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
	r.start()
	r.accept(m)
	want := []string{"done", picture("a.png"), picture("b.pdf")}
	waitAnswered(t, shown, want...)
	r.stop()
	noneTwiceUnmarked(t, shown.sent)
	if got := slices.Compact(texts(shown.sent)); !slices.Equal(got, want) {
		t.Errorf("shown %q, want %q", got, want)
	}
}

func TestTheModelCanReadWhatCame(t *testing.T) {
	var wait sync.WaitGroup
	wait.Add(1)
	r := newHarness(t, func(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
		defer wait.Done()
		write(turn.Scope.Workspace, "in.png")
		if data, err := turn.ReadFile("in.png", 100); err != nil || string(data) != "bytes of in.png" {
			t.Errorf("in.png: %q, %v", data, err)
		}
		for _, name := range []string{"../../db", "/etc/passwd", "none"} {
			if data, err := turn.ReadFile(name, 100); err == nil || data != nil {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if _, err := turn.ReadFile("none", 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("none: %v", err)
		}
		return echo(ctx, turn)
	})
	r.accept(direct("1", "x"))
	wait.Wait()
	r.platform.wait(t, 1)
}
