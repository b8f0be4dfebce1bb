package frame

import (
	"context"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// liveHeader marks automatic updates of an open page.
	liveHeader = "OneClaw-Live"
	// Share bounds the processor time of an open page: one part in so many of a processor, by
	// updating it less often, but at least every slowest.
	Share   = 200
	slowest = time.Minute
)

// Due returns when a page that took so long to make may be made again.
func Due(made time.Time, took time.Duration) time.Time {
	return made.Add(min(took*Share, slowest))
}

// etag returns the ETag of a page: its content, and when it may be requested again.
func etag(sum string, due time.Time) string {
	return `"` + sum + "." + strconv.FormatInt(due.UnixMilli(), 36) + `"`
}

// parseETag parses the ETag of a request.
func parseETag(r *http.Request) (sum string, due time.Time) {
	sum, at, _ := strings.Cut(strings.Trim(r.Header.Get("If-None-Match"), `"`), ".")
	ms, err := strconv.ParseInt(at, 36, 64)
	if err != nil {
		return "", time.Time{}
	}
	return sum, time.UnixMilli(ms)
}

// notModified answers a page that updates itself too soon as unchanged.
func (f *Frame) notModified(w http.ResponseWriter, r *http.Request) bool {
	sum, due := parseETag(r)
	if wait := due.Sub(f.cfg.Now()); r.Header.Get(liveHeader) == "" || wait <= 0 || wait > slowest {
		return false
	}
	w.Header().Set("ETag", etag(sum, due))
	w.WriteHeader(http.StatusNotModified)
	return true
}

// oneAtATime runs f while no other page is made. So pages use one processor at most, and leave the
// others to the chats.
func (f *Frame) oneAtATime(ctx context.Context, work func()) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.turn }()
	work()
	return nil
}

// maxUnbroken bounds a word in a table that is not broken, in bytes: ids of chats and users are
// shorter.
const maxUnbroken = 24

// pageTemplate is a reusable template of the page: what is escaped once need not be escaped for each
// request.
type pageTemplate struct {
	*template.Template

	request Request
	zone    *time.Location
}

func newPaper(page *template.Template, redact func(string) string) *pageTemplate {
	p := new(pageTemplate)
	p.Template = template.Must(page.Clone()).Funcs(p.functions(redact)) // the original is never executed
	return p
}

func (p *pageTemplate) functions(redact func(string) string) template.FuncMap {
	return template.FuncMap{
		"root":  func() string { return Root },
		"csrf":  func() string { return p.request.Visitor.CSRF },
		"mask":  redact,
		"short": func(text string) bool { return len(text) <= maxUnbroken && !strings.Contains(text, " ") },
		"when":  func(t time.Time) string { return t.In(p.zone).Format(time.DateTime) },
		"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"file":  func(name string) string { return p.request.Link(csvParameter, name) },
	}
}
