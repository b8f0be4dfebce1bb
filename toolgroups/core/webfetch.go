package core

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"oneclaw/internal/guard"
	"oneclaw/internal/readable"
	"oneclaw/internal/runes"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Codes of errors of webfetch.
const (
	CodeInvalidURL    = "invalid_url"
	CodeHTTP          = "http_error"
	CodeNetwork       = "network_error"
	CodeEmptyResponse = "empty_response"
	CodeWebfetch      = "error"
)

const (
	// maxPage is how much of a page is read, in bytes.
	maxPage = 5 << 20
	// maxErrorBody is how much of the body of an error is repeated, in characters.
	maxErrorBody = 1_000
	// browserAgent is what sites expect that serve browsers only.
	browserAgent = "Mozilla/5.0 (compatible; OneClaw/1.0)"
)

type fetchArgs struct {
	URL       string `json:"url"`
	MaxLength int    `json:"max_length"`
}

// page is what a server sent.
type page struct {
	url         *url.URL // after redirects
	contentType string
	data        []byte
	cut         bool
}

func (t *tools) webfetch(ctx context.Context, call toolgroups.Call, in fetchArgs) (toolgroups.Result, error) {
	p, err := t.fetch(ctx, in.URL)
	if err != nil {
		return toolgroups.Result{}, err
	}
	kind := p.kind()
	var text string
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		if text, err = p.markdown(ctx); err != nil {
			if ctx.Err() != nil {
				return toolgroups.Result{}, ctx.Err()
			}
			return toolgroups.Result{}, toolgroups.Errorf(CodeWebfetch, "The page could not be read: %v.", err)
		}
		if strings.TrimSpace(text) == "" {
			return toolgroups.Result{}, toolgroups.Errorf(CodeEmptyResponse,
				"The page has no text; it may need JavaScript. Try the browser tool.")
		}
	case binary(p.data, p.contentType):
		return t.download(call, p, kind)
	default:
		text = textOf(p.data, p.contentType)
	}
	if p.cut {
		text += fmt.Sprintf("\n\n[cut: only the first %d bytes of the page were read]", maxPage)
	}
	return toolgroups.Result{Text: files.Shorten(call.Scope, "webfetch", text, in.MaxLength, t.cfg.Now())}, nil
}

// fetch gets a page. Only a reply of the 200s is one.
func (t *tools) fetch(ctx context.Context, address string) (page, error) {
	req, err := guard.NewRequest(ctx, http.MethodGet, address, "", map[string]string{
		"User-Agent": browserAgent, "Accept": "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8",
	})
	if err != nil {
		return page{}, fetchError(ctx, err)
	}
	res, err := guard.Fetch(t.client, req, maxPage)
	if err != nil {
		return page{}, fetchError(ctx, err)
	}
	p := page{url: res.Request.URL, contentType: res.Header.Get("Content-Type"), data: res.Data, cut: res.Cut}
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		return page{}, toolgroups.Errorf(CodeHTTP, "The server answered HTTP %d %s.\n%s",
			res.StatusCode, http.StatusText(res.StatusCode), runes.Clip(textOf(p.data, p.contentType), maxErrorBody))
	case len(bytes.TrimSpace(p.data)) == 0:
		return page{}, toolgroups.Errorf(CodeEmptyResponse, "The server answered HTTP %d without a body.", res.StatusCode)
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
		return toolgroups.Errorf(CodeInvalidURL, "The page was not fetched: %v.", err)
	}
	return toolgroups.Errorf(CodeNetwork, "The page was not fetched: %v.", err)
}

// kind is the media type, guessed where the server names none.
func (p page) kind() string {
	kind, _, err := mime.ParseMediaType(cmp.Or(p.contentType, http.DetectContentType(p.data)))
	if err != nil {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(p.data))
	}
	return kind
}

// markdown is the main content of the page.
func (p page) markdown(ctx context.Context) (string, error) {
	return readable.Markdown(ctx, strings.NewReader(decode(p.data, p.contentType)), p.url)
}

// download keeps what is no text in the workspace, where other tools can use it.
func (t *tools) download(call toolgroups.Call, p page, kind string) (toolgroups.Result, error) {
	if p.cut {
		return toolgroups.Result{}, toolgroups.Errorf(CodeWebfetch,
			"The address holds a file (%s) of more than the limit of %d bytes.", files.Line(kind), maxPage)
	}
	name := "downloads/" + rand.Text()[:6] + "-" + fileName(p.url)
	if _, err := files.Save(call.Scope, name, p.data); err != nil {
		return toolgroups.Result{}, fmt.Errorf("keep the download: %w", err)
	}
	return toolgroups.Text("The address holds no text but a file (%s, %d bytes). It is now %s in the workspace.",
		files.Line(kind), len(p.data), name)
}

// fileName is the last part of a URL's path, in letters that no tool stumbles over.
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
