// Package admin serves the administrators' pages: what the bot does, for whom, at what cost, and what waits for
// a person. Each page reads a bounded number of records, and changes nothing, apart from decisions about people
// and approvals, audit entries, and the announcement that an administrator reads a conversation.
package admin

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yuin/goldmark"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/why"
	"oneclaw/internal/admin/signin"
	"oneclaw/internal/budget"
	"oneclaw/internal/doctor"
	"oneclaw/internal/telemetry"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// Root is the path of the first page, and the prefix of the others.
const Root = signin.Path

const (
	// maxScanned bounds the index entries that are read for one page, maxRows the rows of a table.
	maxScanned, maxRows = 5000, 50
	// maxQuery bounds the query of an address, in bytes.
	maxQuery = 4 << 10
	// pageTimeout bounds the work on a page.
	pageTimeout = 10 * time.Second
	// namesTimeout bounds the time in which platforms are asked for the names of chats.
	namesTimeout = 2 * time.Second
)

// Config configures the pages. All of it is required, but that Texts.Announce is only where texts are allowed.
type Config struct {
	Store storage.Store
	// Explain returns what happened to a message.
	Explain func(ctx context.Context, key string) (*why.Explanation, error)
	// Texts configures whether administrators may read texts.
	Texts     Texts
	People    People
	Approvals Approvals
	Bot       Bot
	Ledger    *budget.Ledger
	// Allowance says how much people may use who were let in from a chat; empty without a limit.
	Allowance string
	Tools     ToolSource
	// Errors has the errors that this process has logged.
	Errors *telemetry.Ring
	// Visitor returns the session of a request. Without a session nothing is shown.
	Visitor func(*http.Request) (signin.Session, bool)
	// Redact masks secrets in everything shown, and RedactCards in texts on cards. If Redact masks more of a
	// question, the question can be denied on the page but not allowed.
	Redact, RedactCards func(string) string
	// Zone returns the time zone of times.
	Zone func() *time.Location
	Log  *slog.Logger
	Now  func() time.Time
}

// Texts are texts of users and models.
type Texts struct {
	// Allowed permits administrators to read them.
	Allowed bool
	// Announce sends a message to a chat, once per key.
	Announce func(ctx context.Context, chat chats.Chat, key, text string) error
}

// Bot reports the bot's state.
type Bot struct {
	Version string
	// Health checks each platform and the model, and returns doctor's advice about those that do not work.
	Health func(ctx context.Context) []doctor.Finding
	// ChatName returns the name of a shared chat, or "" if it is not available before ctx ends.
	ChatName func(ctx context.Context, chat chats.Chat) string
	// QueueStats returns the numbers of open jobs.
	QueueStats func() queue.Stats
	// Examine runs all checks of doctor.
	Examine func(ctx context.Context) []doctor.Finding
}

// People manages who may talk to the bot: [access.Registry].
type People interface {
	// ListPeople returns each user who was let in, has asked for access or was refused.
	ListPeople() []access.Person
	// Settings returns the access that the settings give.
	Settings() access.Access
	// Admit lets a user in, and describes the result.
	Admit(ctx context.Context, author audit.Author, user string, admin bool) (string, error)
	// Revoke takes a user's access away, and describes the result.
	Revoke(ctx context.Context, author audit.Author, user string) (string, error)
}

// Approvals lists and decides the tool calls that wait for approval.
type Approvals interface {
	// Waiting returns the calls that wait, as a user sees them, at most the given number.
	Waiting(ctx context.Context, user string, most int) ([]interact.ApprovalRequest, error)
	// Press presses a button for a user, and reports whether it was accepted.
	Press(ctx context.Context, user, name, data string) (bool, error)
	// PressResult returns the answer to the last press of a button, once its question is decided.
	PressResult(ctx context.Context, data string) (string, error)
}

// ToolSource supplies what the page about tools shows.
type ToolSource struct {
	// Registry returns the current tools.
	Registry func() *toolgroups.Registry
	// Servers returns the MCP servers.
	Servers func() []mcp.Status
}

// view is a page, or several that differ by their query.
type view struct {
	path, title string
	// parent is the path of the view in the navigation to which this one belongs if it is not there itself.
	parent string
	// show returns the page. If takesForms is set, it also does what a form of the page asks for.
	show       func(ctx context.Context, r request) (page, error)
	takesForms bool
}

