package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"oneclaw/internal/guard"
	"oneclaw/internal/readable"
	"oneclaw/internal/wording"
)

const (
	// maxHTML bounds the HTML that is read from a page, in characters.
	maxHTML = 5 << 20
	// maxScriptError bounds the text of an exception, in characters.
	maxScriptError = 1_000
)

// visit is an open page in its own browser context.
type visit struct {
	proxy   *proxy
	cancel  context.CancelFunc
	dialogs sync.WaitGroup
	// unfinished is set if loading the page timed out.
	unfinished bool
	status     int
	url        *url.URL
}

// openPage opens a page. The returned context is the context of the tab, for all actions on the
// page; it ends with ctx. The caller must close the visit.
func (b *Browser) openPage(ctx context.Context, c *chromium, address string, width, height int64) (context.Context, *visit, error) {
	page, err := url.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	way, err := newProxy(ctx, guard.NewPageDialer(ctx, guard.Config{AllowPrivate: b.cfg.AllowPrivate, Resolver: b.cfg.Resolver}, page.Hostname()))
	if err != nil {
		return nil, nil, err
	}
	tab, closeTab := c.newTab(chromedp.WithNewBrowserContext(func(p *target.CreateBrowserContextParams) {
		p.ProxyServer, p.ProxyBypassList = "http://"+way.listener.Addr().String(), proxyLoopback
	}))
	work, leave := context.WithCancel(tab)
	stop := context.AfterFunc(ctx, leave)
	v := &visit{proxy: way, cancel: func() { stop(); leave(); closeTab() }}
	if err = v.prepare(work, width, height); err == nil {
		err = v.navigate(work, address, b.cfg.LoadTimeout)
	}
	if err != nil {
		v.close()
		return nil, nil, err
	}
	return work, v, nil
}

// close discards the page with its cookies and storage.
func (v *visit) close() {
	v.cancel()
	v.dialogs.Wait()
	v.proxy.close()
}

// prepare configures the tab before it loads the page. Dialogs are dismissed, downloads denied.
func (v *visit) prepare(tab context.Context, width, height int64) error {
	if err := chromedp.Do(tab, chromedp.EmulateViewport(width, height)); err != nil {
		return err
	}
	opened := chromedp.Events(tab, page.JavascriptDialogOpening)
	v.dialogs.Go(func() {
		for _, err := range opened {
			if err != nil {
				return
			}
			_, _ = chromedp.Call(tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: false})
		}
	})
	_, err := chromedp.CallBrowser(tab, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior:         cdpbrowser.SetDownloadBehaviorBehaviorDeny,
		BrowserContextID: chromedp.FromContext(tab).BrowserContextID,
	})
	return err
}

// navigate navigates to an address and waits until the page has loaded. A page that has begun to load is
// used as it is when patience is over.
func (v *visit) navigate(tab context.Context, address string, patience time.Duration) error {
	limited, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	response, err := chromedp.Run(limited, chromedp.NavigateResponse(address))
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && tab.Err() == nil {
		if err = v.updateURL(tab); err == nil {
			v.unfinished = true
			return nil
		}
		return fmt.Errorf("it did not load within %s", patience)
	}
	if err != nil {
		return v.loadError(err)
	}
	if response != nil {
		v.status = int(response.Status)
	}
	return v.updateURL(tab)
}

// updateURL reads the page's address from the browser, because the page could report a false one.
func (v *visit) updateURL(tab context.Context) error {
	history, err := chromedp.Call(tab, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return err
	}
	at := int(history.CurrentIndex)
	if at < 0 || at >= len(history.Entries) {
		return errors.New("the browser shows no page")
	}
	u, err := url.Parse(history.Entries[at].URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("the address leads to something other than a web page")
	}
	v.url = u
	return nil
}

// loadError returns the reason why a page did not load, from the proxy if that had an error.
func (v *visit) loadError(err error) error {
	load, ok := errors.AsType[*chromedp.LoadError](err)
	if !ok {
		return err
	}
	// Before the proxy is asked: that also fails where Chromium connects to a host of its own.
	if strings.Contains(load.ErrorText, "ERR_ABORTED") {
		return errors.New("the address is a download, not a page: use webfetch")
	}
	if cause := v.proxy.lastFailure(); cause != nil {
		return cause
	}
	return fmt.Errorf("the browser says %s", strings.TrimPrefix(load.ErrorText, "net::"))
}

