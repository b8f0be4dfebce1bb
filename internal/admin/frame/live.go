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
	// ProcessorShare bounds the time that updates of an open page take: at most 1/ProcessorShare of
	// a processor, except that a page may always be updated after maxRefreshInterval.
	ProcessorShare     = 200
	maxRefreshInterval = time.Minute
)

// NextRefresh returns when a page that was made at a time, and took a duration, may be made again.
func NextRefresh(made time.Time, took time.Duration) time.Time {
	return made.Add(min(took*ProcessorShare, maxRefreshInterval))
}

// etag returns the ETag of a page: its checksum, and when the page may be requested again.
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

// notModified answers an automatic update that comes too soon, and reports whether it did.
func (f *Frame) notModified(w http.ResponseWriter, r *http.Request) bool {
	sum, due := parseETag(r)
	if wait := due.Sub(f.cfg.Now()); r.Header.Get(liveHeader) == "" || wait <= 0 || wait > maxRefreshInterval {
		return false
	}
	w.Header().Set("ETag", etag(sum, due))
	w.WriteHeader(http.StatusNotModified)
	return true
}

// oneAtATime runs work while no other call of it does, so that pages
// use at most one processor and leave the others to the chats.
func (f *Frame) oneAtATime(ctx context.Context, work func()) error {
	select {
	case f.rendering <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.rendering }()
	work()
	return nil
}

// maxUnbroken is the length in bytes up to which a word in a
// table is not broken: ids of chats and users are shorter.
const maxUnbroken = 24

// pageTemplate is a reusable template of the page: the
// template need not be escaped again for each request.
type pageTemplate struct {
	*template.Template

	request Request
	zone    *time.Location
}

func newPageTemplate(page *template.Template, redact func(string) string) *pageTemplate {
	p := new(pageTemplate)
	p.Template = template.Must(page.Clone()).Funcs(p.funcMap(redact)) // the original is never executed
	return p
}

func (p *pageTemplate) funcMap(redact func(string) string) template.FuncMap {
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
