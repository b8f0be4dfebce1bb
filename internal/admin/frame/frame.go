// Package frame provides what all views of the administrators' page share:
// navigation, tables with pages and files, plots, forms, and automatic updates.
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

// Root is the path of the first page, and the prefix of the others.
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
	// Parent is the path of the view in the navigation to which this
	// view belongs, if this view is not in the navigation itself.
	Parent string
	// Hidden keeps the view out of the navigation.
	Hidden bool
	Show   func(ctx context.Context, r Request) (Page, error)
	// HandleForm handles a form of the view, and returns the address to show next.
	HandleForm func(ctx context.Context, r Request) (string, error)
}

// Config configures a [Frame].
type Config struct {
	Views []View
	// Visitor returns the user of a request. Without a user nothing is shown.
	Visitor func(r *http.Request) (Visitor, bool)
	// SignOut is the path of the form that signs out; empty for none.
	SignOut string
	// OnExport, if not nil, is called before a table is exported. If it fails, the table is not sent.
	OnExport func(ctx context.Context, v Visitor, what string) error
	// Redact masks secrets in everything shown; nil masks nothing.
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
	// templates holds *pageTemplate.
	templates sync.Pool
	// rendering has one slot, which a page holds while it is made, unless it runs concurrently.
	rendering chan struct{}
}

//go:embed assets
var assets embed.FS

//go:embed page.html
var pageHTML string

// New returns a frame with its views.
func New(cfg Config) (*Frame, error) {
	if cfg.Visitor == nil {
		return nil, errors.New("frame: Visitor is required")
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
	f := &Frame{cfg: cfg, views: make(map[string]View, len(cfg.Views)), rendering: make(chan struct{}, 1)}
	page, err := template.New("page").Funcs(new(pageTemplate).funcMap(cfg.Redact)).Parse(pageHTML)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	f.templates.New = func() any { return newPageTemplate(page, cfg.Redact) }
	for _, v := range cfg.Views {
		if _, twice := f.views[v.Path]; twice || v.Show == nil {
			return nil, fmt.Errorf("frame: the view %q exists twice, or has no function Show", v.Path)
		}
		f.views[v.Path] = v
	}
	return f, nil
}

// assetServer serves the style, the script and the icon, which contain no secrets, below Root +
// "assets/".
func assetServer() http.Handler {
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
		assetServer().ServeHTTP(w, r)
		return
	}
	visitor, ok := f.cfg.Visitor(r)
	if !ok {
		http.Error(w, "Sign in first: an administrator is given a link by /admin in the chat.", http.StatusUnauthorized)
		return
	}
	view, known := f.views[path]
	query, err := url.ParseQuery(r.URL.RawQuery)
	if !below || !known || err != nil || len(r.URL.RawQuery) > maxQuery {
		f.writeError(w, visitor, View{}, ErrNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	request := Request{Visitor: visitor, Query: query, Limit: rowsOnPage, path: r.URL.Path}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		f.servePage(ctx, w, r, view, request)
	case http.MethodPost:
		f.serveForm(ctx, w, r, view, request)
	default:
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
	}
}

func (f *Frame) serveForm(ctx context.Context, w http.ResponseWriter, r *http.Request, view View, request Request) {
	if view.HandleForm == nil {
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form is too large, or cannot be read.", http.StatusBadRequest)
		return
	}
	request.Form = r.PostForm
	to, err := view.HandleForm(ctx, request)
	if r.Context().Err() != nil {
		return // the visitor has gone
	}
	if err != nil {
		f.writeError(w, request.Visitor, view, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (f *Frame) servePage(ctx context.Context, w http.ResponseWriter, r *http.Request, view View, request Request) {
	file := request.Query.Get(csvParameter)
	if file == "" && f.notModified(w, r) {
		return
	}
	var page renderedPage
	err := f.oneAtATime(ctx, func() { page = f.renderPage(ctx, view, request, file) })
	if r.Context().Err() != nil {
		return // the request has ended
	}
	err = cmp.Or(err, page.err)
	if err == nil && file != "" && f.cfg.OnExport != nil {
		err = f.cfg.OnExport(ctx, request.Visitor, file+".csv of "+request.Link())
	}
	if err != nil {
		f.writeError(w, request.Visitor, view, err)
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
		header.Set("ETag", etag(text, page.refreshAfter))
		if has, _ := parseETag(r); has == text {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = page.body.WriteTo(w) // if it fails, the client sees a truncated page
}

// renderedPage is a page in the form in which it is sent.
type renderedPage struct {
	body bytes.Buffer
	// refreshAfter is when the page may be made again.
	refreshAfter time.Time
	err          error
}

func (f *Frame) renderPage(ctx context.Context, view View, request Request, file string) (m renderedPage) {
	begun := f.cfg.Now()
	if file != "" {
		request.Limit = rowsInFile
	}
	page, err := view.Show(ctx, request)
	switch {
	case err != nil:
	case file != "":
		err = f.writeCSV(&m.body, page, file)
	default:
		err = f.render(&m.body, request, view, page)
	}
	now := f.cfg.Now()
	m.refreshAfter, m.err = NextRefresh(now, now.Sub(begun)), err
	return m
}

// writeError answers that a page does not exist, for ErrNotFound, or that it cannot be shown. It logs
// any other error, and does not show it.
func (f *Frame) writeError(w http.ResponseWriter, visitor Visitor, view View, err error) {
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
	p := f.templates.Get().(*pageTemplate)
	defer f.templates.Put(p)
	p.request, p.zone = request, f.cfg.Zone()
	return p.Execute(w, f.newPageData(request, view, page))
}

// link is an entry of the navigation.
type link struct {
	Title, To string
	Current   bool
}

type pageData struct {
	Page

	Nav     []link
	Visitor Visitor
	SignOut string
}

func (f *Frame) newPageData(request Request, view View, page Page) pageData {
	s := pageData{Page: page, Visitor: request.Visitor, SignOut: f.cfg.SignOut}
	s.Title = cmp.Or(page.Title, view.Title)
	here := view.Path
	if view.Hidden {
		here = view.Parent
	}
	for _, v := range f.cfg.Views {
		if !v.Hidden {
			s.Nav = append(s.Nav, link{Title: v.Title, To: Root + v.Path, Current: v.Path == here && view.Show != nil})
		}
	}
	return s
}
