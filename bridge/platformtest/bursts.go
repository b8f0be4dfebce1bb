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

// Burster is a [Service] in which users send what belongs together as the service delivers it: as one
// message, or in several consecutive ones.
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
		{"Album", "What somebody sends at once as an album is one message, also where the bot is started anew between its parts.", albumIsOne},
		{"LongText", "A text that is too long for one message is one all the same, also where the bot is started anew between its parts.", longTextIsOne},
		{"Steered", "What is written while the bot is at work is answered with that, once and in order, also by one that is started anew.", isSteered},
		{"EditReaches", "An edit of what is being answered reaches that, one of what was answered is told how to ask again.", editReaches},
	}
}

func (w *world) burster() Burster {
	w.t.Helper()
	b, ok := w.harness.Service.(Burster)
	if !ok {
		w.t.Skip("nobody can send an album there")
	}
	return b
}

// cutShort stops the bot when a part of what say sends is on disk and not confirmed, and starts it
// again.
func (w *world) cutShort(say func()) {
	w.t.Helper()
	kept := make(chan struct{})
	once := sync.OnceFunc(func() { close(kept) })
	w.store.onJob(func(ctx context.Context, j record, write func() error) error {
		err := write()
		if err == nil && j.Work.Parts == nil {
			once()
			<-ctx.Done()
			err = ctx.Err()
		}
		return err
	})
	say()
	until(w.t, "a part to be kept", kept)
	w.stop()
	w.store.onJob(nil)
	w.start()
}

func albumIsOne(_ testing.TB, w *world) {
	b := w.burster()
	w.start()
	for _, kind := range []Kind{Direct, Shared} {
		place := w.open(kind, w.harness.Member)
		b.SayAlbum(place, w.harness.Member, "look at these", "one", "two", "three")
		w.want(w.settled(place), reply("look at these"))
		w.cutShort(func() { b.SayAlbum(place, w.harness.Member, "and at these", "four", "five") })
		w.want(w.settled(place), reply("look at these"), reply("and at these"))
	}
}

func longTextIsOne(_ testing.TB, w *world) {
	b := w.burster()
	var words []string
	for i := range 1400 {
		words = append(words, fmt.Sprintf("w%05d", i))
	}
	w.think = func(ctx context.Context, said []string) string {
		if last := said[len(said)-1]; strings.HasPrefix(last, "w") {
			return fmt.Sprintf("%t, %d words", slices.Equal(strings.Fields(last), words), len(strings.Fields(last)))
		}
		return echo(ctx, said)
	}
	w.start()
	place, want := w.open(Direct, w.harness.Member), "true, 1400 words"
	b.SayLong(place, w.harness.Member, strings.Join(words, " "))
	w.want(w.settled(place), want)
	w.cutShort(func() { b.SayLong(place, w.harness.Member, strings.Join(words, " ")) })
	w.want(w.settled(place), want, want)
}

// worker is a model that uses its tool once, if it is asked to work, and then answers all that was said
// in its turn.
type worker struct {
	reached chan string
	open    chan struct{}
}

func (worker) Complete(_ context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
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

// working starts a bot whose tool waits until it is released.
func (w *world) working() worker {
	w.t.Helper()
	k := worker{make(chan string, 64), make(chan struct{})}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{{
		Name: "look", Description: "Look.", Effect: toolgroups.ReadOnly, Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
			k.reached <- "look"
			select {
			case <-k.open:
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

// waits returns once this many messages wait in a place.
func (w *world) waits(place Place, n int) {
	w.t.Helper()
	w.say(place, "/status")
	want := fmt.Sprintf("%d more message", n)
	w.await("the state of "+string(place), func(v View) bool {
		return slices.ContainsFunc(v.in(place), func(s Shown) bool { return strings.Contains(s.Text, want) })
	})
}

// answers returns the messages of a place without answers about the bot's state.
func (w *world) answers(all []Shown) []Shown {
	return slices.DeleteFunc(all, func(s Shown) bool { return strings.Contains(s.Text, "more message") })
}

func isSteered(t testing.TB, w *world) {
	w.burster()
	k := w.working()
	places := w.everywhere()
	for _, place := range places {
		w.say(place, "work")
		until(t, "the tool to run", k.reached)
		w.say(place, "two")
		w.waits(place, 1)
	}
	w.stop()
	w.start()
	for range places {
		until(t, "the tools to run again", k.reached)
	}
	for _, place := range places {
		w.say(place, "three")
		w.waits(place, 2)
	}
	close(k.open)
	for _, place := range places {
		w.shown(place, 3)
		w.want(w.answers(w.settled(place)), reply("work + two + three"))
	}
}

func editReaches(t testing.TB, w *world) {
	b := w.burster()
	k := w.working()
	place := w.open(Direct, w.harness.Member)
	id := w.harness.Say(place, w.harness.Member, "work")
	until(t, "the tool to run", k.reached)
	b.Amend(place, w.harness.Member, id, "work harder")
	w.waits(place, 1)
	close(k.open)
	got := w.answers(w.shown(place, 2))
	if len(got) != 1 || !strings.HasPrefix(got[0].Text, reply("work + ")) || !strings.Contains(got[0].Text, "work harder") {
		t.Fatalf("there stands %q", texts(got))
	}
	b.Amend(place, w.harness.Member, id, "work less")
	if got = w.answers(w.shown(place, 3)); len(got) != 2 || !strings.Contains(got[1].Text, "already answered") {
		t.Errorf("there stands %q", texts(got))
	}
}
