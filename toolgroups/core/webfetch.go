package core

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"oneclaw/internal/guard"
	"oneclaw/internal/named"
	"oneclaw/internal/readable"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Error codes of webfetch.
const (
	codeInvalidURL    = "invalid_url"
	codeHTTP          = "http_error"
	codeNetwork       = "network_error"
	codeEmptyResponse = "empty_response"
	codeWebfetch      = "error"
)

const (
	// maxPage bounds a page, in bytes.
	maxPage = 5 << 20
	// maxHead bounds the bytes from which the type of a page is guessed; maxErrorBody bounds the part
	// of an error's body that is repeated to the model, in characters.
	maxHead      = 4 << 10
	maxErrorBody = 1_000
	// maxPages bounds the pages that are fetched or on disk at a time, maxOwnerPages those of one
	// owner.
	maxPages      = 32
	maxOwnerPages = 8
	// maxPageWait extends the timeout of a call that waits for other pages.
	maxPageWait = time.Minute
	// browserAgent is the user agent for sites that serve only browsers.
	browserAgent = "Mozilla/5.0 (compatible; OneClaw/1.0)"
)

type fetchArgs struct {
	URL       string `json:"url"`
	MaxLength int    `json:"max_length"`
}

// page is a downloaded page.
type page struct {
	url         *url.URL // after redirects
	contentType string
	body        *os.File
	size        int64
	head        []byte // the beginning of the body
	truncated   bool
}

func (t *tools) webfetch(ctx context.Context, call toolgroups.Call, in fetchArgs) (toolgroups.Result, error) {
	if guard.OverridesMethod(in.URL) {
		return toolgroups.Result{}, toolgroups.Errorf(codeInvalidURL,
			"The page was not fetched: its address asks the server to take the request for another than GET. Use http_request, which a person approves.")
	}
	release, err := t.ownerSlots.Acquire(ctx, call.Owner)
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer release()
	if err := named.AcquireSlot(ctx, t.pageSlots); err != nil {
		return toolgroups.Result{}, err
	}
	defer func() { <-t.pageSlots }()
	body, err := t.newSpoolFile()
	if err != nil {
		return toolgroups.Result{}, err
	}
	defer func() { _ = body.Close() }()
	p, err := t.fetch(ctx, in.URL, body)
	if err != nil {
		return toolgroups.Result{}, err
	}
	kind := p.mediaType()
	read := t.cfg.Reader.Text
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		read = t.cfg.Reader.Markdown
	case isBinary(p.head, p.contentType):
		return t.saveDownload(call, p, kind)
	}
	note := ""
	if p.truncated {
		note = fmt.Sprintf("\n\n[cut: only the first %d bytes of the page were read]", maxPage)
	}
	var text string
	err = read(ctx, readable.Page{Body: p.body, ContentType: p.contentType, URL: p.url}, func(content io.Reader) (err error) {
		begun := bufio.NewReader(content)
		if _, err := begun.Peek(1); err == io.EOF {
			return toolgroups.Errorf(codeEmptyResponse, "The page has no text; it may need JavaScript. Try the browser tool.")
		}
		text, err = files.ShortenReader(call.Scope, "webfetch", io.MultiReader(begun, strings.NewReader(note)), in.MaxLength, t.cfg.Now())
		return err
	})
	var known *toolgroups.Error
	switch {
	case err != nil && ctx.Err() != nil:
		return toolgroups.Result{}, ctx.Err()
	case errors.As(err, &known):
		return toolgroups.Result{}, known
	case err != nil:
		return toolgroups.Result{}, toolgroups.Errorf(codeWebfetch, "The page could not be read: %v.", err)
	}
	return toolgroups.Result{Text: text}, nil
}

