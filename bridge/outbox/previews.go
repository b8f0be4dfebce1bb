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
	// previewDelay is how long a turn runs before its preview begins. A quick answer needs no preview.
	previewDelay = 700 * time.Millisecond
	// previewTimeout bounds one request. Later requests wait for its end, to keep the order.
	previewTimeout = 10 * time.Second
	// previewPause is how long a preview waits after an error that specifies no duration.
	previewPause = 5 * time.Second
	// maxModels bounds the models for which [PreviewTracker] remembers whether they think aloud.
	maxModels = 1000
)

// PreviewTrackerConfig configures [PreviewTracker]. All fields except OwnsSafely are required.
type PreviewTrackerConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// OwnsSafely reports whether certainly no other process owns the job now. Nil if no other process
	// uses the store.
	OwnsSafely func(j *queue.Run) bool
	// Redact masks secrets in outgoing text.
	Redact func(text string) string
	Log    *slog.Logger
	Now    func() time.Time
	// Jobs stores which message shows a preview.
	Jobs queue.Store
	// RedactPartial masks secrets in an unfinished text.
	RedactPartial func(text string) string
	// Sender knows whether a platform accepts messages now.
	Sender *Sender
	// Queue provides the context of requests.
	Queue Queue
}

// PreviewTracker shows previews of running turns. Each preview has one goroutine, from the time when its
// turn has taken a while until the turn ends.
type PreviewTracker struct {
	cfg PreviewTrackerConfig

	mu          sync.Mutex
	aloudModels map[string]bool // by model; see agent.ThinksAloud
}

// NewPreviewTracker returns a tracker without previews.
func NewPreviewTracker(cfg PreviewTrackerConfig) *PreviewTracker {
	return &PreviewTracker{cfg: cfg, aloudModels: make(map[string]bool)}
}

// LivePreview shows one turn while it runs.
type LivePreview struct {
	// Observe receives the events of the turn, concurrently.
	Observe func(agent.Event)
	// Withhold prevents the preview unless a message is shown already, and reports whether it did. It
	// does not block.
	Withhold func() bool
	// End ends the preview and sets the job's Preview.
	End func()
}

// Start shows the turn of a job while it runs. If it is unknown whether an earlier preview of the job
// arrived, no other is shown.
func (d *PreviewTracker) Start(j *queue.Run) LivePreview {
	p, ok := d.cfg.Platforms[j.Message.Chat.Platform].(chats.Previewer)
	shown := DeliveryOf(j).Preview
	if !ok || shown != nil && (shown.ID == "" || shown.ChatID != Address(j).Chat.ID) {
		return LivePreview{Observe: func(agent.Event) {}, Withhold: func() bool { return shown == nil }, End: func() {}}
	}
	w := &livePreview{
		previews: d, platform: p, to: Address(j), begun: d.cfg.Now(), clearTyping: DeliveryOf(j).StopTyping, stored: shown, hasBegun: shown != nil,
		job:     &queue.Run{Job: queue.Job{Message: j.Message, From: j.From, LeaseToken: j.LeaseToken}},
		changed: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	timer := time.AfterFunc(previewDelay, func() {
		defer close(w.done)
		rescue.Go(d.cfg.Log, "a preview", w.run)
	})
	return LivePreview{Observe: w.observe, Withhold: w.withhold, End: sync.OnceFunc(func() {
		if timer.Stop() {
			return
		}
		close(w.stop)
		<-w.done
		if w.record != nil && w.record.Rev > j.Rev {
			j.Adopt(w.record) // with what others have stored before the preview's last write
		}
		DeliveryOf(j).Preview = w.stored
	})}
}

// recordThinksAloud records whether a model thinks aloud.
func (d *PreviewTracker) recordThinksAloud(model string, aloud bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.aloudModels) < maxModels {
		d.aloudModels[model] = aloud
	}
}

// thinksAloud reports whether a model's replies may begin with reasoning that is not marked as such.
func (d *PreviewTracker) thinksAloud(model string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if aloud, known := d.aloudModels[model]; known {
		return aloud
	}
	return agent.ThinksAloud(model)
}

func newToken() string { return rand.Text()[:16] }
