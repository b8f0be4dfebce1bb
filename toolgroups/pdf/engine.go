package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

var (
	// errClosed is what calls get once the family is closed.
	errClosed = errors.New("pdf: closed")
	// errStart marks failures that have nothing to do with the document.
	errStart = errors.New("pdf: PDFium did not start")
)

// wasmPage is the unit in which WebAssembly memory grows.
const wasmPage = 64 << 10

// cacheName is the folder of compiled code. It is not shared with other users of
// wazero: the code of this module holds the checks that let a run be interrupted,
// and wazero's cache does not tell code with them from code without.
const cacheName = "pdfium-interruptible"

// engine runs PDFium. Nothing is started before the first use, at most workers
// documents are open at once, and what was started is given back when it was not
// used for a while.
//
// It has no goroutine of its own but the function of the idle timer.
type engine struct {
	workers     int
	memoryPages uint32
	cacheDir    string
	idle        time.Duration
	slots       chan struct{}
	log         *slog.Logger

	mu     sync.Mutex
	pool   pdfium.Pool
	cache  wazero.CompilationCache
	users  int
	closed bool
	timer  *time.Timer
	gen    int // raised by each use, so that a late timer does nothing
	starts int
}

// use runs f with an instance of PDFium that no one else uses. When ctx ends, the
// instance is stopped in the middle of what it does, and f's calls to it fail.
func (e *engine) use(ctx context.Context, f func(pdfium.Pdfium) error) error {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	pool, err := e.acquire()
	if err != nil {
		return err
	}
	defer e.release()
	instance, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("%w: %w", errStart, err))
	}
	// Closing what has crashed or was stopped reports that again.
	defer func() { _ = instance.Close() }()
	stop, err := interrupt(ctx, instance)
	if err != nil {
		return err
	}
	defer stop()
	if err := f(instance); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return ctx.Err()
}

// interrupt closes the instance's module when ctx ends, which stops the code that
// runs in it. go-pdfium calls the module with a context of its own and offers no
// stop that is safe beside a running call, so the module is taken from the exported
// field of its implementation. The returned function waits until a stop that has
// begun is over.
func interrupt(ctx context.Context, instance pdfium.Pdfium) (func(), error) {
	field := reflect.Indirect(reflect.ValueOf(instance.GetImplementation())).FieldByName("Module")
	if !field.IsValid() {
		return nil, fmt.Errorf("%w: no module to interrupt in this go-pdfium", errStart)
	}
	module, ok := reflect.TypeAssert[api.Module](field)
	if !ok {
		return nil, fmt.Errorf("%w: no module to interrupt in this go-pdfium", errStart)
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = module.CloseWithExitCode(context.WithoutCancel(ctx), 1)
	})
	return func() {
		if !stop() {
			<-done
		}
	}, nil
}

// acquire counts a user and starts the runtime for the first one.
func (e *engine) acquire() (pdfium.Pool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	if e.pool == nil {
		if err := e.start(); err != nil {
			return nil, err
		}
	}
	e.users++
	e.gen++
	if e.timer != nil {
		e.timer.Stop()
	}
	return e.pool, nil
}

// start compiles PDFium, or reads the compiled code from the cache. It holds the
// lock: nobody can do anything before it is done.
func (e *engine) start() error {
	config := wazero.NewRuntimeConfig().
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(e.memoryPages)
	if cache := e.openCache(); cache != nil {
		e.cache = cache
		config = config.WithCompilationCache(cache)
	}
	pool, err := webassembly.Init(webassembly.Config{
		MaxIdle:       0,
		MaxTotal:      e.workers,
		RuntimeConfig: config,
		// Without a configuration of its own go-pdfium mounts the host's root.
		FSConfig: wazero.NewFSConfig(),
		Stdout:   io.Discard,
		Stderr:   io.Discard,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errStart, err), e.closeCache())
	}
	e.pool = pool
	e.starts++
	return nil
}

// openCache returns nil where there is no cache; PDFium runs without.
func (e *engine) openCache() wazero.CompilationCache {
	if e.cacheDir == "" {
		return nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(e.cacheDir, cacheName))
	if err != nil {
		e.log.Warn("no compilation cache for PDFium", "err", err)
		return nil
	}
	return cache
}

// release counts a user out and, after the last one, sets the idle timer.
func (e *engine) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	if e.users > 0 || e.closed {
		return
	}
	gen := e.gen
	e.timer = time.AfterFunc(e.idle, func() { e.expire(gen) })
}

// expire gives the runtime back unless it was used since gen.
func (e *engine) expire(gen int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gen == gen && e.users == 0 && !e.closed {
		if err := e.stop(); err != nil {
			e.log.Warn("idle PDFium was not stopped cleanly", "err", err)
		}
	}
}

// stop closes the runtime. It holds the lock and no one uses the runtime.
func (e *engine) stop() error {
	if e.pool == nil {
		return nil
	}
	err := e.pool.Close()
	e.pool = nil
	if err != nil {
		err = fmt.Errorf("pdf: stop PDFium: %w", err)
	}
	return errors.Join(err, e.closeCache())
}

func (e *engine) closeCache() error {
	if e.cache == nil {
		return nil
	}
	err := e.cache.Close(context.Background())
	e.cache = nil
	if err != nil {
		return fmt.Errorf("pdf: close the compilation cache: %w", err)
	}
	return nil
}

// close refuses new uses, waits for those that run, and stops the runtime.
func (e *engine) close() error {
	e.mu.Lock()
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
	e.mu.Unlock()
	// Who holds every slot is alone.
	for range e.workers {
		e.slots <- struct{}{}
	}
	defer func() {
		for range e.workers {
			<-e.slots
		}
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stop()
}