// newSpoolFile creates an unlinked file for a page until it is read, because pages fetched in
// parallel would fill the memory.
func (t *tools) newSpoolFile() (*os.File, error) {
	if err := os.MkdirAll(t.cfg.CacheDir, 0o700); err != nil {
		return nil, fmt.Errorf("keep the page: %w", workspace.Cause(err))
	}
	f, err := os.CreateTemp(t.cfg.CacheDir, "webfetch-*")
	if err != nil {
		return nil, fmt.Errorf("keep the page: %w", workspace.Cause(err))
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the page: %w", workspace.Cause(err)), f.Close())
	}
	return f, nil
}

// fetch downloads a page. A status other than 2xx is an error.
func (t *tools) fetch(ctx context.Context, address string, body *os.File) (page, error) {
	limited, cancel := context.WithTimeout(ctx, toolgroups.DefaultTimeout)
	defer cancel()
	req, err := guard.NewRequest(limited, http.MethodGet, address, "", map[string]string{
		"User-Agent": browserAgent, "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8",
	})
	if err != nil {
		return page{}, fetchError(ctx, err)
	}
	res, err := guard.FetchTo(t.client, req, maxPage, body)
	if err != nil {
		return page{}, fetchError(ctx, err)
	}
	p := page{url: res.Request.URL, contentType: res.Header.Get("Content-Type"), body: body, truncated: res.Truncated}
	if p.size, err = body.Seek(0, io.SeekEnd); err != nil {
		return page{}, fmt.Errorf("keep the page: %w", workspace.Cause(err))
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return page{}, fmt.Errorf("keep the page: %w", workspace.Cause(err))
	}
	p.head = make([]byte, min(p.size, maxHead))
	if _, err := body.ReadAt(p.head, 0); err != nil {
		return page{}, fmt.Errorf("read the page: %w", workspace.Cause(err))
	}
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		return page{}, toolgroups.Errorf(codeHTTP, "The server answered HTTP %d %s.\n%s",
			res.StatusCode, http.StatusText(res.StatusCode), wording.Clip(textOf(p.head, p.contentType), maxErrorBody))
	case p.size <= maxHead && len(bytes.TrimSpace(p.head)) == 0:
		return page{}, toolgroups.Errorf(codeEmptyResponse, "The server answered HTTP %d without a body.", res.StatusCode)
	}
	return p, nil
}

func fetchError(ctx context.Context, err error) error {
	err = guard.Reason(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return toolgroups.Errorf(toolgroups.CodeTimeout, "The server did not answer in time.")
	case errors.Is(err, guard.ErrURL):
		return toolgroups.Errorf(codeInvalidURL, "The page was not fetched: %v.", err)
	}
	return toolgroups.Errorf(codeNetwork, "The page was not fetched: %v.", err)
}

// mediaType returns the media type of a page, guessed if the server names none.
func (p page) mediaType() string {
	kind, _, err := mime.ParseMediaType(cmp.Or(p.contentType, http.DetectContentType(p.head)))
	if err != nil {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(p.head))
	}
	return kind
}

// saveDownload saves a page that is not text to the workspace, for other tools.
func (t *tools) saveDownload(call toolgroups.Call, p page, kind string) (toolgroups.Result, error) {
	if p.truncated {
		return toolgroups.Result{}, toolgroups.Errorf(codeWebfetch,
			"The address holds a file (%s) of more than the limit of %d bytes.", files.SingleLine(kind), maxPage)
	}
	name := "downloads/" + rand.Text()[:6] + "-" + fileName(p.url)
	err := files.WithWorkspace(call.Scope, func(root *workspace.Root) error {
		_, err := root.WriteFrom(name, p.body)
		return err
	})
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("save the download: %w", err)
	}
	return toolgroups.TextResult("The address holds no text but a file (%s, %d bytes). It is now %s in the workspace.",
		files.SingleLine(kind), p.size, name)
}

// fileName returns the last part of a URL's path, restricted to safe characters.
func fileName(u *url.URL) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, path.Base("/"+u.Path))
	name = strings.TrimLeft(name, "._")
	return cmp.Or(name[max(0, len(name)-100):], "file")
}
