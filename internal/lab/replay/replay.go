// Package replay plays a recording to a bot and reports where the bot now behaves differently.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/record"
	"oneclaw/internal/retry"
)

// Environment is what a bot is connected to during a replay.
type Environment struct {
	// The platforms in the recording; the others are empty.
	TelegramURL, TelegramToken             string
	SlackURL, SlackBotToken, SlackAppToken string
	// ModelURL and ModelName are from the recording. Answers come through the tap.
	ModelURL, ModelName string
	Taps                interface {
		Tap(service string) retry.Tap
	}
	// Now is the clock of the recording.
	Now func() time.Time
}

// Replay configures a replay.
type Replay struct {
	// Bot runs a bot until ctx ends.
	Bot func(ctx context.Context, env Environment) error
	// Redact masks secrets, Now is the clock.
	Redact func(string) string
	Now    func() time.Time
	// Patience bounds the wait for what the bot did in the recording; Quiet is how long it must
	// have sent nothing more at the end, or once it differs. 0 means 30 seconds and one.
	Patience, Quiet time.Duration
}

// minUserPause is the least pause between actions of a user: the bot has to record that something was
// sent before a button of it is pressed.
const minUserPause = 50 * time.Millisecond

// errOver ends the bot when everything is played.
var errOver = errors.New("replay: the recording is over")

// Play plays a recording to the bot: the platforms' events come from the emulators, the model's
// answers from the recording, each when as much had happened before. It returns the differences.
func (r Replay) Play(ctx context.Context, lines []record.Line) (other []string, err error) {
	r.Patience, r.Quiet = cmp.Or(r.Patience, 30*time.Second), cmp.Or(r.Quiet, time.Second)
	p := &player{Replay: r, script: read(lines), changed: make(chan struct{})}
	if len(p.events) == 0 {
		return nil, errors.New("the recording holds nothing that anybody wrote to the bot")
	}
	p.jump(lines[0].Time)
	p.Recorder = &record.Recorder{Keep: p.see, Redact: r.Redact, Now: p.now}
	defer func() { err = errors.Join(err, p.Close()) }()
	env, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		err := r.Bot(running, env)
		end(errors.Join(errors.New("the bot ended by itself"), err))
		done <- err
	}()
	err = p.feed(running)
	end(errOver)
	err = errors.Join(err, <-done)
	return p.compare(), err
}

// player plays a recording.
type player struct {
	Replay
	*script
	*record.Recorder
	telegram *telegram.Server
	slack    *slack.Server
	ahead    atomic.Int64 // of the clock, in nanoseconds

	mu      sync.Mutex
	changed chan struct{}
	fed     int
	got     sends
	other   []string
}

func (p *player) now() time.Time { return p.Replay.Now().Add(time.Duration(p.ahead.Load())) }

// jump sets the clock to a time, unless that is past.
func (p *player) jump(to time.Time) {
	if ahead := int64(to.Sub(p.Replay.Now())); p.fed == 0 || ahead > p.ahead.Load() {
		p.ahead.Store(ahead)
	}
}

