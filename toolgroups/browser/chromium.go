package browser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/chromedp/chromedp"

	"oneclaw/internal/sandbox"
)

const (
	// deadProxy is the proxy for the browser's own services. Nothing listens on it, so they reach no
	// server.
	deadProxy = "http://127.0.0.1:1"
	// proxyLoopback sends requests to loopback addresses through the proxy too.
	proxyLoopback = "<-loopback>"
)

// errMissing is returned if no Chromium is found.
var errMissing = errors.New("there is no Chromium on the bot's machine; the operator can install the package chromium")

// chromium is a running browser.
type chromium struct {
	// newTab makes the context of a tab. The context ends with the browser.
	newTab func(...chromedp.ContextOption) (context.Context, context.CancelFunc)
	// ended is closed when the process ends, disconnected when the connection to it is lost.
	ended, disconnected <-chan struct{}
	stop                func()
	home                *os.File // locked: see lockedHome
	process             *os.Process
	exceededMemory      atomic.Bool // set before Chromium is killed for its memory
}

// limitMemory kills the browser if its processes together exceed limit bytes, and returns the reason. It
// returns nil when ctx ends.
func (c *chromium) limitMemory(ctx context.Context, limit uint64) error {
	err := sandbox.WatchMemory(ctx, c.process.Pid, limit)
	if err == nil || c.exceededMemory.Swap(true) {
		return nil
	}
	// Child processes would briefly outlive the main process.
	err = errors.Join(err, sandbox.KillTree(c.process.Pid))
	c.stop()
	return err
}

// FindChromium returns the path of the Chromium that a browser with this [Config].Path starts.
func FindChromium(path string) (string, error) {
	if path != "" {
		return exec.LookPath(path)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errMissing
}

// homePrefix begins the names of the folders that are HOME for Chromium.
const homePrefix = "oneclaw-browser-"

// lockedHome makes a folder for Chromium's HOME. It is locked while it is open, which ends with this process
// whatever ends it: by that a later one knows that the folder is not in use.
func lockedHome() (*os.File, error) {
	for {
		dir, err := os.MkdirTemp("", homePrefix)
		if err != nil {
			return nil, err
		}
		home, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // as below
		}
		if err != nil {
			return nil, err
		}
		// If the file system does not support locks, removeAbandoned deletes no folder either.
		_ = syscall.Flock(int(home.Fd()), syscall.LOCK_EX)
		if _, err := os.Stat(dir); err == nil {
			return home, nil
		}
		_ = home.Close() // another bot that starts has deleted the folder before it was locked
	}
}

// removeAbandoned deletes what browsers of this user have kept, cookies and pages, if a killed bot could not:
// their HOME, and the folders in which chromedp has them keep the rest.
func removeAbandoned() {
	homes, _ := filepath.Glob(filepath.Join(os.TempDir(), homePrefix+"*")) // the pattern is valid
	for _, dir := range homes {
		// Others can put anything at that name: a pipe would block, a link would lead away.
		home, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(home.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = home.Close()
	}
	removeProfiles()
}

// removeProfiles deletes the profiles that name a process which runs no more.
func removeProfiles() {
	host, err := os.Hostname()
	if err != nil {
		return
	}
	profiles, _ := filepath.Glob(filepath.Join(os.TempDir(), "chromedp-runner*")) // the pattern is valid
	for _, dir := range profiles {
		lock, err := os.Readlink(filepath.Join(dir, "SingletonLock"))
		if err != nil {
			continue // it was not started yet, or belongs to another user
		}
		digits, ours := strings.CutPrefix(lock, host+"-")
		pid, err := strconv.Atoi(digits)
		if !ours || err != nil || pid <= 0 {
			continue
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}

// launch starts Chromium. The process outlives ctx, which only bounds the start.
func launch(ctx context.Context, path string) (*chromium, error) {
	path, err := FindChromium(path)
	if err != nil {
		return nil, errMissing
	}
	removeAbandoned()
	home, err := lockedHome()
	if err != nil {
		return nil, fmt.Errorf("start Chromium: %w", err)
	}
	base, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	awaited := context.AfterFunc(ctx, giveUp)
	allocator, stop := chromedp.NewExecAllocator(base, launchOptions(path, home.Name())...)
	first, cancel := chromedp.NewContext(allocator, chromedp.WithLogf(discardLog), chromedp.WithErrorf(discardLog))
	c := &chromium{home: home, ended: first.Done(), stop: func() { giveUp(); stop(); cancel() }}
	if err = chromedp.Do(first); !awaited() {
		err = fmt.Errorf("start Chromium: %w", ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	browser := chromedp.FromContext(first).Browser
	c.disconnected, c.process = browser.LostConnection, browser.Process()
	c.newTab = func(options ...chromedp.ContextOption) (context.Context, context.CancelFunc) {
		return chromedp.NewContext(first, options...)
	}
	return c, nil
}

func discardLog(string, ...any) {}

// launchOptions returns the flags and the environment of Chromium, without the bot's own variables.
func launchOptions(path, home string) []chromedp.ExecAllocatorOption {
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoInheritEnv,
		chromedp.Env("HOME="+home, "PATH="+os.Getenv("PATH"), "LANG=C.UTF-8", "TZ="+os.Getenv("TZ")),
		chromedp.ProxyServer(deadProxy),
		chromedp.Flag("proxy-bypass-list", proxyLoopback),
		// The proxy resolves host names. Chromium itself can only connect to the proxy.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-popup-blocking", false),
		chromedp.Flag("disable-features", "Translate,MediaRouter,DialMediaRouteProvider,OptimizationHints,AutofillServerCommunication"),
		chromedp.Flag("mute-audio", true),
		chromedp.DisableGPU,
	)
}

// hasEnded reports whether the process has ended or is being killed.
func (c *chromium) hasEnded() bool {
	if c.exceededMemory.Load() {
		return true
	}
	select {
	case <-c.ended:
		return true
	case <-c.disconnected:
		return true
	default:
		return false
	}
}

// close ends the process and deletes its files.
func (c *chromium) close() error {
	c.stop()
	if err := errors.Join(os.RemoveAll(c.home.Name()), c.home.Close()); err != nil {
		return fmt.Errorf("remove the browser's files: %w", err)
	}
	return nil
}
