// Package platformtest is the suite that every [bridge.Platform] passes, together with
// the service that it speaks to.
//
// It is a table of properties. Each has a sentence that says what people can rely on,
// and a function that shows it in a [Harness] of its own: a service with a few people in
// it, an adapter, a real bridge with a real store behind it, and a function in the
// place of the agent. The suite is itself tested: a simple platform in memory passes,
// and each of many mutants of it fails.
package platformtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

// Harness is a platform as a test supplies it: the service, new and empty, and who lives
// there. What has to be cleaned up is left to t.Cleanup of the test that it is made for.
type Harness struct {
	Service
	// Member, Admin and Stranger are the user ids of three people. The bot knows the
	// first two; the second is an administrator by the platform's word.
	Member, Admin, Stranger string
	// Limit is how long a message may be.
	Limit int
	// PressesOnce says that the service does not deliver a press again that the bot did
	// not take: the person sees that it failed, and presses again.
	PressesOnce bool
}

// Service is what the suite does to the service, and sees of it. What cannot be done
// ends the test. Await is called from several goroutines.
type Service interface {
	// Adapter returns a new adapter to the service. At most one runs at a time.
	Adapter() chats.Platform
	// Open makes a place where people write. A direct chat is the same for the same
	// person; shared chats are new, with everybody in them; threads (topics) are new
	// ones of a chat that is always the same, begun by the person, and nothing that
	// is said by opening is for the bot.
	Open(kind Kind, by string) Place
	// Say has a person write to the bot, calling it as the place requires, and
	// returns the platform's id of the message. Where the text begins with a slash it
	// is a command: the service spells it as people there do.
	Say(in Place, by, text string) string
	// Inject has the service misbehave once. It is called while no adapter runs, or
	// before anything is said in the place.
	Inject(in Place, fault Fault)
	// Await returns nil once enough is true, which it asks at once and after every
	// change, or the error of ctx. Enough does not call the service.
	Await(ctx context.Context, enough func(View) bool) error
}

// Kind says what a place is.
type Kind string

// The kinds of places.
const (
	Direct Kind = "direct chat"
	Shared Kind = "shared chat"
	Thread Kind = "thread"
)

// Place names a place. Only the service knows how to read it.
type Place string

// View is what people see at one moment.
type View struct {
	// Messages are those of the bot, in the order of each place. One in a place that
	// was never opened has a name of its own.
	Messages []Shown
	// Working are the places where the bot shows that it is at work.
	Working []Place
	// Sends counts how often the bot asked to show a message, refusals included.
	Sends int
	// Signed are the ids of the messages of people on which the bot shows that it has seen
	// them, for a [Reactor].
	Signed []string
	// Toasts are the texts that were shown to one person alone: because of a press, or by a
	// [chats.EphemeralSender].
	Toasts []Toast
}

// Toast is the answer to a press.
type Toast struct{ To, Text string }

// Shown is a message of the bot.
type Shown struct {
	Place Place
	// Text is what people read, and Length how long that is for Town.Limit.
	Text   string
	Length int
	// ReplyTo is the id of the message that it shows as answered; empty for none.
	ReplyTo string
	// ID is the platform's id of it, and Buttons are those under it; both are asked of a
	// [Presser] alone.
	ID      string
	Buttons [][]chats.Button
	// Streams is true where it grows by means of the service, which shows a button of its
	// own to stop; see [Stopper].
	Streams bool
}

// explains reports whether it names an incident, or has a button that does.
func (s Shown) explains() bool {
	details := func(row []chats.Button) bool {
		return slices.ContainsFunc(row, func(b chats.Button) bool { return b.Label == "Details" })
	}
	return strings.Contains(s.Text, "Incident ") || slices.ContainsFunc(s.Buttons, details)
}

// Fault is something that goes wrong once.
type Fault struct {
	Effect Effect
	// RetryAfter is what a flood asks for, and how long what is slow takes: whole seconds.
	RetryAfter time.Duration
	// Edit says that it is met by the next edit in the chat, where a message would meet it.
	Edit bool
}

// Effect is what a fault does.
type Effect string

// The effects.
const (
	// AnswerDropped shows the next message in the chat of the place and does not tell
	// the bot.
	AnswerDropped Effect = "answer dropped"
	// RateLimited refuses the next message in the chat of the place until RetryAfter.
	RateLimited Effect = "rate limited"
	// ServerError fails before the next message in the chat of the place is taken, and
	// says so with an error of the server.
	ServerError Effect = "server error"
	// Outage breaks the connection before the next message in the chat of the place is
	// taken, and three times when the bot asks whether the service is back (see
	// [bridge.Pinger]).
	Outage Effect = "outage"
	// Slow takes the next message in the chat of the place after RetryAfter.
	Slow Effect = "slow"
	// Refused refuses the next message in the chat of the place for good.
	Refused Effect = "refused"
	// DuplicateDelivery hands the next message that somebody says in the place to the
	// adapter twice.
	DuplicateDelivery Effect = "duplicate delivery"
)

// Run runs all properties as subtests of t, each in a town of its own.
func Run(t *testing.T, town func(t *testing.T) Harness) {
	t.Helper()
	run(t, properties(), town)
}

// deliveries are the properties that hang on how messages reach the bot.
var deliveries = []string{
	"Duplicate", "Order", "SideBySide", "Restart", "TakenOver", "RestartBeforeConfirmation", "InboxFails",
	"PressArrives", "PressIsKept", "Album", "LongText",
}

// RunDeliveries is Run with the properties alone that show how messages reach the bot: for
// a platform that can get them in a second way.
func RunDeliveries(t *testing.T, town func(t *testing.T) Harness) {
	t.Helper()
	all := properties()
	for _, name := range deliveries {
		if !slices.ContainsFunc(all, func(p property) bool { return p.name == name }) {
			t.Errorf("there is no property %s", name)
		}
	}
	run(t, slices.DeleteFunc(all, func(p property) bool { return !slices.Contains(deliveries, p.name) }), town)
}

func run(t *testing.T, list []property, town func(t *testing.T) Harness) {
	t.Helper()
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			runProperty(t, town(t), p)
		})
	}
}

// property is one sentence of what people can rely on.
type property struct {
	name     string
	sentence string
	check    func(t testing.TB, w *world)
}

// properties returns the table. Names carry the numbers of the complaints (C) and
// defects (B, D) that they guard against.
func properties() []property {
	return slices.Concat(placeProperties(), commandProperties(), faultProperties(), textProperties(), restartProperties(), buttonProperties(), growingProperties(), burstProperties(), quoteProperties(), voiceProperties(), pictureProperties(), reactionProperties(), breakProperties())
}

func runProperty(t testing.TB, town Harness, p property) {
	t.Helper()
	w := newWorld(t, town)
	defer w.close()
	p.check(t, w)
	w.noStrays()
	if t.Failed() {
		t.Logf("what does not hold: %s", p.sentence)
	}
}
