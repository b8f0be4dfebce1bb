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
	"os"
	"path/filepath"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/google"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/models"
	"oneclaw/internal/redact"
	"oneclaw/internal/retry"
)

// Environment is given to the demo's bot.
type Environment struct {
	// Config connects the bot to the services.
	Config config.Config
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
	// Settings are those of the program. Their model is used if they have a key or another address, and
	// an offline one otherwise. Their platforms and accounts are not used.
	Settings config.Config
	// DataDir is an empty folder for the bot's data.
	DataDir string
	// Manifest is the manifest of the Slack app; nil for a plain one.
	Manifest []byte
	// Pace is the pause of the offline model between groups of words.
	Pace time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

// Demo runs the emulated services with the bot.
type Demo struct {
	Platforms

	cfg     Config
	log     *slog.Logger
	offline *openai.Server // nil with a real model
	google  *google.Server
	env     Environment

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
	if d.Platforms, err = NewPlatforms(cfg.Manifest, false); err == nil {
		d.google, err = google.New(google.Config{ClientID: googleID, ClientSecret: googleSecret})
	}
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return d, nil
}

// The OAuth client of the emulated Google.
const (
	googleID     = "demo-client"
	googleSecret = "demo-client-secret"
)

// Run starts the emulators and the bot and serves the page on l until ctx ends.
func (d *Demo) Run(ctx context.Context, l net.Listener) (err error) {
	defer func() { err = errors.Join(err, d.Telegram.Close(), d.Slack.Close()) }()
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
	telegramURL, err := d.Telegram.Start(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	slackURL, err := d.Slack.Start(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	bot := d.botConfig()
	if bot.Model.LacksKey() {
		if d.offline, err = openai.New(openai.Config{Latency: 350 * time.Millisecond, DeltaDelay: d.cfg.Pace, MaxTools: 1000, Transcript: openai.Unheard}); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		url, err := d.offline.Start(ctx)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		bot.Model = models.OwnModel{BaseURL: url, Name: openai.DefaultModel}
		bot.Voice.BaseURL, bot.Voice.Model = "", openai.DefaultModel
		bot.Images.BaseURL, bot.Images.Model = "", openai.ImageModel
		bot.Speech.BaseURL, bot.Speech.Model = "", openai.SpeechModel
	}
	bot.Telegram.Token, bot.Telegram.APIURL = redact.Secret(d.Telegram.Token()), telegramURL
	bot.Slack.BotToken, bot.Slack.AppToken, bot.Slack.APIURL = redact.Secret(d.Slack.BotToken()), redact.Secret(d.Slack.AppToken()), slackURL
	bot.Google = config.GoogleConfig{ClientID: googleID, ClientSecret: googleSecret, APIURL: googleURL}
	bot.PublicURL = publicURL
	d.env = Environment{Config: bot, Observe: d.observe, Ready: d.handleReady}
	return nil
}

// botConfig returns the settings of a bot for the one user of the page, without platforms and accounts.
func (d *Demo) botConfig() config.Config {
	own, bot := d.cfg.Settings, config.Default()
	bot.LogLevel, bot.Redact = own.LogLevel, own.Redact
	if bot.CacheDir = own.CacheDir; bot.CacheDir == "" {
		// The data of a demo is deleted. Keep the cache, which takes time to compile.
		if dir, err := os.UserCacheDir(); err == nil {
			bot.CacheDir = filepath.Join(dir, "oneclaw")
		}
	}
	bot.DataDir, bot.Timezone, bot.Log, bot.Tools = d.cfg.DataDir, own.Timezone, own.Log, own.Tools
	bot.Tools.Files = config.FilesLocal
	bot.Model, bot.Voice, bot.Images, bot.Speech = own.Model, own.Voice, own.Images, own.Speech
	bot.Access = config.AccessConfig{Allow: []string{"*"}}
	return bot
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
	inTelegram, leaveTelegram := d.Telegram.Subscribe(1000)
	defer leaveTelegram()
	inSlack, leaveSlack := d.Slack.Subscribe(1000)
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
