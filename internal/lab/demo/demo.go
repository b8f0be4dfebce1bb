package demo

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/internal/app"
	"oneclaw/internal/emulator/google"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/retry"
)

// Model is a language model to use instead of the offline one.
type Model struct {
	BaseURL, APIKey, Name string
}

// Environment has the services that the demo's bot is connected to.
type Environment struct {
	DataDir                                string
	TelegramURL, TelegramToken             string
	SlackURL, SlackBotToken, SlackAppToken string
	GoogleURL, GoogleID, GoogleSecret      string
	// PublicURL is the address of the page, and of the bot's /google/ endpoints.
	PublicURL string
	Model     Model
	// VoiceModel is the transcription model of the same server. Empty leaves it to the settings.
	VoiceModel string
	// ImageModel and SpeechModel are the models of the same server that make pictures, and that speak.
	// Empty leaves them to the settings.
	ImageModel, SpeechModel string
	// Observe receives the events of turns.
	Observe func(chats.Chat, agent.Event)
	// Ready is called once the bot is built and about to receive.
	Ready func(Controls)
}

// Controls lets the page control a running bot.
type Controls struct {
	// Web serves the bot's HTTP endpoints.
	Web http.Handler
	// Routings are the possible routings. Routing returns the current one, SetRouting changes it
	// from the next request on.
	Routings   []string
	Routing    func(ctx context.Context) (string, error)
	SetRouting func(ctx context.Context, name string) error
	// CanRunCommands is set if exec can run commands on this machine.
	CanRunCommands bool
}

// Config configures a [Demo].
type Config struct {
	// Bot runs the bot until ctx ends, and returns after everything it started has ended. It is
	// called again after each restart.
	Bot func(ctx context.Context, env Environment) error
	// DataDir is an empty folder for the bot's data.
	DataDir string
	// Manifest is the manifest of the Slack app; nil for a plain one.
	Manifest []byte
	// Pace is the pause of the offline model between groups of words.
	Pace time.Duration
	// Model, if its Name is not empty, replaces the offline model.
	Model Model
	// Logger may be nil.
	Logger *slog.Logger
}

// Demo runs the emulated services with the bot.
type Demo struct {
	cfg      Config
	log      *slog.Logger
	telegram *telegram.Server
	slack    *slack.Server
	offline  *openai.Server // nil with a real model
	google   *google.Server
	env      Environment

	telegramChat   int64  // the user's private chat
	telegramUserID int64  // the user
	slackChannel   string // the shared channel
	slackDM        string // the user's direct chat with the app
	slackUserID    string // the user

	mu       sync.Mutex
	changed  chan struct{}
	bot      botState
	controls Controls              // of the last started bot
	routing  string                // the current routing
	usage    map[string]*chatUsage // by chat
	requests []*modelRequest       // the oldest first
	albums   int
}

type botState string

const (
	botStarting botState = "starting"
	botRunning  botState = "running"
	botStopped  botState = "stopped"
	botFailed   botState = "failed"
)

// fakeTranscript is the offline model's transcript of every recording.
const fakeTranscript = "How many pages does the PDF have?"

//go:embed sample.pdf
var samplePDF []byte

const sampleName = "autumn-report.pdf"

// New makes a demo. It starts nothing; see [Demo.Run].
func New(cfg Config) (*Demo, error) {
	if cfg.Bot == nil || cfg.DataDir == "" {
		return nil, errors.New("demo: a bot and a data directory are needed")
	}
	d := &Demo{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		changed: make(chan struct{}), usage: map[string]*chatUsage{}, bot: botStopped,
	}
	var err error
	if d.telegram, err = telegram.New(telegram.Config{Username: "oneclaw_bot"}); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if d.slack, err = slack.New(slack.Config{TeamName: "Lighthouse"}); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	if d.google, err = google.New(google.Config{ClientID: googleID, ClientSecret: googleSecret}); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return d, d.addUsers()
}

// The OAuth client of the emulated Google.
const (
	googleID     = "demo-client"
	googleSecret = "demo-client-secret"
)

// addUsers adds the user to both platforms.
func (d *Demo) addUsers() error {
	d.telegramUserID = d.telegram.AddUser(telegram.User{FirstName: "You"}).ID
	var err error
	if d.telegramChat, err = d.telegram.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: d.telegramUserID}); err != nil {
		return fmt.Errorf("demo: telegram: %w", err)
	}
	d.slackUserID = d.slack.AddUser(slack.User{Name: "you", RealName: "You", Admin: true}).ID
	if d.slackChannel, err = d.slack.AddChannel(slack.ChannelSpec{Name: "general", Members: []string{d.slackUserID}}); err != nil {
		return fmt.Errorf("demo: slack: %w", err)
	}
	if d.slackDM, err = d.slack.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: []string{d.slackUserID}}); err != nil {
		return fmt.Errorf("demo: slack: %w", err)
	}
	if d.cfg.Manifest == nil {
		return nil
	}
	if err := d.slack.Install(d.cfg.Manifest); err != nil {
		return fmt.Errorf("demo: slack: %w", err)
	}
	return nil
}