// change changes what others wait for.
func (p *player) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait returns true once cond holds, and false after patience.
func (p *player) wait(ctx context.Context, patience time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		p.mu.Lock()
		holds, changed := cond(), p.changed
		p.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// see handles what the bot exchanges with the emulators.
func (p *player) see(l record.Line) {
	if s, ok := sendOf(l); ok {
		p.change(func() { p.got = p.got.with(s) })
	} else if (isSend(l) || l.Direction == record.Call && l.Status >= http.StatusBadRequest) && !p.refused[l.Name()] {
		p.note("%s refuses %s: %.300s", l.Service, l.Name(), l.Response)
	}
}

func (p *player) note(format string, args ...any) {
	p.change(func() { p.other = append(p.other, fmt.Sprintf(format, args...)) })
}

// connect starts the emulators that the recording needs, with its bot.
func (p *player) connect(ctx context.Context) (env Environment, err error) {
	env = Environment{Taps: p, Now: p.now}
	if err := p.found(); err != nil {
		return env, err
	}
	if p.has("telegram") {
		env.TelegramToken = p.telegram.Token()
		env.TelegramURL, err = p.telegram.Start(ctx)
	}
	if p.has("slack") && err == nil {
		env.SlackBotToken, env.SlackAppToken = p.slack.BotToken(), p.slack.AppToken()
		env.SlackURL, err = p.slack.Start(ctx)
	}
	for _, a := range p.asked {
		if url, ok := cutPath(a.URL); ok && env.ModelName == "" {
			_, _, env.ModelName = conversation(a.Request)
			env.ModelURL = url
		}
	}
	return env, err
}

// found creates the emulators, with the bot and the users in the recording.
func (p *player) found() (err error) {
	var me struct {
		Result     telegram.User
		User, Team string
		UserID     string `json:"user_id"`
		TeamID     string `json:"team_id"`
	}
	for _, answer := range append(p.names["getMe"], p.names["auth.test"]...) {
		_ = json.Unmarshal(answer, &me) // a failed one has no name
	}
	token := ""
	if me.Result.ID != 0 {
		token = fmt.Sprintf("%d:AAreplayed-recordings-have-no-token-x", me.Result.ID)
	}
	if p.telegram, err = telegram.New(telegram.Config{Token: token, Username: me.Result.Username, Now: p.now}); err != nil {
		return err
	}
	if p.slack, err = slack.New(slack.Config{Team: me.TeamID, TeamName: me.Team, BotUser: me.UserID, BotName: me.User, Scopes: p.scopes, Now: p.now}); err != nil {
		return err
	}
	for _, answer := range p.names["users.info"] {
		var person struct{ User slack.User }
		if json.Unmarshal(answer, &person) == nil && person.User.ID != "" && person.User.ID != me.UserID {
			p.slack.AddUser(person.User)
		}
	}
	return nil
}

// Close ends the emulators.
func (p *player) Close() (err error) {
	if p.telegram != nil {
		err = p.telegram.Close()
	}
	if p.slack != nil {
		err = errors.Join(err, p.slack.Close())
	}
	return err
}

func cutPath(url string) (string, bool) {
	url, _, _ = strings.Cut(url, "?")
	base, chat := strings.CutSuffix(url, "/chat/completions")
	base, responses := strings.CutSuffix(base, "/responses")
	return base, chat || responses
}

func (p *player) has(service string) bool {
	return slices.ContainsFunc(p.events, func(e event) bool { return e.service == service })
}

// feed sends the recorded events to the bot, each once it has sent what it had sent before.
func (p *player) feed(ctx context.Context) error {
	for _, e := range p.events {
		p.reach(ctx, func(s send) bool { return s.at.Before(e.at) })
		p.mu.Lock()
		p.jump(e.at)
		body := p.renamed(string(e.body))
		p.mu.Unlock()
		var err error
		switch e.service {
		case "telegram":
			err = p.telegram.Play(json.RawMessage(body))
		case "slack":
			err = p.slack.Play(e.kind, json.RawMessage(body))
		}
		if err != nil {
			return fmt.Errorf("play what came at %s: %w", e.at.Format(time.RFC3339), err)
		}
		p.change(func() { p.fed++ })
	}
	p.reach(ctx, func(send) bool { return true })
	for n := -1; ; {
		seen := 0
		p.mu.Lock()
		seen = len(p.got)
		p.mu.Unlock()
		if seen == n || ctx.Err() != nil {
			break
		}
		n = seen
		p.wait(ctx, p.Quiet, func() bool { return len(p.got) > n })
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errOver) {
		return cause
	}
	return nil
}

// reach waits until the bot has sent as much as it had sent by then.
func (p *player) reach(ctx context.Context, by func(send) bool) {
	want := 0
	for _, s := range p.sends {
		if by(s) {
			want++
		}
	}
	if !p.wait(ctx, p.Patience, func() bool { return len(p.got) >= want }) {
		p.Patience = p.Quiet // it differs: what it has not sent will not come
	}
	p.wait(ctx, minUserPause, func() bool { return false })
}

// renamed replaces recorded ids by current ones: of the bot's messages, and in the data of its
// buttons.
func (p *player) renamed(text string) string {
	var pairs []string
	for _, was := range p.sends {
		is, ok := p.got.find(was)
		if !ok {
			continue
		}
		if was.id != is.id && was.service == "telegram" {
			pairs = append(pairs, `"message_id":`+was.id+",", `"message_id":`+is.id+",")
		} else if was.id != is.id {
			pairs = append(pairs, `"`+was.id+`"`, `"`+is.id+`"`)
		}
		for n := range min(len(was.data), len(is.data)) {
			pairs = append(pairs, `"`+was.data[n]+`"`, `"`+is.data[n]+`"`)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// compare returns the differences in what the bot has sent, row by row.
func (p *player) compare() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	other := p.other
	for _, was := range p.sends {
		is, ok := p.got.find(was)
		if want := p.renamed(was.text); !ok {
			other = append(other, fmt.Sprintf("%s: recorded %s; now nothing", was.name, want))
		} else if want != is.text {
			other = append(other, fmt.Sprintf("%s: recorded %s; now %s", was.name, want, is.text))
		}
	}
	for _, is := range p.got {
		if _, ok := p.sends.find(is); !ok {
			other = append(other, fmt.Sprintf("%s: recorded nothing; now %s", is.name, is.text))
		}
	}
	for _, a := range p.asked {
		if _, talk := cutPath(a.URL); talk && !a.used {
			roles, _, _ := conversation(a.Request)
			other = append(other, fmt.Sprintf("model: recorded a request with the messages [%s]; now none", roles))
		}
	}
	return other
}

// Tap implements the taps of an [Environment].
func (p *player) Tap(service string) retry.Tap {
	if service == record.Model {
		return modelTap{p}
	}
	return p.Recorder.Tap(service)
}
