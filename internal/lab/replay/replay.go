// Package replay plays a recording to a bot and reports where the bot now behaves differently.
package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/record"
	"oneclaw/internal/redact"
	"oneclaw/internal/retry"
)

// Replay configures a replay.
type Replay struct {
	// Bot runs a bot with these settings until ctx ends.
	Bot func(ctx context.Context, cfg config.Config) error
	// Settings are those of the bot, whose platforms and model are replaced. Its data directory is empty.
	Settings config.Config
	// Timeout bounds the wait for each action of the bot in the recording. Quiet is how long the bot
	// must send nothing at the end, or once it differs. 0 means 30 seconds and one second.
	Timeout, Quiet time.Duration
}

// minUserPause is the least pause between actions of a user: the bot has to record a message before
// one of its buttons is pressed.
const minUserPause = 50 * time.Millisecond

// errRecordingOver ends the bot after everything was played.
var errRecordingOver = errors.New("replay: the recording is over")

// Play plays a recording to the bot. The platforms' events come from the emulators, the model's
// answers from the recording, each once as much has happened as before it. It returns the differences.
func (r Replay) Play(ctx context.Context, lines []record.Line) (other []string, err error) {
	r.Timeout, r.Quiet = cmp.Or(r.Timeout, 30*time.Second), cmp.Or(r.Quiet, time.Second)
	p := &player{Replay: r, script: newScript(lines), changed: make(chan struct{})}
	if len(p.events) == 0 {
		return nil, errors.New("the recording has no events for the bot")
	}
	p.setClock(lines[0].Time)
	p.Recorder = &record.Recorder{OnLine: p.handleLine, Redact: r.Settings.Redact.Text, Now: p.now}
	defer func() { err = errors.Join(err, p.Close()) }()
	cfg, err := p.startEmulators(ctx)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		err := r.Bot(running, cfg)
		cancel(errors.Join(errors.New("the bot stopped unexpectedly"), err))
		done <- err
	}()
	err = p.feed(running)
	cancel(errRecordingOver)
	err = errors.Join(err, <-done)
	return p.compare(), err
}

// player plays a recording.
type player struct {
	Replay
	*script
	*record.Recorder
	telegram    *telegram.Server
	slack       *slack.Server
	clockOffset atomic.Int64 // how far the clock is ahead, in nanoseconds

	mu          sync.Mutex
	changed     chan struct{}
	played      int
	sent        sends
	differences []string
}

func (p *player) now() time.Time {
	return p.Settings.Runtime.Now().Add(time.Duration(p.clockOffset.Load()))
}

// setClock sets the clock to a time, unless it is later already.
func (p *player) setClock(to time.Time) {
	if ahead := int64(to.Sub(p.Settings.Runtime.Now())); p.played == 0 || ahead > p.clockOffset.Load() {
		p.clockOffset.Store(ahead)
	}
}

// update changes the state with do, and wakes the callers of wait.
func (p *player) update(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait returns true once cond holds, and false when patience has passed or ctx has ended.
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

// handleLine records a line of the traffic between the bot and the emulators.
func (p *player) handleLine(l record.Line) {
	if s, ok := parseSend(l); ok {
		p.update(func() { p.sent = p.sent.add(s) })
	} else if (isSend(l) || l.Direction == record.Call && l.Status >= http.StatusBadRequest) && !p.tolerated[l.Name()] {
		p.addDifference("%s refuses %s: %.300s", l.Service, l.Name(), l.Response)
	}
}

func (p *player) addDifference(format string, args ...any) {
	p.update(func() { p.differences = append(p.differences, fmt.Sprintf(format, args...)) })
}

// startEmulators starts the emulators that the recording needs, with its bot. It returns the settings of
// a bot that is connected to nothing else.
func (p *player) startEmulators(ctx context.Context) (cfg config.Config, err error) {
	cfg = p.Settings
	none := config.Default()
	none.Slack.Channels, none.Model.BaseURL, none.Model.Name = cfg.Slack.Channels, "", ""
	cfg.Telegram, cfg.Slack, cfg.Model, cfg.MCP, cfg.Google, cfg.PublicURL = none.Telegram, none.Slack, none.Model, none.MCP, config.GoogleConfig{}, ""
	cfg.Tools.Files, cfg.Tools.Exec, cfg.Tools.AllowPrivate = config.FilesLocal, none.Tools.Exec, nil
	cfg.Taps, cfg.Runtime.Now = p, p.now
	cfg.Runtime.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("host names are not resolved in a replay")
	}}
	if access.Access(cfg.Access).Empty() {
		cfg.Access.Admins = []string{"*"}
	}
	if err := p.createEmulators(); err != nil {
		return cfg, err
	}
	if p.hasEvents("telegram") {
		cfg.Telegram.Token = redact.Secret(p.telegram.Token())
		cfg.Telegram.APIURL, err = p.telegram.Start(ctx)
	}
	if p.hasEvents("slack") && err == nil {
		cfg.Slack.BotToken, cfg.Slack.AppToken = redact.Secret(p.slack.BotToken()), redact.Secret(p.slack.AppToken())
		cfg.Slack.APIURL, err = p.slack.Start(ctx)
	}
	cfg.Model.APIKey = "replayed"
	for _, a := range p.requests {
		if url, ok := modelBaseURL(a.URL); ok && cfg.Model.Name == "" {
			_, _, cfg.Model.Name = describeRequest(a.Request)
			cfg.Model.BaseURL = url
		}
	}
	return cfg, err
}

