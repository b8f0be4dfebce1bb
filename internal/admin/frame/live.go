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
	// liveHeader is on requests of a page that asks for itself again.
	liveHeader = "OneClaw-Live"
	// Share is the part of one processor's time that an open page takes at most, one in so many,
	// by being made anew less often; but every slowest at least.
	Share   = 200
	slowest = time.Minute
)

// Due is when what took so long to make may be made again.
func Due(made time.Time, took time.Duration) time.Time {
	return made.Add(min(took*Share, slowest))
}

// tag is the ETag of a page: what it says, and when it may be asked for again.
func tag(sum string, due time.Time) string {
	return `"` + sum + "." + strconv.FormatInt(due.UnixMilli(), 36) + `"`
}

// known takes the tag apart that a request says it has.
func known(r *http.Request) (sum string, due time.Time) {
	sum, at, _ := strings.Cut(strings.Trim(r.Header.Get("If-None-Match"), `"`), ".")
	ms, err := strconv.ParseInt(at, 36, 64)
	if err != nil {
		return "", time.Time{}
	}
	return sum, time.UnixMilli(ms)
}

// early answers a page that asks for itself too soon: it has not changed, as far as it is told.
func (f *Frame) early(w http.ResponseWriter, r *http.Request) bool {
	sum, due := known(r)
	if wait := due.Sub(f.cfg.Now()); r.Header.Get(liveHeader) == "" || wait <= 0 || wait > slowest {
		return false
	}
	w.Header().Set("ETag", tag(sum, due))
	w.WriteHeader(http.StatusNotModified)
	return true
}

// alone runs f while no other page is made. So those who look take one processor at most, and
// leave the others to the chats.
func (f *Frame) alone(ctx context.Context, work func()) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.turn }()
	work()
	return nil
}

// maxUnbroken is up to how many bytes a word in a table is not broken: ids of chats and users are shorter.
const maxUnbroken = 24

// paper is the template of the page, for one request after another: what is escaped once need
// not be escaped for each.
type paper struct {
	*template.Template

	request Request
	zone    *time.Location
}

func newPaper(page *template.Template, redact func(string) string) *paper {
	p := new(paper)
	p.Template = template.Must(page.Clone()).Funcs(p.functions(redact)) // the original is never filled in
	return p
}

func (p *paper) functions(redact func(string) string) template.FuncMap {
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
