package browser

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/guard"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Error codes of the browser tool.
const (
	CodeScreenshot = "screenshot_error"
	CodeExtraction = "extraction_error"
)

// Limits and defaults of a call.
const (
	defaultWidth  = 412
	defaultHeight = 915
	minSide       = 100
	maxSide       = 2_560
	maxFullHeight = 10_000
	maxPicture    = 20 << 20
	defaultWait   = 2 * time.Second
	maxWait       = 20 * time.Second
	maxScript     = 50_000
)

//go:embed browser.json
var manifests embed.FS

// Tool returns the core tool browser.
func (b *Browser) Tool() (toolgroups.Tool, error) {
	tool, err := toolgroups.ReadTool(manifests, "browser", toolgroups.TypedHandler(b.runTool))
	tool.NeedsApproval = needsApproval
	return tool, err
}

// needsApproval reports whether a call has a script, which may send anything anywhere, or an address that
// names another method than GET: requests for which http_request asks.
func needsApproval(call toolgroups.Call) bool {
	var in browserArgs
	return json.Unmarshal(call.Arguments, &in) != nil || strings.TrimSpace(in.JavaScript) != "" || guard.OverridesMethod(in.URL)
}

// usualSizes are the windows that a page may see while the conversation holds words of others. It learns any other
// size, and how long it stays open, as numbers that the model chose.
var usualSizes = [][2]int64{{0, 0}, {defaultWidth, defaultHeight}, {768, 1024}, {1280, 800}, {1920, 1080}}

// isUsual reports whether a page can learn nothing from the window and the time of a call.
func (a *browserArgs) isUsual() bool {
	return slices.Contains(usualSizes, [2]int64{a.Width, a.Height}) && (a.WaitSeconds == nil || *a.WaitSeconds == math.Trunc(*a.WaitSeconds))
}

type browserArgs struct {
	URL         string   `json:"url"`
	Mode        string   `json:"mode"`
	Width       int64    `json:"width"`
	Height      int64    `json:"height"`
	WaitSeconds *float64 `json:"wait_seconds"`
	FullPage    bool     `json:"full_page"`
	MaxLength   int      `json:"max_length"`
	JavaScript  string   `json:"javascript"`
}

// clampSide clamps a side of the viewport. It returns otherwise if asked is 0.
func clampSide(asked, otherwise int64) int64 {
	if asked == 0 {
		return otherwise
	}
	return min(max(asked, minSide), maxSide)
}

func (a *browserArgs) waitTime() time.Duration {
	if a.WaitSeconds == nil {
		return defaultWait
	}
	seconds := min(max(*a.WaitSeconds, 0), maxWait.Seconds())
	return time.Duration(seconds * float64(time.Second))
}

func (b *Browser) runTool(ctx context.Context, call toolgroups.Call, in browserArgs) (toolgroups.Result, error) {
	u, err := guard.ParseURL(strings.TrimSpace(in.URL))
	switch {
	case err != nil:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "The page was not opened: %v.", err)
	case in.Mode != "screenshot" && in.Mode != "extract":
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'mode' must be screenshot or extract.")
	case call.HoldsOthers && !in.isUsual():
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "The page was not opened: while the conversation holds words of others, a window has "+
			"%dx%d (also if no size is given), 768x1024, 1280x800 or 1920x1080, and wait_seconds is a whole number.", defaultWidth, defaultHeight)
	case len(in.JavaScript) > maxScript:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'javascript' is longer than %d bytes.", maxScript)
	}
	code := CodeExtraction
	if in.Mode == "screenshot" {
		code = CodeScreenshot
	}
	result, err := b.visitPage(ctx, call, u.String(), in)
	return result, b.toolError(ctx, code, err)
}

// toolError converts an error into one for the model. code is for errors that have no code of their own.
func (b *Browser) toolError(ctx context.Context, code string, err error) error {
	fault := (*toolgroups.Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, errMemory):
		return toolgroups.Errorf(code, "The page was closed: the browser took more than %d MiB of memory, and this page or one "+
			"that was open at the same time is the cause. Do not open it again; webfetch may read it.", b.cfg.MaxMemory>>20)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errMissing):
		return toolgroups.Errorf(code, "No page can be opened: %v. Pages that need no JavaScript can be read with webfetch.", err)
	case errors.Is(err, context.Canceled), errors.Is(err, errClosed):
		b.cfg.Logger.Error("browser ended during a call", "err", err)
		return toolgroups.Errorf(code, "The browser has ended. Try again.")
	}
	b.cfg.Logger.Debug("page was not read", "err", err)
	return toolgroups.Errorf(code, "The page was not read: %v.", err)
}

// visitPage opens the page and runs the requested actions.
func (b *Browser) visitPage(ctx context.Context, call toolgroups.Call, address string, in browserArgs) (result toolgroups.Result, err error) {
	c, err := b.acquire(ctx)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer b.release(c)
	defer b.watchMemory(ctx, c)(&err)
	width, height := clampSide(in.Width, defaultWidth), clampSide(in.Height, defaultHeight)
	tab, v, err := b.openPage(ctx, c, address, width, height)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer v.close()
	if err := v.waitForScripts(tab, in.waitTime()); err != nil {
		return toolgroups.Result{}, err
	}
	if in.Mode == "screenshot" {
		return b.screenshot(tab, call, v, width, height, in.FullPage)
	}
	text, err := "", error(nil)
	if strings.TrimSpace(in.JavaScript) != "" {
		text, err = v.runScript(tab, in.JavaScript)
	} else if text, err = v.text(tab, b.cfg.Reader); err == nil && strings.TrimSpace(text) == "" {
		err = toolgroups.Errorf(CodeExtraction, "The page has no text. A screenshot may show what it has.")
	}
	if err != nil {
		return toolgroups.Result{}, err
	}
	limit := files.InlineLimit(call.Scope)
	if in.MaxLength > 0 {
		limit = min(in.MaxLength, limit)
	}
	return toolgroups.Result{Text: v.notes() + files.Shorten(call.Scope, "browser", text, limit, b.cfg.Now())}, nil
}

// screenshotResult is the result of a screenshot.
type screenshotResult struct {
	ImagePath  string `json:"image_path"`
	URL        string `json:"url"`
	Width      int64  `json:"width"`
	Height     int64  `json:"height"`
	HTTPStatus int    `json:"http_status,omitempty"`
	Note       string `json:"note"`
}

// screenshot saves a picture of the page and sends it to the chat.
func (b *Browser) screenshot(tab context.Context, call toolgroups.Call, v *visit, width, height int64, full bool) (toolgroups.Result, error) {
	data, height, err := v.captureScreenshot(tab, width, height, full)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if len(data) > maxPicture {
		return toolgroups.Result{}, toolgroups.Errorf(CodeScreenshot, "The picture has more than %d MiB. Ask for a smaller part.", maxPicture>>20)
	}
	name, err := files.SaveNew(call.Scope, "screenshots/page", ".png", b.cfg.Now(), data)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("save the picture in the workspace: %w", err)
	}
	shown := screenshotResult{
		ImagePath: name, URL: wording.Clip(v.url.Redacted(), maxScriptError), Width: width, Height: height,
		Note: "The picture is sent to the chat with your answer.",
	}
	if v.status >= 400 {
		shown.HTTPStatus = v.status
	}
	if v.unfinished {
		shown.Note += " The page was still loading."
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	return toolgroups.Result{Text: string(text), Files: []toolgroups.File{{Path: name, Caption: v.url.Hostname()}}}, nil
}
