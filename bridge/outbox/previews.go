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
	// delay is how old a turn is before it is shown: a short answer comes at once and whole.
	delay = 700 * time.Millisecond
	// timeout bounds one request. What follows it waits for it: it must not come later.
	timeout = 10 * time.Second
	// pause is how long a preview waits after trouble that does not say how long it lasts.
	pause = 5 * time.Second
	// maxModels bounds the models that are known.
	maxModels = 1000
)

// PreviewsConfig is what a [Previews] is made of. All of it is needed.
type PreviewsConfig struct {
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Safe reports whether a job is certainly not another process's at this moment. Nil where this one
	// works alone.
	Safe func(j *queue.Run) bool
	// Redact masks secrets in what goes out.
	Redact func(text string) string
	Log    *slog.Logger
	Now    func() time.Time
	// Jobs keeps which message shows a preview.
	Jobs queue.Store
	// Growing masks secrets in a text that is still growing.
	Growing func(text string) string
	// Sender knows whether a platform takes messages at the moment.
	Sender *Sender
	// Queue has the context that requests are made under.
	Queue Queue
}

// Previews shows previews. Each has one goroutine, from when its turn has taken a while until
// that ends.
type Previews struct {
	cfg PreviewsConfig

	mu    sync.Mutex
	aloud map[string]bool // the models whose replies were seen: see agent.Speaking
}

// NewPreviews returns previews of nothing yet.
func NewPreviews(cfg PreviewsConfig) *Previews {
	return &Previews{cfg: cfg, aloud: make(map[string]bool)}
}

// LivePreview shows one turn while it runs.
type LivePreview struct {
	// Observe is told what happens in the turn, concurrently.
	Observe func(agent.Event)
	// Withhold has nothing be shown any more, where nothing was, and reports whether that is so.
	// It waits for nothing.
	Withhold func() bool
	// End is called at the end of that: the job knows its preview then.
	End func()
}

// Start shows what is observed in the turn of a job, until its end. A job of which a preview may
// stand unfinished has no other.
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

// learn notes whether a model thinks aloud.
func (d *Previews) learn(model string, aloud bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.aloud) < maxModels {
		d.aloud[model] = aloud
	}
}

// thinks reports whether the replies of a model may begin in the middle of a thought.
func (d *Previews) thinks(model string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if aloud, known := d.aloud[model]; known {
		return aloud
	}
	return agent.ThinksAloud(model)
}

func newToken() string { return rand.Text()[:16] }
