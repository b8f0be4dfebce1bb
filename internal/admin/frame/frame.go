// Package frame has what all views of the administrators' page share: navigation, tables with
// pages and files, plots, forms, and automatic updates.
package frame

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Root begins the addresses of the page.
const Root = "/admin/"

const (
	// rowsOnPage and rowsInFile bound tables.
	rowsOnPage, rowsInFile = 50, 1000
	// maxQuery and maxForm bound requests, in bytes.
	maxQuery, maxForm = 4 << 10, 64 << 10
	// csvParameter names the table to export.
	csvParameter = "csv"
	// pageTimeout bounds the work on a page.
	pageTimeout = 10 * time.Second
)

// View is a page, or several that differ by their query.
type View struct {
	// Path is relative to Root; empty for the first page.
	Path, Title string
	// Under is the path of the view in the navigation that this one belongs to, if it is not in the
	// navigation itself.
	Under string
	// Inner keeps it out of the navigation.
	Inner bool
	Show  func(ctx context.Context, r Request) (Page, error)
	// Apart, if set, reports which of its pages are made concurrently with others, because they
	// take long and have bounds of their own.
	Apart func(r Request) bool
	// Do handles its forms; it returns the address to show then.
	Do func(ctx context.Context, r Request) (string, error)
}

// Config configures a [Frame].
type Config struct {
	Views []View
	// Visitor returns the user of a request. Without a user nothing is shown.
	Visitor func(r *http.Request) (Visitor, bool)
	// SignOut is the path of the form that signs out; empty for none.
	SignOut string
	// Exported, if not nil, is called before a table is exported.
	Exported func(ctx context.Context, v Visitor, what string) error
	// Redact masks secrets in everything shown.
	Redact func(string) string
	// Zone returns the time zone of times; nil means UTC.
	Zone func() *time.Location
	Log  *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Frame serves the page.
type Frame struct {
	cfg   Config
	views map[string]View
	// papers holds *paper.
	papers sync.Pool
	// turn is held while a page is made.
	turn chan struct{}
}

//go:embed assets
var assets embed.FS

//go:embed page.html
var pageHTML string

// New returns a frame with its views.
func New(cfg Config) (*Frame, error) {
	if cfg.Visitor == nil {
		return nil, errors.New("frame: no function says who visits")
	}
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	if cfg.Zone == nil {
		cfg.Zone = func() *time.Location { return time.UTC }
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &Frame{cfg: cfg, views: make(map[string]View, len(cfg.Views)), turn: make(chan struct{}, 1)}
	page, err := template.New("page").Funcs(new(pageTemplate).functions(cfg.Redact)).Parse(pageHTML)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	f.papers.New = func() any { return newPaper(page, cfg.Redact) }
	for _, v := range cfg.Views {
		if _, twice := f.views[v.Path]; twice || v.Show == nil {
			return nil, fmt.Errorf("frame: the view %q is there twice, or shows nothing", v.Path)
		}
		f.views[v.Path] = v
	}
	return f, nil
}

// Assets serves the style, the script and the icon, which contain no secrets, below Root +
// "assets/".
func Assets() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	server := http.StripPrefix(Root+"assets/", http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		server.ServeHTTP(w, r)
	})
}

