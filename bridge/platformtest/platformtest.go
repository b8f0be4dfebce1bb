// Package platformtest is the suite that every [chats.Platform] passes, together with the service that
// it uses.
//
// It is a table of properties. Each has a sentence that says what users can rely on, and a function
// that shows it in a [Harness] of its own: a service with a few users, an adapter, a real bridge with a
// real store behind it, and a function in place of the agent. The suite is itself tested: a simple
// platform in memory passes, and each of many mutants of it fails.
package platformtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

// Harness is a platform that a test supplies: the service, new and empty, and its users. It cleans up
// with t.Cleanup of the test that it is made for.
type Harness struct {
	Service
	// Member, Admin and Stranger are the ids of three users. The bot knows the first two; the platform
	// says that the second is an administrator.
	Member, Admin, Stranger string
	// Limit is the maximum length of a message.
	Limit int
	// PressesOnce says that the service does not redeliver a press that the bot did not accept: the
	// user sees that it failed, and presses again.
	PressesOnce bool
}

// Service is how the suite acts on the service and observes it. An impossible action ends the test.
// Await is called from several goroutines.
type Service interface {
	// Adapter returns a new adapter to the service. At most one runs at a time.
	Adapter() chats.Platform
	// Open creates a chat. A direct chat is the same for the same user; shared chats are new, with all
	// users in them; threads (topics) are new ones of one shared chat, begun by the user, and nothing
	// that is said by opening is for the bot.
	Open(kind Kind, by string) Place
	// Say makes a user write to the bot, mentioning it as the chat requires, and returns the platform's
	// id of the message. A text that begins with a slash is a command: the service writes it as its
	// users do.
	Say(in Place, by, text string) string
	// Inject makes the service fail once. It is called while no adapter runs, or before anything is
	// said in the place.
	Inject(in Place, fault Fault)
	// Await returns nil once enough returns true, which it calls at once and after every change, or the
	// error of ctx. enough does not call the service.
	Await(ctx context.Context, enough func(View) bool) error
}

// Kind is the kind of a place.
type Kind string

// The kinds of places.
const (
	Direct Kind = "direct chat"
	Shared Kind = "shared chat"
	Thread Kind = "thread"
)

// Place identifies a chat or thread. Only the service interprets it.
type Place string

// View is what users see at one moment.
type View struct {
	// Messages are the bot's messages, in the order of each place. A message in a place that was never
	// opened has a place of its own.
	Messages []Shown
	// Working are the places with a typing indicator.
	Working []Place
	// Sends counts how often the bot asked to show a message, refusals included.
	Sends int
	// Signed are the ids of users' messages with a reaction of the bot, for a [Reactor].
	Signed []string
	// Toasts are the texts that one user alone was shown: answers to presses, and messages of a
	// [chats.EphemeralSender].
	Toasts []Toast
}

// Toast is the answer to a press.
type Toast struct{ To, Text string }

// Shown is a message of the bot.
type Shown struct {
	Place Place
	// Text is what users read, Length its length as counted for Harness.Limit.
	Text   string
	Length int
	// ReplyTo is the id of the message that it replies to; empty for none.
	ReplyTo string
	// ID is the platform's id of it, and Buttons its buttons; only a [Presser] sets them.
	ID      string
	Buttons [][]chats.Button
	// Streams says that it grows natively, with the service's own stop button; see [Stopper].
	Streams bool
}

// explains reports whether it names an incident, or has a button that does.
func (s Shown) explains() bool {
	details := func(row []chats.Button) bool {
		return slices.ContainsFunc(row, func(b chats.Button) bool { return b.Label == "Details" })
	}
	return strings.Contains(s.Text, "Incident ") || slices.ContainsFunc(s.Buttons, details)
}

// Fault is a failure that happens once.
type Fault struct {
	Effect Effect
	// RetryAfter is the pause that a rate limit asks for, or the duration of a slow request: whole
	// seconds.
	RetryAfter time.Duration
	// Edit says that the fault hits the next edit in the chat instead of the next message.
	Edit bool
}

// Effect is the effect of a fault.
type Effect string

// The effects.
const (
	// AnswerDropped shows the next message in the chat of the place and drops the response to the bot.
	AnswerDropped Effect = "answer dropped"
	// RateLimited refuses the next message in the chat of the place until RetryAfter.
	RateLimited Effect = "rate limited"
	// ServerError fails before the next message in the chat of the place is accepted, with a server
	// error.
	ServerError Effect = "server error"
	// Outage breaks the connection before the next message in the chat of the place is accepted, and
	// three times when the bot asks whether the service is back (see [chats.Pinger]).
	Outage Effect = "outage"
	// Slow accepts the next message in the chat of the place after RetryAfter.
	Slow Effect = "slow"
	// Refused refuses the next message in the chat of the place for good.
	Refused Effect = "refused"
	// DuplicateDelivery delivers the next message in the place to the adapter twice.
	DuplicateDelivery Effect = "duplicate delivery"
)

// Run runs all properties as subtests of t, each in a harness of its own.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	run(t, properties(), harness)
}

// deliveries are the properties that depend on how messages reach the bot.
var deliveries = []string{
	"Duplicate", "Order", "SideBySide", "Restart", "TakenOver", "RestartBeforeConfirmation", "InboxFails",
	"PressArrives", "PressIsKept", "Album", "LongText",
}

// RunDeliveries is Run with only the properties that depend on how messages reach the bot: for a
// platform that can receive them in a second way.
func RunDeliveries(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	all := properties()
	for _, name := range deliveries {
		if !slices.ContainsFunc(all, func(p property) bool { return p.name == name }) {
			t.Errorf("there is no property %s", name)
		}
	}
	run(t, slices.DeleteFunc(all, func(p property) bool { return !slices.Contains(deliveries, p.name) }), harness)
}

func run(t *testing.T, list []property, harness func(t *testing.T) Harness) {
	t.Helper()
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			runProperty(t, harness(t), p)
		})
	}
}

// property is one sentence that users can rely on.
type property struct {
	name     string
	sentence string
	check    func(t testing.TB, w *world)
}

// properties returns the table. The numbers in names are the complaints (C) and defects (B, D) that
// they guard against.
func properties() []property {
	return slices.Concat(placeProperties(), commandProperties(), faultProperties(), textProperties(), restartProperties(), buttonProperties(), growingProperties(), burstProperties(), quoteProperties(), voiceProperties(), pictureProperties(), reactionProperties(), breakProperties())
}

func runProperty(t testing.TB, harness Harness, p property) {
	t.Helper()
	w := newWorld(t, harness)
	defer w.close()
	p.check(t, w)
	w.noStrays()
	if t.Failed() {
		t.Logf("what does not hold: %s", p.sentence)
	}
}