// createEmulators creates the emulators, with the bot and the users in the recording.
func (p *player) createEmulators() (err error) {
	var me struct {
		Result     telegram.User
		User, Team string
		UserID     string `json:"user_id"`
		TeamID     string `json:"team_id"`
	}
	for _, answer := range append(p.identities["getMe"], p.identities["auth.test"]...) {
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
	for _, answer := range p.identities["users.info"] {
		var person struct{ User slack.User }
		if json.Unmarshal(answer, &person) == nil && person.User.ID != "" && person.User.ID != me.UserID {
			p.slack.AddUser(person.User)
		}
	}
	return nil
}

// Close closes the emulators.
func (p *player) Close() (err error) {
	if p.telegram != nil {
		err = p.telegram.Close()
	}
	if p.slack != nil {
		err = errors.Join(err, p.slack.Close())
	}
	return err
}

func modelBaseURL(url string) (string, bool) {
	url, _, _ = strings.Cut(url, "?")
	base, chat := strings.CutSuffix(url, "/chat/completions")
	base, responses := strings.CutSuffix(base, "/responses")
	return base, chat || responses
}

func (p *player) hasEvents(service string) bool {
	return slices.ContainsFunc(p.events, func(e event) bool { return e.service == service })
}

// feed sends the recorded events to the bot. Each is sent once the bot has sent as much as before it.
func (p *player) feed(ctx context.Context) error {
	for _, e := range p.events {
		p.waitForSends(ctx, func(s send) bool { return s.at.Before(e.at) })
		p.mu.Lock()
		p.setClock(e.at)
		body := p.replaceIDs(string(e.body))
		p.mu.Unlock()
		var err error
		switch e.service {
		case "telegram":
			err = p.telegram.Play(json.RawMessage(body))
		case "slack":
			err = p.slack.Play(e.kind, json.RawMessage(body))
		}
		if err != nil {
			return fmt.Errorf("play the event of %s: %w", e.at.Format(time.RFC3339), err)
		}
		p.update(func() { p.played++ })
	}
	p.waitForSends(ctx, func(send) bool { return true })
	for n := -1; ; {
		seen := 0
		p.mu.Lock()
		seen = len(p.sent)
		p.mu.Unlock()
		if seen == n || ctx.Err() != nil {
			break
		}
		n = seen
		p.wait(ctx, p.Quiet, func() bool { return len(p.sent) > n })
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errRecordingOver) {
		return cause
	}
	return nil
}

// waitForSends waits until the bot has sent as much as the recorded sends for which by is true.
func (p *player) waitForSends(ctx context.Context, by func(send) bool) {
	want := 0
	for _, s := range p.sends {
		if by(s) {
			want++
		}
	}
	if !p.wait(ctx, p.Timeout, func() bool { return len(p.sent) >= want }) {
		p.Timeout = p.Quiet // the bot differs: the missing sends will not come
	}
	p.wait(ctx, minUserPause, func() bool { return false })
}

// replaceIDs replaces recorded ids with current ones: those of the bot's messages, and those in the
// data of its buttons.
func (p *player) replaceIDs(text string) string {
	var pairs []string
	for _, was := range p.sends {
		is, ok := p.sent.find(was)
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

// compare returns the differences between the recorded and the current sends, row by row.
func (p *player) compare() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	other := p.differences
	for _, was := range p.sends {
		is, ok := p.sent.find(was)
		if want := p.replaceIDs(was.text); !ok {
			other = append(other, fmt.Sprintf("%s: recorded %s; now nothing", was.name, want))
		} else if want != is.text {
			other = append(other, fmt.Sprintf("%s: recorded %s; now %s", was.name, want, is.text))
		}
	}
	for _, is := range p.sent {
		if _, ok := p.sends.find(is); !ok {
			other = append(other, fmt.Sprintf("%s: recorded nothing; now %s", is.name, is.text))
		}
	}
	for _, a := range p.requests {
		if _, talk := modelBaseURL(a.URL); talk && !a.used {
			roles, _, _ := describeRequest(a.Request)
			other = append(other, fmt.Sprintf("model: recorded a request with the messages [%s]; now none", roles))
		}
	}
	return other
}

// Tap returns the tap of a service; that of the model answers in its place.
func (p *player) Tap(service string) retry.Tap {
	if service == record.ModelService {
		return modelTap{p}
	}
	return p.Recorder.Tap(service)
}
