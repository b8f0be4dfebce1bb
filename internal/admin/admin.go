// Package admin serves the administrators' page: what the bot does, for whom, and its health. It
// reads bounded ranges of keys and changes nothing.
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
	// maxLooked bounds the index entries that a search reads for one page.
	maxLooked = 5000
	// maxRead bounds those that need a read of their own.
	maxRead = 1000
	// maxExported bounds the audit's description of a file, in characters.
	maxExported = 300
	// rowsAtOnce is how many receipts are read at once: one page. For more rows an administrator's
	// request pauses between batches, so that an export does not take time from the chats.
	rowsAtOnce = 50
	restsFor   = 5 * time.Millisecond
)

// Config configures the page. Nil parts are left out.
type Config struct {
	Store storage.Store
	// Tell explains what happened to a message.
	Tell func(ctx context.Context, key string) (*why.Explanation, error)
	// Texts says which texts may be read.
	Texts Texts
	// People returns the users whose names are known; nil if there are none.
	People func() []access.Person
	// Bot reports the bot's state, Ledger its usage.
	Bot    Bot
	Ledger *budget.Ledger
	// Costs estimates what conversations would have cost with other models.
	Costs Costs
	Tools Tools
	// Program has the settings and logged errors.
	Program Program
	// More are views of other packages, after those of this one.
	More []frame.View
	// Visitor and SignOut are as in [frame.Config].
	Visitor func(*http.Request) (frame.Visitor, bool)
	SignOut string
	// Redact masks secrets in everything shown.
	Redact func(string) string
	Zone   func() *time.Location
	Log    *slog.Logger
	Now    func() time.Time
}

// Texts are texts of users and models.
type Texts struct {
	// Shown permits administrators to read them.
	Shown bool
	// Announce sends a message to a chat, once per key.
	Announce func(ctx context.Context, chat chats.Chat, key, text string) error
}

// page has what the views share.
type page struct {
	Config

	jobs     queue.Store
	examined atomic.Pointer[examined]
	played   *cache.Cache[string, costResult]
	recent   atomic.Pointer[recent]
}

// New returns the handler of the page. The caller must admit only administrators.
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
	p := &page{Config: cfg, jobs: queue.Store{Store: cfg.Store, Base: new(atomic.Int64)}, played: cache.New[string, costResult](maxPlayed)}
	return frame.New(frame.Config{
		Views: append(p.views(), cfg.More...), Visitor: cfg.Visitor, SignOut: cfg.SignOut, Exported: p.exported, Redact: cfg.Redact, Zone: cfg.Zone, Log: cfg.Log, Now: cfg.Now,
	})
}

// exported records that an administrator exports a table.
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

// pauseBetweenRows is called between the rows of a table, with the number of rows so far.
func pauseBetweenRows(ctx context.Context, rows int) error {
	if rows < rowsAtOnce {
		return nil
	}
	return retry.Wait(ctx, restsFor)
}

// durationText formats a duration.
func durationText(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(max(d, 0).Milliseconds(), 10) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// withUnit formats a number with its unit.
func withUnit(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return withThousands(int64(n)) + " " + many
}

// withThousands formats a number with thousands separators.
func withThousands(n int64) string {
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

// plain returns a line of the bridge's Markdown as text, without marks and escapes.
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

// searchedText says how far a search looked.
func searchedText(n, found int, what string, back time.Time, zone *time.Location, whole bool) string {
	switch {
	case n == 0:
		return ""
	case whole:
		return fmt.Sprintf("Looked at %s, to the last: %s here.", withUnit(n, what, what+"s"), withThousands(int64(found)))
	}
	return fmt.Sprintf("Looked at %s, back to %s: %s here.", withUnit(n, what, what+"s"), back.In(zone).Format(time.DateTime), withThousands(int64(found)))
}

// sorted returns the keys of a map, sorted.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// position parses a position in a query; 0 if it is invalid.
func position(text string) storage.Position {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return storage.Position(n)
}
