package outbox

import (
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/rescue"
)

const (
	// delay is how long a turn runs before its preview begins: a short answer comes at once, complete.
	delay = 700 * time.Millisecond
	// timeout bounds one request. Later requests wait for it, to keep the order.
	timeout = 10 * time.Second
	// pause is how long a preview waits after an error without a duration.
	pause = 5 * time.Second
	// maxModels bounds how many models are remembered.
	maxModels = 1000
)

// PreviewsConfig configures [Previews]. All fields are required.
type PreviewsConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// Safe reports whether certainly no other process owns the job now. Nil if this one works alone.
	Safe func(j *queue.Run) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	Log    *slog.Logger
	Now    func() time.Time
	// Jobs stores which message shows a preview.
	Jobs queue.Store
	// Growing masks secrets in a text that is still growing.
	Growing func(text string) string
	// Sender knows whether a platform accepts messages now.
	Sender *Sender
	// Queue provides the context of requests.
	Queue Queue
}

// Previews shows previews. Each has one goroutine, from the time its turn has taken a while until the
// turn ends.
type Previews struct {
	cfg PreviewsConfig

	mu    sync.Mutex
	aloud map[string]bool // by model, from its replies: see agent.Speaking
}

// NewPreviews returns Previews.
func NewPreviews(cfg PreviewsConfig) *Previews {
	return &Previews{cfg: cfg, aloud: make(map[string]bool)}
}

// LivePreview shows one turn while it runs.
type LivePreview struct {
	// Observe receives the events of the turn, concurrently.
	Observe func(agent.Event)
	// Withhold prevents the preview if nothing was shown, and reports whether that is so. It does not
	// block.
	Withhold func() bool
	// End ends the preview: the job then holds it.
	End func()
}

// Start shows the turn of a job while it runs. A job with a preview whose fate is unknown gets no
// other.
func (d *Previews) Start(j *queue.Run) LivePreview {
	p, ok := d.cfg.Platforms[j.Message.Chat.Platform].(chats.Previewer)
	shown := Of(j).Preview
	if !ok || shown != nil && (shown.ID == "" || shown.ChatID != Address(j).Chat.ID) {
		return LivePreview{Observe: func(agent.Event) {}, Withhold: func() bool { return shown == nil }, End: func() {}}
	}
	w := &livePreview{
		previews: d, platform: p, to: Address(j), begun: d.cfg.Now(), quiet: Of(j).StopTyping, kept: shown, begins: shown != nil,
		job:     &queue.Run{Job: queue.Job{Message: j.Message, From: j.From, LeaseToken: j.LeaseToken}},
		changed: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	timer := time.AfterFunc(delay, func() {
		defer close(w.done)
		rescue.Go(d.cfg.Log, "a preview", w.run)
	})
	return LivePreview{Observe: w.observe, Withhold: w.withhold, End: sync.OnceFunc(func() {
		if timer.Stop() {
			return
		}
		close(w.stop)
		<-w.done
		Of(j).Preview, j.Rev = w.kept, max(j.Rev, w.rev)
	})}
}

// learn records whether a model thinks aloud.
func (d *Previews) learn(model string, aloud bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.aloud) < maxModels {
		d.aloud[model] = aloud
	}
}

// thinks reports whether a model's replies may begin in the middle of a thought.
func (d *Previews) thinks(model string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if aloud, known := d.aloud[model]; known {
		return aloud
	}
	return agent.ThinksAloud(model)
}

func newToken() string { return rand.Text()[:16] }
