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

	"oneclaw/internal/guard"
	"oneclaw/internal/readable"
	"oneclaw/internal/rescue"
)

// DefaultMaxMemory is three times what a heavy page usually takes, in bytes.
const DefaultMaxMemory = 1 << 30

// Config configures a [Browser].
type Config struct {
	// Path is the executable of Chromium. "" means the first on the PATH.
	Path string
	// AllowPrivate are ranges of addresses that pages may reach although they are not
	// public. The zero value allows none.
	AllowPrivate []netip.Prefix
	// Resolver looks up the names of hosts. nil means the host's.
	Resolver *net.Resolver
	// Idle is how long an unused Chromium is kept. 0 means five minutes.
	Idle time.Duration
	// Load bounds the loading of a page, which is then used as it is. 0 means 25 seconds.
	Load time.Duration
	// Tabs bounds the calls that run in parallel; others wait. 0 means two.
	Tabs int
	// MaxMemory bounds the bytes of all processes of Chromium while a page is open; above it
	// Chromium is killed. 0 means [DefaultMaxMemory]. Without /proc there is no bound.
	MaxMemory int64
	// Reader reads the text of pages. nil means a new one.
	Reader *readable.Reader
	// Now tells the time. nil means [time.Now].
	Now func() time.Time
	// Logger gets what the model is not told. nil discards it.
	Logger *slog.Logger
}

var (
	// errClosed is returned after [Browser.Close].
	errClosed = errors.New("the browser is closed")
	// errMemory is returned by calls in a browser that exceeded its memory.
	errMemory = errors.New("the browser took more memory than it may")
)

// Browser runs at most one Chromium, and only while it is used. It must be closed.
type Browser struct {
	cfg    Config
	dialer *net.Dialer
	tabs   chan struct{} // one per running call
	launch chan struct{} // held while Chromium starts or is replaced
	done   chan struct{}

	mu      sync.Mutex
	running *chromium
	users   int
	idle    *time.Timer
	closed  bool
	closing sync.WaitGroup
}

// New makes a browser and starts nothing.
func New(cfg Config) (*Browser, error) {
	if cfg.Idle < 0 || cfg.Tabs < 0 || cfg.Load < 0 || cfg.MaxMemory < 0 {
		return nil, errors.New("browser: Idle, Load, Tabs and MaxMemory must not be negative")
	}
	cfg.Idle = cmp.Or(cfg.Idle, 5*time.Minute)
	cfg.Load = cmp.Or(cfg.Load, 25*time.Second)
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
	return &Browser{
		cfg:    cfg,
		dialer: guard.NewDialer(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver}),
		tabs:   make(chan struct{}, cmp.Or(cfg.Tabs, 2)),
		launch: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}, nil
}

// Close ends Chromium and waits for the calls, which fail.
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
	if b.idle != nil {
		b.idle.Stop()
	}
	b.mu.Unlock()
	var err error
	if c != nil {
		err = c.close()
	}
	for range cap(b.tabs) {
		b.tabs <- struct{}{}
	}
	b.closing.Wait()
	return err
}

// acquire waits for a tab and a running Chromium, which must be released.
func (b *Browser) acquire(ctx context.Context) (*chromium, error) {
	if err := b.takeSlot(ctx, b.tabs); err != nil {
		return nil, err
	}
	c, err := b.chromium(ctx)
	if err != nil {
		<-b.tabs
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

// chromium returns the running browser, or starts one.
func (b *Browser) chromium(ctx context.Context) (*chromium, error) {
	if err := b.takeSlot(ctx, b.launch); err != nil {
		return nil, err
	}
	defer func() { <-b.launch }()
	c, dead := b.join()
	if dead != nil {
		b.cfg.Logger.Warn("browser ended by itself")
		b.end(dead)
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
	b.users++
	return c, nil
}

// join registers a call with a running Chromium, and removes one that has ended.
func (b *Browser) join() (c, dead *chromium) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil {
		return nil, nil
	}
	if b.running.lost() {
		dead, b.running, b.users = b.running, nil, 0
		return nil, dead
	}
	b.users++
	if b.idle != nil {
		b.idle.Stop()
	}
	return b.running, nil
}

// release frees a tab. After the last one Chromium is ended when Idle is over.
func (b *Browser) release(c *chromium) {
	b.mu.Lock()
	if c == b.running {
		if b.users--; b.users == 0 && !b.closed {
			b.idle = time.AfterFunc(b.cfg.Idle, b.expire)
		}
	}
	b.mu.Unlock()
	<-b.tabs
}

// watch bounds the memory of Chromium until the returned function is called, which replaces the
// call's error by the reason for which Chromium was ended.
func (b *Browser) watch(ctx context.Context, c *chromium) func(*error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := rescue.Do(func() error { return c.guard(ctx, uint64(b.cfg.MaxMemory)) }); err != nil {
			b.cfg.Logger.Warn("browser killed", "err", err)
		}
	}()
	return func(err *error) {
		cancel()
		<-ended
		if *err != nil && c.swollen.Load() {
			*err = errMemory
		}
	}
}

// expire ends an unused Chromium.
func (b *Browser) expire() {
	b.mu.Lock()
	c := b.running
	if c == nil || b.users > 0 || b.closed {
		b.mu.Unlock()
		return
	}
	b.running = nil
	b.closing.Add(1)
	b.mu.Unlock()
	defer b.closing.Done()
	b.end(c)
	b.cfg.Logger.Debug("browser ended: it was idle")
}

func (b *Browser) end(c *chromium) {
	if err := c.close(); err != nil {
		b.cfg.Logger.Warn("browser was not ended cleanly", "err", err)
	}
}