// ServeHTTP implements [http.Handler].
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, below := strings.CutPrefix(r.URL.Path, Root)
	if strings.HasPrefix(path, "assets/") {
		Assets().ServeHTTP(w, r)
		return
	}
	visitor, ok := f.cfg.Visitor(r)
	if !ok {
		http.Error(w, "Sign in first: an administrator is given a link by /admin in the chat.", http.StatusUnauthorized)
		return
	}
	view, known := f.views[path]
	if r.URL.Path == strings.TrimSuffix(Root, "/") {
		http.Redirect(w, r, Root, http.StatusSeeOther)
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if !below || !known || err != nil || len(r.URL.RawQuery) > maxQuery {
		f.fail(w, visitor, View{}, ErrNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	request := Request{Visitor: visitor, Query: query, Limit: rowsOnPage, path: r.URL.Path}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		f.show(ctx, w, r, view, request)
	case http.MethodPost:
		f.do(ctx, w, r, view, request)
	default:
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
	}
}

func (f *Frame) do(ctx context.Context, w http.ResponseWriter, r *http.Request, view View, request Request) {
	if view.Do == nil {
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form is too large, or cannot be read.", http.StatusBadRequest)
		return
	}
	request.Form = r.PostForm
	to, err := view.Do(ctx, request)
	if err != nil {
		f.fail(w, request.Visitor, view, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (f *Frame) show(ctx context.Context, w http.ResponseWriter, r *http.Request, view View, request Request) {
	file := request.Query.Get(csvParameter)
	if file == "" && f.notModified(w, r) {
		return
	}
	var page renderedPage
	var err error
	if work := func() { page = f.made(ctx, view, request, file) }; view.Apart != nil && view.Apart(request) {
		work()
	} else {
		err = f.oneAtATime(ctx, work)
	}
	if r.Context().Err() != nil {
		return // the request has ended
	}
	err = cmp.Or(err, page.err)
	if err == nil && file != "" && f.cfg.Exported != nil {
		err = f.cfg.Exported(ctx, request.Visitor, file+".csv of "+request.Link())
	}
	if err != nil {
		f.fail(w, request.Visitor, view, err)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if file != "" {
		header.Set("Content-Type", "text/csv; charset=utf-8")
		header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "oneclaw-"+file+".csv"))
	} else {
		header.Set("Content-Type", "text/html; charset=utf-8")
		sum := sha256.Sum256(page.body.Bytes())
		text := hex.EncodeToString(sum[:12])
		header.Set("ETag", etag(text, page.due))
		if has, _ := parseETag(r); has == text {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = page.body.WriteTo(w) // the client sees that it broke off
}

// renderedPage is a page as it is sent.
type renderedPage struct {
	body bytes.Buffer
	// due is when it may be made again.
	due time.Time
	err error
}

func (f *Frame) made(ctx context.Context, view View, request Request, file string) (m renderedPage) {
	begun := f.cfg.Now()
	if file != "" {
		request.Limit = rowsInFile
	}
	page, err := view.Show(ctx, request)
	switch {
	case err != nil:
	case file != "":
		err = f.file(&m.body, page, file)
	default:
		err = f.render(&m.body, request, view, page)
	}
	now := f.cfg.Now()
	m.due, m.err = Due(now, now.Sub(begun)), err
	return m
}

// fail says what cannot be shown. The reason is only logged.
func (f *Frame) fail(w http.ResponseWriter, visitor Visitor, view View, err error) {
	status, text := http.StatusNotFound, "There is nothing here, or it is gone: receipts are kept for a week."
	if !errors.Is(err, ErrNotFound) {
		f.cfg.Log.Error("a page for administrators cannot be shown", "view", view.Path, "err", err)
		status, text = http.StatusInternalServerError, "This cannot be shown now. The log says why."
	}
	page := Page{Title: http.StatusText(status), Sections: []Section{{Text: []string{text}}}}
	var body bytes.Buffer
	if err := f.render(&body, Request{Visitor: visitor, path: Root}, view, page); err != nil {
		f.cfg.Log.Error("a page for administrators cannot be rendered", "view", view.Path, "err", err)
		http.Error(w, "This cannot be shown now. The log says why.", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // as above
}

func (f *Frame) render(w io.Writer, request Request, view View, page Page) error {
	p := f.papers.Get().(*pageTemplate)
	defer f.papers.Put(p)
	p.request, p.zone = request, f.cfg.Zone()
	return p.Execute(w, f.shown(request, view, page))
}

// link is an entry of the navigation.
type link struct {
	Title, To string
	Here      bool
}

type shown struct {
	Page

	Nav     []link
	Visitor Visitor
	SignOut string
}

func (f *Frame) shown(request Request, view View, page Page) shown {
	s := shown{Page: page, Visitor: request.Visitor, SignOut: f.cfg.SignOut}
	s.Title = cmp.Or(page.Title, view.Title)
	here := view.Path
	if view.Inner {
		here = view.Under
	}
	for _, v := range f.cfg.Views {
		if !v.Inner {
			s.Nav = append(s.Nav, link{Title: v.Title, To: Root + v.Path, Here: v.Path == here && view.Show != nil})
		}
	}
	return s
}
