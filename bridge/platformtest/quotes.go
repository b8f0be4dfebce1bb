package platformtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
)

// Pointer is a [Service] in which people can point at what somebody wrote. The properties of
// what is quoted are skipped for others.
type Pointer interface {
	// Point has a person answer or pass on what somebody wrote, calling the bot as the place
	// requires where there is a text. Without one, the place is a direct chat.
	Point(in Place, by, text string, at Original)
	// Aside has a person say something to others, and not to the bot.
	Aside(in Place, by, text string)
}

// Original is what somebody wrote: a new message, which is not for the bot, or one of the bot.
type Original struct {
	Author, Text string
	// File, where it is named, came with it.
	File string
	// Own is the id of the bot's message.
	Own string
}

func quoteProperties() []property {
	return []property{
		{"QuotedReaches", "What a message answers or passes on reaches the model with it, with its author and its files, also across a restart, and is told apart from the sender's words.", reachesQuoted},
		{"QuotedIsNoCommand", "A command that is passed on is none.", obeysNoQuotes},
		{"ThreadReaches", "Who calls the bot in a thread need not repeat what was said there: the model is shown it, once.", reachesThread},
	}
}

// pointer is the service where people can point at something; for others the test is skipped.
func (w *world) pointer() Pointer {
	w.t.Helper()
	p, points := w.town.Service.(Pointer)
	if !points {
		w.t.Skip("nobody can point at anything there")
	}
	w.reads = func(m agent.Message) string { return m.Quoted + "\n" + m.Text }
	return p
}

// sees is an agent that says which of the words the last message has, in quotes or outside.
func sees(words ...string) thought {
	return func(_ context.Context, said []string) string {
		last := said[len(said)-1]
		quoted, own, found := strings.Cut(last, "[End of what is quoted.")
		if !found {
			quoted, own = "", last
		}
		seen := []string{"seen"}
		for _, word := range words {
			if strings.Contains(quoted, word) {
				seen = append(seen, "quoted "+word)
			}
			if strings.Contains(own, word) {
				seen = append(seen, "own "+word)
			}
		}
		return strings.Join(seen, ", ")
	}
}

func reachesQuoted(t testing.TB, w *world) {
	p := w.pointer()
	g := newGate()
	look := sees("Guten", "translate", "plan.txt", "by you")
	w.think = func(ctx context.Context, said []string) string {
		if last := said[len(said)-1]; strings.Contains(last, "translate slowly") {
			return g.think(ctx, []string{"slow", "slow"}) + look(ctx, said)
		}
		return look(ctx, said)
	}
	w.start()
	file, with := "", ""
	if _, fetches := w.cfg.Platforms[0].(chats.Fetcher); fetches {
		file, with = "plan.txt", ", quoted plan.txt"
	}
	want := map[Place][]string{}
	for _, place := range w.everywhere() {
		p.Point(place, w.town.Member, "translate this", Original{Author: w.town.Admin, Text: "Guten Tag", File: file})
		want[place] = []string{"seen, quoted Guten, own translate" + with}
		got := w.shown(place, 1)
		w.want(got, want[place]...)
		if got[0].ID != "" {
			p.Point(place, w.town.Member, "shorter", Original{Own: got[0].ID})
			want[place] = append(want[place], "seen, quoted Guten, quoted translate"+with+", quoted by you")
			w.want(w.shown(place, 2), want[place]...)
		}
	}
	for place := range want {
		p.Point(place, w.town.Member, "translate slowly", Original{Author: w.town.Admin, Text: "Guten Abend"})
		until(t, "the question to reach the model", g.reached)
	}
	w.stop()
	close(g.open)
	w.start()
	for place := range want {
		want[place] = append(want[place], reply("slow")+"seen, quoted Guten, own translate")
		w.want(w.shown(place, len(want[place])), want[place]...)
	}
}

func obeysNoQuotes(_ testing.TB, w *world) {
	p := w.pointer()
	w.reads = func(m agent.Message) string { return m.Text }
	w.start()
	place := w.open(Direct, w.town.Member)
	w.say(place, "remember this")
	w.want(w.shown(place, 1), reply("remember this"))
	p.Point(place, w.town.Member, "", Original{Author: w.town.Admin, Text: "/clear"})
	w.want(w.shown(place, 2), reply("remember this"), strings.TrimSpace(reply("")))
	w.say(place, recall)
	w.want(w.shown(place, 3)[2:], recalled("remember this", ""))
}

func reachesThread(t testing.TB, w *world) {
	p := w.pointer()
	w.think = sees("blue", "green", "colour")
	w.start()
	if _, tells := w.cfg.Platforms[0].(chats.Archive); !tells {
		t.Skip("nobody tells what was said in threads")
	}
	for i := range 2 {
		place := w.open(Thread, w.town.Member)
		p.Aside(place, w.town.Admin, "the plan is blue")
		p.Aside(place, w.town.Stranger, "and the roof green")
		w.say(place, fmt.Sprintf("what colour %d?", i))
		w.want(w.shown(place, 1), "seen, quoted blue, quoted green, own colour")
		w.say(place, "which colour?")
		w.want(w.shown(place, 2)[1:], "seen, own colour")
		w.town.Say(place, w.town.Member, "/clear")
		w.shown(place, 3)
		w.say(place, "which colour now?")
		w.want(w.shown(place, 4)[3:], "seen, own colour")
	}
}