// Pages serves the pages. The caller must admit only administrators, as [signin.Service.Handler] does, which
// also bounds forms and checks where they come from.
type Pages struct {
	Config

	jobs     queue.Store
	views    []view
	template *template.Template
	markdown goldmark.Markdown
}

//go:embed assets
var assets embed.FS

//go:embed page.html
var pageHTML string

// New returns the pages.
func New(cfg Config) (*Pages, error) {
	p := &Pages{Config: cfg, jobs: queue.Store{Store: cfg.Store, Base: new(atomic.Int64)}, markdown: newCardMarkdown()}
	p.views = []view{
		{path: "", title: "Overview", show: p.overview, takesForms: true},
		{path: messagesView, title: "Messages", show: p.messages},
		{path: messageView, title: "A message", parent: messagesView, show: p.message, takesForms: true},
		{path: peopleView, title: "People and approvals", show: p.people, takesForms: true},
		{path: costsView, title: "Costs", show: p.costs},
		{path: toolsView, title: "Tools and servers", show: p.tools},
	}
	var err error
	p.template, err = template.New("page").Funcs(p.functions(signin.Session{})).Parse(pageHTML)
	return p, err
}

// moved are the views that became part of another, and gone says where to look for what the others showed.
var (
	moved = map[string]string{"approvals": peopleView, "conversation": messagesView, "conversations": messagesView, "errors": "", "spending": costsView}
	gone  = map[string]string{
		"audit":     "The audit is printed by: oneclaw audit",
		"schedules": "Schedules and webhooks are listed in their chats: ask the bot for the schedules, or send /hook.",
		"settings":  "The settings are printed by: oneclaw config",
	}
)

// ServeHTTP implements [http.Handler].
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, below := strings.CutPrefix(r.URL.Path, Root)
	if strings.HasPrefix(path, "assets/") { // the style and the icon
		w.Header().Set("Cache-Control", "max-age=300")
		http.StripPrefix(Root, http.FileServerFS(assets)).ServeHTTP(w, r)
		return
	}
	visitor, ok := p.Visitor(r)
	if !ok {
		http.Error(w, "Sign in first: an administrator is given a link by /admin in the chat.", http.StatusUnauthorized)
		return
	}
	if to, ok := moved[path]; ok && below {
		http.Redirect(w, r, Root+to, http.StatusSeeOther)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	i := slices.IndexFunc(p.views, func(v view) bool { return v.path == path })
	query, err := url.ParseQuery(r.URL.RawQuery)
	if !below || i < 0 || err != nil || len(r.URL.RawQuery) > maxQuery {
		p.writeError(w, request{visitor: visitor, path: path}, view{}, errNotFound)
		return
	}
	v, asked := p.views[i], request{visitor: visitor, query: query, path: path}
	if r.Method == http.MethodPost {
		if err := r.ParseForm(); err != nil || !v.takesForms {
			http.Error(w, "This page takes no such form.", http.StatusMethodNotAllowed)
			return
		}
		asked.form = r.PostForm
	}
	shown, err := v.show(ctx, asked)
	switch {
	case r.Context().Err() != nil: // the visitor has gone
	case err != nil:
		p.writeError(w, asked, v, err)
	default:
		p.write(w, http.StatusOK, asked, v, shown)
	}
}

// writeError answers that a page does not exist, for errNotFound, or that it cannot be shown. It logs any
// other error, and does not show it.
func (p *Pages) writeError(w http.ResponseWriter, r request, v view, err error) {
	status, said := http.StatusNotFound, cmp.Or(gone[r.path], "There is nothing here, or it is gone: receipts are kept for a week.")
	if !errors.Is(err, errNotFound) {
		p.Log.Error("a page for administrators cannot be shown", "view", v.path, "err", err)
		status, said = http.StatusInternalServerError, "This cannot be shown now. The log says why."
	}
	p.write(w, status, r, v, page{Title: http.StatusText(status), Sections: []section{{Text: []string{said}}}})
}

// link is an entry of the navigation.
type link struct {
	Title, To string
	Current   bool
}

type pageData struct {
	page

	Nav     []link
	Visitor signin.Session
}

