// Package admin serves the administrators' pages: what the bot does, for whom, and its health. Each
// view reads a bounded number of records. Only the views of [OperationsViews] change anything, apart
// from audit entries and the announcement that an administrator reads a conversation.
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
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

const (
	// maxScanned bounds the index entries that a search reads for one page.
	maxScanned = 5000
	// maxRecordReads bounds the entries of a search that need another read each.
	maxRecordReads = 1000
	// maxExportAbout bounds the description of an exported file in the audit, in characters.
	maxExportAbout = 300
	// rowsPerBatch is how many receipts are read at once: one page. For more rows an
	// administrator's request pauses between batches, so that an export does not slow the chats.
	rowsPerBatch = 50
	batchPause   = 5 * time.Millisecond
)

// Config configures the page. Store, Explain, Bot.ReceiveErrors, Bot.QueueStats, Tools,
// Program.Settings and Visitor are required, and Texts.Announce if texts are allowed.
type Config struct {
	Store storage.Store
	// Explain returns what happened to a message.
	Explain func(ctx context.Context, key string) (*why.Explanation, error)
	// Texts configures whether administrators may read texts.
	Texts Texts
	// People returns the users whose names are known; nil if there are none.
	People func() []access.Person
	// Bot reports the bot's state.
	Bot Bot
	// Ledger has the budgets; nil hides them.
	Ledger *budget.Ledger
	Tools  ToolSource
	// Program has the settings and logged errors.
	Program Program
	// ExtraViews are views of other packages, after those of this one.
	ExtraViews []frame.View
	// Visitor and SignOut are as in [frame.Config].
	Visitor func(*http.Request) (frame.Visitor, bool)
	SignOut string
	// Redact masks secrets in everything shown; nil masks nothing.
	Redact func(string) string
	// Zone returns the time zone of times; nil means UTC.
	Zone func() *time.Location
	// Log may be nil.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Texts are texts of users and models.
type Texts struct {
	// Allowed permits administrators to read them.
	Allowed bool
	// Announce sends a message to a chat, once per key.
	Announce func(ctx context.Context, chat chats.Chat, key, text string) error
}

// page is the state that the views share.
type page struct {
	Config

	jobs      queue.Store
	lastCheck atomic.Pointer[checkResult]
	activity  atomic.Pointer[recentActivity]
}

// New returns the handler of the page. The caller must admit only administrators.
func New(cfg Config) (http.Handler, error) {
	if cfg.Store == nil || cfg.Explain == nil || cfg.Bot.ReceiveErrors == nil || cfg.Bot.QueueStats == nil || cfg.Texts.Allowed && cfg.Texts.Announce == nil {
		return nil, errors.New("admin: Store, Explain, Bot and Announce are required")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Zone == nil {
		cfg.Zone = func() *time.Location { return time.UTC }
	}
	p := &page{Config: cfg, jobs: queue.Store{Store: cfg.Store, Base: new(atomic.Int64)}}
	return frame.New(frame.Config{
		Views: append(p.views(), cfg.ExtraViews...), Visitor: cfg.Visitor, SignOut: cfg.SignOut, OnExport: p.recordExport, Redact: cfg.Redact, Zone: cfg.Zone, Log: cfg.Log, Now: cfg.Now,
	})
}

// recordExport records that an administrator exports a table.
func (p *page) recordExport(ctx context.Context, v frame.Visitor, what string) error {
	entry := audit.Entry{At: p.Now(), Action: "export", By: v.Person, Name: v.Name, Chat: audit.PageChat, About: wording.Clip(what, maxExportAbout)}
	return audit.Append(ctx, p.Store, "page-"+rand.Text(), entry)
}

func (p *page) views() []frame.View {
	return []frame.View{
		{Path: "", Title: "Overview", Show: p.overview, HandleForm: p.runChecks},
		{Path: "messages", Title: "Messages", Show: p.messages},
		{Path: messageView, Title: "A message", Hidden: true, Parent: "messages", Show: p.message, HandleForm: p.readMessage},
		{Path: "conversations", Title: "Conversations", Show: p.conversations},
		{Path: conversationView, Title: "A conversation", Hidden: true, Parent: "conversations", Show: p.conversation, HandleForm: p.readConversation},
		{Path: "spending", Title: "Spending", Show: p.spending},
		{Path: "tools", Title: "Tools", Show: p.tools},
		{Path: "schedules", Title: "Schedules and hooks", Show: p.schedulesPage},
		{Path: "settings", Title: "Settings", Show: p.settings},
		{Path: errorsView, Title: "Recent errors", Show: p.errors},
	}
}

// pauseBetweenRows pauses before a further batch of a table; rows is the number of rows so far.
func pauseBetweenRows(ctx context.Context, rows int) error {
	if rows < rowsPerBatch {
		return nil
	}
	return retry.Wait(ctx, batchPause)
}

// formatCount formats a number with its unit.
func formatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return formatThousands(int64(n)) + " " + many
}

// formatThousands formats a number with thousands separators.
func formatThousands(n int64) string {
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

// stripMarkdown returns a line of the bridge's Markdown as text, without marks and escapes.
func stripMarkdown(line string) string {
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

// searchNote describes a search that read n entries back to a time, or all of them if whole is set.
func searchNote(n, found int, what string, back time.Time, zone *time.Location, whole bool) string {
	switch {
	case n == 0:
		return ""
	case whole:
		return fmt.Sprintf("Looked at %s, to the last: %s here.", formatCount(n, what, what+"s"), formatThousands(int64(found)))
	}
	return fmt.Sprintf("Looked at %s, back to %s: %s here.", formatCount(n, what, what+"s"), back.In(zone).Format(time.DateTime), formatThousands(int64(found)))
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// parsePosition parses a position in a query; it returns 0 if the position is invalid.
func parsePosition(text string) storage.Position {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return storage.Position(n)
}
