package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"oneclaw/internal/readable"
	"oneclaw/internal/rescue"
)

// DefaultMaxMemory is the default of [Config].MaxMemory: three times the usual size of a heavy page.
const DefaultMaxMemory = 1 << 30

// Config configures a [Browser].
type Config struct {
	// Path is the executable of Chromium. "" means the first one found in PATH.
	Path string
	// AllowPrivate are ranges of addresses that pages may reach although they are not
	// public. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver
	// IdleTimeout is the time after which an unused Chromium is ended. 0 means five minutes.
	IdleTimeout time.Duration
	// LoadTimeout bounds the loading of a page, which is then used as it is. 0 means 25 seconds.
	LoadTimeout time.Duration
	// MaxTabs bounds the calls that run in parallel; others wait. 0 means two.
	MaxTabs int
	// MaxMemory bounds the memory of all Chromium processes while a page is open, in bytes. Above
	// it Chromium is killed. 0 means [DefaultMaxMemory]. Without /proc it has no effect.
	MaxMemory int64
	// Reader reads the text of pages. nil means a new one.
	Reader *readable.Reader
	// Now returns the current time. nil means [time.Now].
	Now func() time.Time
	// Logger receives errors that are not shown to the model. nil discards them.
	Logger *slog.Logger
}

var (
	// errClosed is returned after [Browser.Close].
	errClosed = errors.New("the browser is closed")
	// errMemory is returned by calls in a browser that exceeded its memory limit.
	errMemory = errors.New("the browser exceeded its memory limit")
)

// Browser runs at most one Chromium, from the first call until no call has used it for
// [Config].IdleTimeout. It must be closed.
type Browser struct {
	cfg        Config
	tabSlots   chan struct{} // one per running call
	launchSlot chan struct{} // held while Chromium starts or is replaced
	done       chan struct{}

	mu          sync.Mutex
	running     *chromium
	activeCalls int
	idleTimer   *time.Timer
	closed      bool
	closers     sync.WaitGroup
}

// New makes a browser, and deletes what the browsers of killed bots have left on this machine. Chromium
// starts with the first call.
func New(cfg Config) (*Browser, error) {
	if cfg.IdleTimeout < 0 || cfg.MaxTabs < 0 || cfg.LoadTimeout < 0 || cfg.MaxMemory < 0 {
		return nil, errors.New("browser: IdleTimeout, LoadTimeout, MaxTabs and MaxMemory must not be negative")
	}
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, 5*time.Minute)
	cfg.LoadTimeout = cmp.Or(cfg.LoadTimeout, 25*time.Second)
	cfg.MaxMemory = cmp.Or(cfg.MaxMemory, DefaultMaxMemory)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Reader == nil {
		var err error
		if cfg.Reader, err = readable.NewReader(cfg.Logger); err != nil {
			return nil, fmt.Errorf("browser: %w", err)
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	removeAbandoned() // now too: maybe no user browses again
	return &Browser{
		cfg:        cfg,
		tabSlots:   make(chan struct{}, cmp.Or(cfg.MaxTabs, 2)),
		launchSlot: make(chan struct{}, 1),
		done:       make(chan struct{}),
	}, nil
}

// Close ends Chromium. Running calls fail, and Close waits for them.
func (b *Browser) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	close(b.done)
	c := b.running
	b.running = nil
	if b.idleTimer != nil {
		b.idleTimer.Stop()
	}
	b.mu.Unlock()
	var err error
	if c != nil {
		err = c.close()
	}
	for range cap(b.tabSlots) {
		b.tabSlots <- struct{}{}
	}
	b.closers.Wait()
	return err
}

// acquire waits for a free tab and a running Chromium. The caller must call release.
func (b *Browser) acquire(ctx context.Context) (*chromium, error) {
	if err := b.takeSlot(ctx, b.tabSlots); err != nil {
		return nil, err
	}
	c, err := b.ensureChromium(ctx)
	if err != nil {
		<-b.tabSlots
	}
	return c, err
}

func (b *Browser) takeSlot(ctx context.Context, from chan struct{}) error {
	select {
	case <-b.done:
		return errClosed
	default:
	}
	select {
	case from <- struct{}{}:
		return nil
	case <-b.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ensureChromium returns the running browser, or starts one, and registers a call with it.
func (b *Browser) ensureChromium(ctx context.Context) (*chromium, error) {
	if err := b.takeSlot(ctx, b.launchSlot); err != nil {
		return nil, err
	}
	defer func() { <-b.launchSlot }()
	c, dead := b.joinRunning()
	if dead != nil {
		b.cfg.Logger.Warn("browser ended unexpectedly")
		b.closeChromium(dead)
	}
	if c != nil {
		return c, nil
	}
	c, err := launch(ctx, b.cfg.Path)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.Join(errClosed, c.close())
	}
	b.running = c
	b.activeCalls++
	return c, nil
}

// joinRunning registers a call with the running Chromium. It returns a Chromium that has ended as dead.
func (b *Browser) joinRunning() (c, dead *chromium) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil {
		return nil, nil
	}
	if b.running.hasEnded() {
		dead, b.running, b.activeCalls = b.running, nil, 0
		return nil, dead
	}
	b.activeCalls++
	if b.idleTimer != nil {
		b.idleTimer.Stop()
	}
	return b.running, nil
}

// release frees a tab. When no tab is left in use, Chromium is ended after IdleTimeout.
func (b *Browser) release(c *chromium) {
	b.mu.Lock()
	if c == b.running {
		if b.activeCalls--; b.activeCalls == 0 && !b.closed {
			b.idleTimer = time.AfterFunc(b.cfg.IdleTimeout, b.closeIdle)
		}
	}
	b.mu.Unlock()
	<-b.tabSlots
}

// watchMemory limits the memory of Chromium until the returned function is called. If Chromium was
// killed for its memory, that function replaces an error of the call by errMemory.
func (b *Browser) watchMemory(ctx context.Context, c *chromium) func(*error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := rescue.Do(func() error { return c.limitMemory(ctx, uint64(b.cfg.MaxMemory)) }); err != nil {
			b.cfg.Logger.Warn("browser killed", "err", err)
		}
	}()
	return func(err *error) {
		cancel()
		<-ended
		if *err != nil && c.exceededMemory.Load() {
			*err = errMemory
		}
	}
}

// closeIdle ends Chromium if no call uses it.
func (b *Browser) closeIdle() {
	b.mu.Lock()
	c := b.running
	if c == nil || b.activeCalls > 0 || b.closed {
		b.mu.Unlock()
		return
	}
	b.running = nil
	b.closers.Add(1)
	b.mu.Unlock()
	defer b.closers.Done()
	b.closeChromium(c)
	b.cfg.Logger.Debug("idle browser ended")
}

func (b *Browser) closeChromium(c *chromium) {
	if err := c.close(); err != nil {
		b.cfg.Logger.Warn("browser was not ended cleanly", "err", err)
	}
}