func (p *Pages) write(w http.ResponseWriter, status int, r request, v view, shown page) {
	shown.Title = cmp.Or(shown.Title, v.title)
	data := pageData{page: shown, Visitor: r.visitor}
	for _, one := range p.views {
		if one.parent == "" {
			data.Nav = append(data.Nav, link{Title: one.title, To: Root + one.path, Current: one.path == cmp.Or(v.parent, v.path) && v.show != nil})
		}
	}
	var body bytes.Buffer
	own, err := p.template.Clone() // which is never executed itself
	if err == nil {
		err = own.Funcs(p.functions(r.visitor)).Execute(&body, data)
	}
	if err != nil {
		p.Log.Error("a page for administrators cannot be rendered", "view", v.path, "err", err)
		http.Error(w, "This cannot be shown now. The log says why.", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // if it fails, the client sees a truncated page
}

// maxUnbroken is the length in bytes up to which a word in a table is not broken: ids of chats and users are
// shorter.
const maxUnbroken = 24

// functions are those of the template, for the pages of a visitor.
func (p *Pages) functions(visitor signin.Session) template.FuncMap {
	return template.FuncMap{
		"root":     func() string { return Root },
		"csrf":     func() string { return visitor.CSRF },
		"mask":     p.Redact,
		"markdown": p.renderMarkdown,
		"short":    func(text string) bool { return len(text) <= maxUnbroken && !strings.Contains(text, " ") },
		"when":     func(t time.Time) string { return t.In(p.Zone()).Format(time.DateTime) },
		"stamp":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	}
}

// names returns the names of people and chats, by their ids: as the register of people has them, open messages, those
// of the last week, or the platform. An id without a name is its own.
func (p *Pages) names(ctx context.Context, ids ...string) (map[string]string, error) {
	names, unknown := make(map[string]string), make(map[string]bool)
	for _, id := range ids {
		names[id], unknown[id] = id, true
	}
	learn := func(id, name string) {
		if unknown[id] && name != "" {
			names[id] = name
			delete(unknown, id)
		}
	}
	learnFrom := func(m chats.Message) {
		learn(m.SenderID(), m.UserName)
		if m.Direct {
			learn(m.Chat.String(), m.UserName)
		}
	}
	for _, one := range p.People.ListPeople() {
		learn(one.User, one.Name)
	}
	for entry, err := range p.Store.List(ctx, storage.Range{Prefix: queue.OpenPrefix, Limit: maxScanned}) {
		if err != nil {
			return nil, fmt.Errorf("list open messages: %w", err)
		}
		if len(unknown) == 0 {
			break
		}
		if run, err := p.jobs.DecodeJob(entry); err == nil { // a damaged job must not hide the others
			learnFrom(run.Message)
		}
	}
	closed, err := p.newestClosed(ctx, maps.Clone(unknown))
	if err != nil {
		return nil, err
	}
	for _, r := range closed {
		learnFrom(r.Message)
	}
	maps.Copy(names, p.chatNames(ctx, slices.DeleteFunc(ids, func(id string) bool { return !unknown[id] })...))
	return names, nil
}

// newestClosed returns the newest closed message of each of some people and chats, if there is one, of which it empties the
// set.
func (p *Pages) newestClosed(ctx context.Context, of map[string]bool) (map[string]*receipts.Receipt, error) {
	var found []receipts.Entry
	n := 0
	for f, err := range receipts.ListEntries(ctx, p.Store, "") {
		if err != nil {
			return nil, err
		}
		if n++; n > maxScanned || len(of) == 0 {
			break
		}
		chat, _, _ := strings.Cut(f.Key, "/")
		platform, _, _ := strings.Cut(chat, ":")
		if user := platform + ":" + f.User; of[chat] || of[user] {
			delete(of, chat)
			delete(of, user)
			found = append(found, f)
		}
	}
	return receipts.LoadReceipts(ctx, p.Store, found)
}

// chatNames returns the names that the platforms have for chats, by their ids. A chat without a name has its id.
func (p *Pages) chatNames(ctx context.Context, ids ...string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	names := make(map[string]string)
	for _, id := range ids {
		names[id] = id
		if chat, err := chats.ParseChat(id); err == nil {
			names[id] = cmp.Or(p.Bot.ChatName(ctx, chat), id)
		}
	}
	return names
}
