package platformtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Burster is a [Service] in which users send several messages that belong together. The service delivers
// them as one message, or as several consecutive ones.
type Burster interface {
	// SayAlbum makes a user send files at once, with one text.
	SayAlbum(in Place, by, text string, files ...string)
	// SayLong makes a user send a text of any length.
	SayLong(in Place, by, text string)
	// Amend makes a user edit their message.
	Amend(in Place, by, message, text string)
}

func burstProperties() []property {
	return []property{
		{"Album", "An album that a user sends is one message, even if the bot restarts while its parts arrive.", testAlbum},
		{"LongText", "A text that is too long for one message is treated as one, even if the bot restarts while its parts arrive.", testLongText},
		{"Steered", "Messages that arrive while the bot works are answered together with the current one, once and in order, even after a restart.", testSteered},
		{"EditReaches", "An edit of the message being answered reaches the model; after an edit of an answered message, the user is told how to ask again.", testEditReaches},
	}
}

func (w *world) burster() Burster {
	w.t.Helper()
	b, ok := w.harness.Service.(Burster)
	if !ok {
		w.t.Skip("users cannot send albums there")
	}
	return b
}

// restartDuring stops the bot when a part of what say sends is on disk but not confirmed, and starts it
// again.
func (w *world) restartDuring(say func()) {
	w.t.Helper()
	kept := make(chan struct{})
	once := sync.OnceFunc(func() { close(kept) })
	w.store.onJob(func(ctx context.Context, j jobRecord, write func() error) error {
		err := write()
		if err == nil && j.Work.Parts == nil {
			once()
			<-ctx.Done()
			err = ctx.Err()
		}
		return err
	})
	say()
	waitFor(w.t, "a part to be kept", kept)
	w.stop()
	w.store.onJob(nil)
	w.start()
}

func testAlbum(_ testing.TB, w *world) {
	b := w.burster()
	w.start()
	for _, kind := range []Kind{Direct, Shared} {
		place := w.open(kind, w.harness.Member)
		b.SayAlbum(place, w.harness.Member, "look at these", "one", "two", "three")
		w.want(w.awaitSettled(place), reply("look at these"))
		w.restartDuring(func() { b.SayAlbum(place, w.harness.Member, "and at these", "four", "five") })
		w.want(w.awaitSettled(place), reply("look at these"), reply("and at these"))
	}
}

func testLongText(_ testing.TB, w *world) {
	b := w.burster()
	var words []string
	for i := range 1400 {
		words = append(words, fmt.Sprintf("w%05d", i))
	}
	w.respond = func(ctx context.Context, said []string) string {
		if last := said[len(said)-1]; strings.HasPrefix(last, "w") {
			return fmt.Sprintf("%t, %d words", slices.Equal(strings.Fields(last), words), len(strings.Fields(last)))
		}
		return echo(ctx, said)
	}
	w.start()
	place, want := w.open(Direct, w.harness.Member), "true, 1400 words"
	b.SayLong(place, w.harness.Member, strings.Join(words, " "))
	w.want(w.awaitSettled(place), want)
	w.restartDuring(func() { b.SayLong(place, w.harness.Member, strings.Join(words, " ")) })
	w.want(w.awaitSettled(place), want, want)
}

// toolModel is a model that calls its tool once if it is asked to work, and then answers all messages of
// its turn.
type toolModel struct {
	reached chan string
	release chan struct{}
}

func (toolModel) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	var said []string
	used := false
	for _, m := range req.Messages {
		switch {
		case m.BeginsTurn():
			said, used = []string{m.Text}, false
		case m.Role == agent.RoleUser:
			said = append(said, m.Text)
		case m.Role == agent.RoleTool:
			used = true
		}
	}
	if said[0] == "work" && !used {
		return agent.Reply{Calls: []agent.Call{{ID: "0", Name: "look", Arguments: "{}"}}}, nil
	}
	return agent.Reply{Text: reply(strings.Join(said, " + "))}, nil
}

// startToolModel starts a bot whose tool waits until it is released.
func (w *world) startToolModel() toolModel {
	w.t.Helper()
	k := toolModel{make(chan string, 64), make(chan struct{})}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "look", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			k.reached <- "look"
			select {
			case <-k.release:
			case <-ctx.Done():
			}
			return toolgroups.Result{Text: "looked"}, context.Cause(ctx)
		},
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.cfg.Turns.Agent, w.cfg.Turns.SeparateTurns = agent.New(agent.Config{Model: k}), false
	w.cfg.Turns.Tools = func() *toolgroups.Registry { return registry }
	w.start()
	return k
}

// awaitWaiting returns once this many messages wait in a place.
func (w *world) awaitWaiting(place Place, n int) {
	w.t.Helper()
	w.say(place, "/status")
	want := fmt.Sprintf("%d more message", n)
	w.await("the state of "+string(place), func(v View) bool {
		return slices.ContainsFunc(v.inPlace(place), func(s Shown) bool { return strings.Contains(s.Text, want) })
	})
}

// withoutStatus returns the messages of a place without the answers to /status.
func (w *world) withoutStatus(all []Shown) []Shown {
	return slices.DeleteFunc(all, func(s Shown) bool { return strings.Contains(s.Text, "more message") })
}

func testSteered(t testing.TB, w *world) {
	w.burster()
	k := w.startToolModel()
	places := w.openAll()
	for _, place := range places {
		w.say(place, "work")
		waitFor(t, "the tool to run", k.reached)
		w.say(place, "two")
		w.awaitWaiting(place, 1)
	}
	w.stop()
	w.start()
	for range places {
		waitFor(t, "the tools to run again", k.reached)
	}
	for _, place := range places {
		w.say(place, "three")
		w.awaitWaiting(place, 2)
	}
	close(k.release)
	for _, place := range places {
		w.awaitShown(place, 3)
		w.want(w.withoutStatus(w.awaitSettled(place)), reply("work + two + three"))
	}
}

func testEditReaches(t testing.TB, w *world) {
	b := w.burster()
	k := w.startToolModel()
	place := w.open(Direct, w.harness.Member)
	id := w.harness.Say(place, w.harness.Member, "work")
	waitFor(t, "the tool to run", k.reached)
	b.Amend(place, w.harness.Member, id, "work harder")
	w.awaitWaiting(place, 1)
	close(k.release)
	got := w.withoutStatus(w.awaitShown(place, 2))
	if len(got) != 1 || !strings.HasPrefix(got[0].Text, reply("work + ")) || !strings.Contains(got[0].Text, "work harder") {
		t.Fatalf("shown: %q", texts(got))
	}
	b.Amend(place, w.harness.Member, id, "work less")
	if got = w.withoutStatus(w.awaitShown(place, 3)); len(got) != 2 || !strings.Contains(got[1].Text, "already answered") {
		t.Errorf("shown: %q", texts(got))
	}
}
