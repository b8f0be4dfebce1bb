package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
)

// told is everything that people are ever told about a failed turn.
var told = regexp.MustCompile(`^(?:` +
	`I gave up on this after 15m0s\. What I found out so far is kept: ask again, or for a smaller step\.|` +
	`Something went wrong inside me, and I could not answer\. Please try again; if it happens again, give the number below to whoever runs me\.|` +
	`I can't answer right now: the language model rejects my key\. Whoever runs me has to check it \(OPENAI_API_KEY\)\.|` +
	`(The language model is busy\. Please try again in (?:[0-9hms]+|a minute or two)\.|The model account has run out of credit\. Whoever runs me has to top it up\.|The model gave no answer\. Please try again\.)|` +
	`I could not reach the language model\. Please try again in a minute\.|` +
	`This conversation has grown too long for the language model\. /new begins a fresh one; files and memory are kept\.|` +
	`(The language model did not accept your message\. I removed it so that we can go on\.|The language model does not accept my requests\. Whoever runs me finds the reason in the log\.)|` +
	`I went in circles and stopped without an answer\. Please put it differently, or ask for a smaller step\.|` +
	`The budget for this does not allow another answer now\.|` +
	`I could not answer\. Please try again\.` +
	`)\n\n_Incident [0-9A-F]{8}_$`)

// Whatever goes wrong, a chat is told one of a few sentences: no text of an error, no
// page of a server, no stack.
//
// C19.
func TestFailuresAreSentencesOfAClosedSet(t *testing.T) {
	var failure func() error
	r := newHarness(t, func(context.Context, agent.Turn) iter.Seq2[agent.Message, error] {
		return func(yield func(agent.Message, error) bool) { yield(agent.Message{Reasoning: "THOUGHT"}, failure()) }
	}, func(c *bridge.Config) { c.Logger = nil })
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(
			rapid.SampledFrom([]string{
				"<!doctype html><html><title>502 Bad Gateway</title>nginx", "goroutine 1 [running]:\nmain.main()\n\t/src/main.go:1",
				"Post \"https://api.telegram.org/bot123:TOKEN/sendMessage\": EOF", "<think>THOUGHT</think>", "_Incident 00000000_",
			}),
			rapid.String(),
		).Draw(rt, "text")
		kind := rapid.SampledFrom([]agent.Kind{
			agent.KindAuth, agent.KindRateLimit, agent.KindUnavailable, agent.KindOverflow, agent.KindRejected, agent.KindRounds, agent.KindBudget, "other",
		}).Draw(rt, "kind")
		err := errors.New(text)
		switch rapid.IntRange(0, 4).Draw(rt, "wrapping") {
		case 0:
			err = &agent.ModelError{Kind: kind, Err: err, RetryAfter: time.Duration(rapid.IntRange(0, 1e6).Draw(rt, "seconds")) * time.Second}
		case 1:
			err = fmt.Errorf("%s: %w", text, &agent.ModelError{Kind: kind, Err: err})
		case 2:
			err = errors.Join(err, context.DeadlineExceeded)
		case 3:
			cause := err
			failure = func() error { panic(cause) }
		}
		if failure == nil || err == nil {
			failure = func() error { return err }
		}
		n++
		r.accept(direct(fmt.Sprint(n), "hello"))
		got := r.platform.wait(t, n)[n-1].text
		failure = nil
		if !told.MatchString(got) {
			rt.Fatalf("a chat was told %q", got)
		}
	})
}
