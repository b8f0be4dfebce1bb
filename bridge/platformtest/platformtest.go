// Package platformtest is the test suite that every [chats.Platform] passes, together with the service
// that it uses.
//
// The suite is a table of properties. Each has a sentence that states what users can rely on, and a
// function that checks it in a [Harness] of its own: a service with a few users, an adapter, a real
// bridge with a real store, and a function in place of the agent. The suite itself is tested: a simple
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

// Harness is a platform that a test supplies: a new and empty service, and its users. It cleans up with
// t.Cleanup of the test for which it is made.
type Harness struct {
	Service
	// Member, Admin and Stranger are the ids of three users. The first two may talk to the bot; on the
	// platform, the second is an administrator.
	Member, Admin, Stranger string
	// Limit is the maximum length of a message.
	Limit int
	// PressesOnce is set if the service does not redeliver a press that the bot did not accept: the user
	// sees that it failed, and presses again.
	PressesOnce bool
}

// Service lets the suite act on the service and observe it. An impossible action ends the test. Await is
// called from several goroutines.
type Service interface {
	// Adapter returns a new adapter to the service. At most one runs at a time.
	Adapter() chats.Platform
	// Open creates a chat. A user always gets the same direct chat. Shared chats are new, with all users
	// in them. Threads (topics) are new ones in one shared chat, begun by the user; the message that
	// opens one is not addressed to the bot.
	Open(kind Kind, by string) Place
	// Say makes a user write to the bot, mentioning it as the chat requires, and returns the platform's
	// id of the message. A text that begins with a slash is a command, which the service sends as its
	// users do.
	Say(in Place, by, text string) string
	// Inject makes the service fail once, as fault says. An adapter may be running.
	Inject(in Place, fault Fault)
	// Await returns nil once enough returns true, or the error of ctx. It calls enough at once and after
	// every change. The function enough does not call the service.
	Await(ctx context.Context, enough func(View) bool) error
}

// Kind is the kind of a place.
type Kind string

// The kinds of places.
const (
	Direct Kind = "direct chat"
	Shared Kind = "shared chat"
	thread Kind = "thread"
)

// Place identifies a chat or thread. Only the service interprets it.
type Place string

// View is what users see at one moment.
type View struct {
	// Messages are the bot's messages, in order within each place. A message in a chat that was never
	// opened has a place of its own.
	Messages []Shown
	// Working are the places with a typing indicator.
	Working []Place
	// Sends counts how often the bot tried to show a message, including refusals.
	Sends int
	// Acknowledged are the ids of users' messages with a reaction from the bot, for a [Reactor].
	Acknowledged []string
	// Toasts are the texts that were shown to one user alone: answers to presses, and messages from a
	// [chats.EphemeralSender].
	Toasts []Toast
}

// Toast is a text that was shown to one user alone.
type Toast struct{ To, Text string }

// Shown is a message of the bot.
type Shown struct {
	Place Place
	// Text is the text that users read, Length its length as counted for Harness.Limit.
	Text   string
	Length int
	// ReplyTo is the id of the message to which it replies; empty if there is none.
	ReplyTo string
	// ID is the platform's id of the message, and Buttons its buttons; only a [Presser] sets them.
	ID      string
	Buttons [][]chats.Button
	// Streams is set while it grows in the service's own way, with the service's own stop button; see
	// [Stopper].
	Streams bool
}

// hasIncident reports whether the message names an incident, or has a button that shows one.
func (s Shown) hasIncident() bool {
	details := func(row []chats.Button) bool {
		return slices.ContainsFunc(row, func(b chats.Button) bool { return b.Label == "Details" })
	}
	return strings.Contains(s.Text, "Incident ") || slices.ContainsFunc(s.Buttons, details)
}

// Fault is a failure that happens once.
type Fault struct {
	Effect Effect
	// RetryAfter is the wait that a rate limit asks for, or the duration of a slow request, in whole
	// seconds.
	RetryAfter time.Duration
	// Edit is set if the fault hits the next edit in the chat instead of the next message.
	Edit bool
}

// Effect is the effect of a fault.
type Effect string

// The effects of faults.
const (
	// AnswerDropped shows the next message in the chat of the place and drops the response to the bot.
	AnswerDropped Effect = "answer dropped"
	// RateLimited refuses the next message in the chat of the place and tells the bot to wait for
	// RetryAfter.
	RateLimited Effect = "rate limited"
	// ServerError fails with a server error before the next message in the chat of the place is
	// accepted.
	ServerError Effect = "server error"
	// Outage breaks the connection before the next message in the chat of the place is accepted, and
	// three more times when the bot checks whether the service is back (see [chats.Pinger]).
	Outage Effect = "outage"
	// Slow accepts the next message in the chat of the place after RetryAfter.
	Slow Effect = "slow"
	// Refused permanently refuses the next message in the chat of the place.
	Refused Effect = "refused"
	// DuplicateDelivery delivers the next message in the place to the adapter twice.
	DuplicateDelivery Effect = "duplicate delivery"
)

// Run runs all properties as subtests of t, each in a harness of its own.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	run(t, properties(), harness)
}

// deliveryProperties names the properties that depend on how messages reach the bot.
var deliveryProperties = []string{
	"Duplicate", "Order", "SideBySide", "Restart", "TakenOver", "RestartBeforeConfirmation", "InboxFails",
	"PressArrives", "PressIsKept", "Album", "LongText",
}

// RunDeliveries is [Run] with only the properties that depend on how messages reach the bot. It is for a
// platform that can receive messages in a second way.
func RunDeliveries(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	all := properties()
	for _, name := range deliveryProperties {
		if !slices.ContainsFunc(all, func(p property) bool { return p.name == name }) {
			t.Errorf("there is no property %s", name)
		}
	}
	run(t, slices.DeleteFunc(all, func(p property) bool { return !slices.Contains(deliveryProperties, p.name) }), harness)
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

// property is one statement that users can rely on.
type property struct {
	name     string
	sentence string
	check    func(t testing.TB, w *world)
}

// properties returns the table.
func properties() []property {
	return slices.Concat(placeProperties(), commandProperties(), faultProperties(), textProperties(), restartProperties(), buttonProperties(), growingProperties(), burstProperties(), quoteProperties(), voiceProperties(), pictureProperties(), reactionProperties(), breakProperties())
}

func runProperty(t testing.TB, harness Harness, p property) {
	t.Helper()
	w := newWorld(t, harness)
	defer w.close()
	p.check(t, w)
	w.wantNoStrays()
	if t.Failed() {
		t.Logf("violated property: %s", p.sentence)
	}
}