// waitForScripts lets the page's scripts run for d, and then updates the page's address.
func (v *visit) waitForScripts(tab context.Context, d time.Duration) error {
	if err := chromedp.Do(tab, chromedp.Sleep(d)); err != nil {
		return err
	}
	return v.updateURL(tab)
}

// text returns the page's main content as Markdown, or all text of a page without main content.
func (v *visit) text(tab context.Context, reader *readable.Reader) (content string, err error) {
	tree, err := chromedp.Call(tab, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return "", err
	}
	// In an isolated world the page's scripts cannot replace the called functions.
	world, err := chromedp.Call(tab, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: tree.FrameTree.Frame.ID, WorldName: "reader",
	})
	if err != nil {
		return "", err
	}
	read := func(expression string) (string, error) {
		expression = fmt.Sprintf("(%s || '').slice(0, %d)", expression, maxHTML)
		return chromedp.Run(tab, chromedp.Evaluate[string](expression, func(p *runtime.EvaluateParams) {
			p.ContextID = world.ExecutionContextID
		}))
	}
	source, err := read("document.documentElement && document.documentElement.outerHTML")
	if err != nil {
		return "", err
	}
	err = reader.Markdown(tab, readable.Page{Body: strings.NewReader(source), ContentType: readable.UTF8, URL: v.url}, readable.StoreIn(&content))
	if err != nil || strings.TrimSpace(content) != "" {
		return content, err
	}
	return read("document.body && document.body.innerText")
}

// runScript runs body as an async function in the page. It returns the result as text or JSON, and
// shortens it without calling functions that the page could replace. It returns an exception as text.
func (v *visit) runScript(tab context.Context, body string) (string, error) {
	source, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("encode the script: %w", err)
	}
	expression := fmt.Sprintf(`(async () => {
	const run = new (async () => {}).constructor(%s);
	let value = await run();
	if (typeof value !== "string") value = value === undefined ? "" : JSON.stringify(value);
	if (typeof value !== "string") return "";
	if (value.length <= %[2]d) return value;
	let cut = "";
	for (let i = 0; i < %[2]d; i++) cut += value[i];
	return cut;
})()`, source, maxHTML)
	text, err := chromedp.Run(tab, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if thrown, ok := errors.AsType[*chromedp.ExceptionError](err); ok {
		what := thrown.Text
		if thrown.Exception != nil && thrown.Exception.Description != "" {
			what, _, _ = strings.Cut(thrown.Exception.Description, "\n")
		} else if thrown.Exception != nil && len(thrown.Exception.Value) > 0 {
			what = string(thrown.Exception.Value)
		}
		return "JavaScript error: " + wording.Clip(what, maxScriptError), nil
	}
	return text, err
}

// captureScreenshot captures the viewport, or the whole page if full is true. It returns the picture and
// its height.
func (v *visit) captureScreenshot(tab context.Context, width, height int64, full bool) ([]byte, int64, error) {
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if full {
		layout, err := chromedp.Call(tab, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return nil, 0, err
		}
		if layout.CSSContentSize != nil {
			height = min(max(height, int64(layout.CSSContentSize.Height)), maxFullHeight)
		}
		params.CaptureBeyondViewport = new(true)
		params.Clip = &page.Viewport{Width: float64(width), Height: float64(height), Scale: 1}
	}
	res, err := chromedp.Call(tab, page.CaptureScreenshot, params)
	return res.Data, height, err
}

// notes returns remarks about an HTTP error or an incomplete page.
func (v *visit) notes() string {
	notes := ""
	if v.status >= http.StatusBadRequest {
		notes += fmt.Sprintf("[the server answered HTTP %d %s]\n\n", v.status, http.StatusText(v.status))
	}
	if v.unfinished {
		notes += "[the page was still loading]\n\n"
	}
	return notes
}
