// Package admin is the administrators' page: what the bot does, for whom, and how it is. It
// reads, by bounded ranges of keys, and changes nothing.
package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/why"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/budget"
	"oneclaw/internal/cache"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

const (
	// maxLooked bounds the entries of an index that a search looks at for one page.
	maxLooked = 5000
	// maxRead bounds those of which each is a read of its own.
	maxRead = 1000
	// maxExported bounds what the audit says of a file, in characters.
	maxExported = 300
	// rowsAtOnce is how many receipts are read at once: those of a page. An administrator who has more rows to
	// make rests before the next, so that a file takes its time and not that of the chats.
	rowsAtOnce = 50
	restsFor   = 5 * time.Millisecond
)

// Config is what the page is made of. What is nil is left out of it.
type Config struct {
	Store storage.Store
	// Tell tells what became of a message.
	Tell func(ctx context.Context, key string) (*why.Explanation, error)
	// Texts says who may read what was said.
	Texts Texts
	// People are those whose names are known; nil where none are.
	People func() []access.Person
	// Bot is how the bot is, Ledger what it used.
	Bot    Bot
	Ledger *budget.Ledger
	// Costs says what conversations would have cost.
	Costs Costs
	Tools Tools
	// Program is what it was told, and what it told.
	Program Program
	// More are views from elsewhere, behind those of this package.
	More []frame.View
	// Visitor and SignOut are those of [frame.Config].
	Visitor func(*http.Request) (frame.Visitor, bool)
	SignOut string
	// Redact masks secrets in all that is shown.
	Redact func(string) string
	Zone   func() *time.Location
	Log    *slog.Logger
	Now    func() time.Time
}

// Texts are what people and models wrote.
type Texts struct {
	// Shown says that administrators may read them.
	Shown bool
	// Announce says something in a chat, once for a key.
	Announce func(ctx context.Context, chat chats.Chat, key, text string) error
}

// page has what the views share.
type page struct {
	Config

	jobs     queue.Store
	examined atomic.Pointer[examined]
	played   *cache.Cache[string, played]
	recent   atomic.Pointer[recent]
}

// New makes the handler of the page, for administrators alone.
func New(cfg Config) (http.Handler, error) {
	if cfg.Store == nil || cfg.Tell == nil || cfg.Bot.Ready == nil || cfg.Bot.Open == nil || cfg.Texts.Shown && cfg.Texts.Announce == nil {
		return nil, errors.New("admin: a store, what tells of messages, and what announces are needed")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Zone == nil {
		cfg.Zone = func() *time.Location { return time.UTC }
	}
	p := &page{Config: cfg, jobs: queue.Store{Store: cfg.Store, Base: new(atomic.Int64)}, played: cache.New[string, played](maxPlayed)}
	return frame.New(frame.Config{
		Views: append(p.views(), cfg.More...), Visitor: cfg.Visitor, SignOut: cfg.SignOut, Exported: p.exported, Redact: cfg.Redact, Zone: cfg.Zone, Log: cfg.Log, Now: cfg.Now,
	})
}

// exported records that an administrator takes a table away as a file.
func (p *page) exported(ctx context.Context, v frame.Visitor, what string) error {
	entry := audit.Entry{At: p.Now(), Action: "export", By: v.Person, Name: v.Name, Chat: audit.Page, About: wording.Clip(what, maxExported)}
	return audit.Append(ctx, p.Store, "page-"+rand.Text(), entry)
}

func (p *page) views() []frame.View {
	return []frame.View{
		{Path: "", Title: "Overview", Show: p.overview, Do: p.examine},
		{Path: "messages", Title: "Messages", Show: p.messages},
		{Path: messageView, Title: "A message", Inner: true, Under: "messages", Show: p.message, Do: p.readMessage},
		{Path: "conversations", Title: "Conversations", Show: p.conversations},
		{Path: conversationView, Title: "A conversation", Inner: true, Under: "conversations", Show: p.conversation, Apart: asksForCosts, Do: p.readConversation},
		{Path: "spending", Title: "Spending", Show: p.spending},
		{Path: "tools", Title: "Tools", Show: p.tools},
		{Path: "schedules", Title: "Schedules and hooks", Show: p.planned},
		{Path: "settings", Title: "Settings", Show: p.settings},
		{Path: errorsView, Title: "Recent errors", Show: p.errors},
	}
}

// rest is called between the rows of a table, with how many it has.
func rest(ctx context.Context, rows int) error {
	if rows < rowsAtOnce {
		return nil
	}
	return retry.Wait(ctx, restsFor)
}

// took is a duration in words.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(max(d, 0).Milliseconds(), 10) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// count is a number with its unit.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(int64(n)) + " " + many
}

// grouped is a number with its thousands apart.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	digits := strings.TrimPrefix(text, "-")
	var out strings.Builder
	out.WriteString(strings.TrimSuffix(text, digits))
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}

// plain is a line of Markdown that the bridge wrote as a text: its marks and escapes taken away.
func plain(line string) string {
	var out strings.Builder
	escaped := false
	for _, r := range strings.ReplaceAll(line, "**", "") {
		switch {
		case !escaped && r == '\\':
			escaped = true
			continue
		case !escaped && r == '`':
			continue
		}
		out.WriteRune(r)
		escaped = false
	}
	return out.String()
}

// looked says how far a search looked.
func looked(n, found int, what string, back time.Time, zone *time.Location, whole bool) string {
	switch {
	case n == 0:
		return ""
	case whole:
		return fmt.Sprintf("Looked at %s, to the last: %s here.", count(n, what, what+"s"), grouped(int64(found)))
	}
	return fmt.Sprintf("Looked at %s, back to %s: %s here.", count(n, what, what+"s"), back.In(zone).Format(time.DateTime), grouped(int64(found)))
}

// sorted are the names of a map.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// position reads one of a query; 0 where it is none.
func position(text string) storage.Position {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return storage.Position(n)
}