// Run starts the emulators and the bot and serves the page on l until ctx ends.
func (d *Demo) Run(ctx context.Context, l net.Listener) (err error) {
	defer func() { err = errors.Join(err, d.telegram.Close(), d.slack.Close()) }()
	googleListener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { _ = googleListener.Close() }()
	if err := d.startEmulators(ctx, "http://"+googleListener.Addr().String(), "http://"+l.Addr().String()); err != nil {
		return err
	}
	if d.offline != nil {
		defer func() { err = errors.Join(err, d.offline.Close()) }()
	}
	var work sync.WaitGroup
	defer work.Wait()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	work.Go(func() { d.watchChats(running) })
	work.Go(func() {
		if err := app.Serve(running, googleListener, d.google); err != nil {
			d.log.Error("the emulated Google server failed", "err", err)
		}
	})
	restarts := make(chan struct{})
	work.Go(func() { d.runBot(running, restarts) })
	return app.Serve(running, l, d.newHandler(restarts))
}

// startEmulators starts the emulators and records their addresses.
func (d *Demo) startEmulators(ctx context.Context, googleURL, publicURL string) error {
	telegramURL, err := d.telegram.Start(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	slackURL, err := d.slack.Start(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	model := d.cfg.Model
	if model.Name == "" {
		if d.offline, err = openai.New(openai.Config{Latency: 350 * time.Millisecond, DeltaDelay: d.cfg.Pace, MaxTools: 1000, Transcript: fakeTranscript}); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		url, err := d.offline.Start(ctx)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		model = Model{BaseURL: url, Name: openai.DefaultModel}
		d.env.VoiceModel, d.env.ImageModel, d.env.SpeechModel = openai.DefaultModel, openai.ImageModel, openai.SpeechModel
	}
	d.env = Environment{
		DataDir: d.cfg.DataDir, TelegramURL: telegramURL, TelegramToken: d.telegram.Token(),
		SlackURL: slackURL, SlackBotToken: d.slack.BotToken(), SlackAppToken: d.slack.AppToken(),
		GoogleURL: googleURL, GoogleID: googleID, GoogleSecret: googleSecret, PublicURL: publicURL,
		Model: model, VoiceModel: d.env.VoiceModel, ImageModel: d.env.ImageModel, SpeechModel: d.env.SpeechModel, Observe: d.observe, Ready: d.handleReady,
	}
	return nil
}

func (d *Demo) runBot(ctx context.Context, restarts <-chan struct{}) {
	for ctx.Err() == nil {
		life, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		d.setBot(botStarting)
		go func() { ended <- d.cfg.Bot(life, d.env) }()
		var err error
		select {
		case <-restarts:
			stop()
			err = <-ended
		case err = <-ended:
		}
		stop()
		if err != nil && ctx.Err() == nil {
			d.log.Error("the bot of the demo failed", "err", err)
			d.setBot(botFailed)
			select {
			case <-restarts:
			case <-ctx.Done():
			}
			continue
		}
		d.setBot(botStopped)
		_ = retry.Wait(ctx, 1500*time.Millisecond) // the page shows that the bot is gone before it is back
	}
}

// handleReady stores the bot's controls and shows that it runs.
func (d *Demo) handleReady(c Controls) {
	routing := ""
	if c.Routing != nil {
		var err error
		if routing, err = c.Routing(context.Background()); err != nil {
			d.log.Error("cannot read the routing of the bot", "err", err)
		}
	}
	d.mu.Lock()
	d.controls, d.routing = c, routing
	d.mu.Unlock()
	d.setBot(botRunning)
}

func (d *Demo) setBot(s botState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bot = s
	d.notify()
}

// notify wakes the pages. The caller holds d.mu.
func (d *Demo) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *Demo) watchChats(ctx context.Context) {
	inTelegram, leaveTelegram := d.telegram.Subscribe(1000)
	defer leaveTelegram()
	inSlack, leaveSlack := d.slack.Subscribe(1000)
	defer leaveSlack()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-inTelegram:
			if e.Snapshot != nil {
				d.clearGroups(chats.Chat{Platform: "telegram", ID: fmt.Sprint(e.Chat)}, e.Snapshot.FromBot, e.Snapshot.Text)
			}
		case e := <-inSlack:
			if e.Snapshot != nil {
				chat := chats.Chat{Platform: "slack", ID: e.Chat, Thread: e.Snapshot.Thread}
				d.clearGroups(chat, e.Snapshot.FromBot, e.Snapshot.Text)
			}
		}
		d.mu.Lock()
		d.notify()
		d.mu.Unlock()
	}
}
