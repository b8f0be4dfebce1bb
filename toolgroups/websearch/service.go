package websearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oneclaw/internal/guard"
	"oneclaw/internal/redact"
	"oneclaw/internal/wording"
)

// The names of the services.
const (
	Brave   = "brave"
	Tavily  = "tavily"
	Exa     = "exa"
	SearXNG = "searxng"
)

// Service is a search service.
type Service struct {
	// Name is one of the names above.
	Name string
	// URL is the base address of its API, Key its API key; SearXNG has none.
	URL string
	Key redact.Secret
	// USDPerThousand is the price of a thousand searches in dollars.
	USDPerThousand float64
}

// Bounds of a result, in characters.
const (
	maxTitle = 200
	maxText  = 500
	maxURL   = 1000
)

// protocol is the API of a service.
type protocol struct {
	label, setting string
	ask            func(s Service, q query) (method, path string, body any, headers map[string]string)
	read           func(data []byte) ([]found, error)
}

// found is a result as a service returns it.
type found struct{ title, url, date, text string }

func protocols() map[string]protocol {
	return map[string]protocol{
		Brave:   {"Brave Search", "BRAVE_API_KEY", askBrave, readBrave},
		Tavily:  {"Tavily", "TAVILY_API_KEY", askTavily, readTavily},
		Exa:     {"Exa", "EXA_API_KEY", askExa, readExa},
		SearXNG: {"SearXNG", "SEARXNG_URL", askSearXNG, readSearXNG},
	}
}

func (s Service) label() string { return protocols()[s.Name].label }

func (s Service) request(ctx context.Context, q query) (*http.Request, error) {
	method, path, body, headers := protocols()[s.Name].ask(s, q)
	text := ""
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the search: %w", err)
		}
		text = string(data)
	}
	headers["Accept"] = "application/json"
	return guard.NewRequest(ctx, method, strings.TrimSuffix(s.URL, "/")+path, text, headers)
}

// askBrave follows api-dashboard.search.brave.com/api-reference/web/search/get.
func askBrave(s Service, q query) (method, path string, body any, headers map[string]string) {
	v := url.Values{"q": {q.Text}, "count": {strconv.Itoa(q.Count)}, "text_decorations": {"false"}, "result_filter": {"web"}}
	if q.Since != "" {
		v.Set("freshness", "p"+q.Since[:1])
	}
	return http.MethodGet, "/res/v1/web/search?" + v.Encode(), nil, map[string]string{"X-Subscription-Token": string(s.Key)}
}

func readBrave(data []byte) ([]found, error) {
	var r struct {
		Web *struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
				PageAge     string `json:"page_age"`
			} `json:"results"`
		} `json:"web"`
		Query json.RawMessage `json:"query"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Web == nil && r.Query == nil {
		return nil, errResponseFormat
	}
	var out []found
	if r.Web != nil { // missing if nothing was found
		for _, p := range r.Web.Results {
			out = append(out, found{p.Title, p.URL, p.PageAge, p.Description})
		}
	}
	return out, nil
}

// askTavily follows docs.tavily.com/documentation/api-reference/endpoint/search.
func askTavily(s Service, q query) (method, path string, body any, headers map[string]string) {
	b := map[string]any{"query": q.Text, "max_results": q.Count, "search_depth": "basic"}
	if q.Since != "" {
		b["time_range"] = q.Since
	}
	return http.MethodPost, "/search", b, map[string]string{"Authorization": "Bearer " + string(s.Key)}
}

func readTavily(data []byte) ([]found, error) {
	var r struct {
		Results *[]struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
			Date    string `json:"published_date"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Results == nil {
		return nil, errResponseFormat
	}
	var out []found
	for _, p := range *r.Results {
		out = append(out, found{p.Title, p.URL, p.Date, p.Content})
	}
	return out, nil
}

// askExa follows exa.ai/docs/reference/search. Highlights are in the price of a search.
func askExa(s Service, q query) (method, path string, body any, headers map[string]string) {
	b := map[string]any{"query": q.Text, "numResults": q.Count, "type": "auto", "contents": map[string]any{"highlights": true}}
	if q.Since != "" {
		b["startPublishedDate"] = q.after().UTC().Format(time.RFC3339)
	}
	return http.MethodPost, "/search", b, map[string]string{"x-api-key": string(s.Key)}
}

// after returns the earliest time of publication.
func (q query) after() time.Time {
	switch q.Since {
	case "day":
		return q.now.AddDate(0, 0, -1)
	case "week":
		return q.now.AddDate(0, 0, -7)
	case "month":
		return q.now.AddDate(0, -1, 0)
	}
	return q.now.AddDate(-1, 0, 0)
}

func readExa(data []byte) ([]found, error) {
	var r struct {
		Results *[]struct {
			Title      string   `json:"title"`
			URL        string   `json:"url"`
			Date       string   `json:"publishedDate"`
			Highlights []string `json:"highlights"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Results == nil {
		return nil, errResponseFormat
	}
	var out []found
	for _, p := range *r.Results {
		out = append(out, found{p.Title, p.URL, p.Date, strings.Join(p.Highlights, " … ")})
	}
	return out, nil
}

// askSearXNG follows docs.searxng.org/dev/search_api, which has no parameter for the number of
// results.
func askSearXNG(_ Service, q query) (method, path string, body any, headers map[string]string) {
	v := url.Values{"q": {q.Text}, "format": {"json"}}
	if q.Since != "" {
		v.Set("time_range", q.Since)
	}
	return http.MethodGet, "/search?" + v.Encode(), nil, map[string]string{}
}

func readSearXNG(data []byte) ([]found, error) {
	var r struct {
		Results *[]struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
			Date    string `json:"publishedDate"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Results == nil {
		return nil, errResponseFormat
	}
	var out []found
	for _, p := range *r.Results {
		out = append(out, found{p.Title, p.URL, p.Date, p.Content})
	}
	return out, nil
}

var errResponseFormat = errors.New("its answer is not of the form that its documentation names")

// unreachable says why there is no answer, and what to do about it.
func (s Service) unreachable(err error) error {
	if errors.Is(err, guard.ErrAddress) {
		return fmt.Errorf("%w; an administrator can open its range with tools.allow_private", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

// read parses a response. It does not trust the service: it drops addresses that are not of the
// web, and cuts long values.
func (s Service) read(reply guard.Reply, q query) ([]searchResult, error) {
	if reply.StatusCode != http.StatusOK {
		// Brave refuses a wrong key with the status of an invalid search.
		if bytes.Contains(reply.Data, []byte("SUBSCRIPTION_TOKEN_INVALID")) {
			return nil, s.refused(http.StatusUnauthorized)
		}
		return nil, s.refused(reply.StatusCode)
	}
	if reply.Cut {
		return nil, fmt.Errorf("its answer is larger than %d MiB", maxReply>>20)
	}
	all, err := protocols()[s.Name].read(reply.Data)
	if err != nil {
		return nil, err
	}
	var pages []searchResult
	known := map[string]bool{}
	for _, f := range all {
		address, ok := webAddress(f.url)
		if !ok || known[address] || len(pages) == q.Count {
			continue
		}
		known[address] = true
		title := plain(f.title, maxTitle)
		if title == "" {
			title = address
		}
		pages = append(pages, searchResult{title, address, day(f.date), plain(f.text, maxText)})
	}
	if len(pages) == 0 && len(all) > 0 {
		return nil, errors.New("none of its results has an address of the web")
	}
	return pages, nil
}

// refused explains a status.
func (s Service) refused(status int) error {
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("it does not accept the key; an administrator has to set %s", protocols()[s.Name].setting)
	case http.StatusForbidden:
		if s.Name == SearXNG {
			return fmt.Errorf("it does not answer in JSON (HTTP %d); json has to be among its search.formats", status)
		}
		return fmt.Errorf("it does not allow this (HTTP %d); an administrator has to look at %s", status, protocols()[s.Name].setting)
	case http.StatusPaymentRequired, statusPlan, statusSpent:
		return fmt.Errorf("its plan is used up (HTTP %d)", status)
	case http.StatusTooManyRequests:
		return fmt.Errorf("it has had too many searches (HTTP %d)", status)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return fmt.Errorf("it does not take this search (HTTP %d)", status)
	}
	return fmt.Errorf("it answered HTTP %d", status)
}

// Tavily's statuses for a used-up plan or pay-as-you-go limit.
const (
	statusPlan  = 432
	statusSpent = 433
)

// webAddress returns an address in a form that is safe in a text; false for one that a browser
// would not open as a page.
func webAddress(text string) (string, bool) {
	u, err := guard.ParseURL(strings.TrimSpace(text))
	if err != nil {
		return "", false
	}
	address := strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20", `\`, "%5C").Replace(u.String())
	if isInternalHost(u.Hostname()) || len(address) > maxURL || strings.ContainsFunc(address, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return "", false
	}
	return address, true
}

// isInternalHost reports whether a host name is not on the public web.
func isInternalHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return strings.EqualFold(host, "localhost")
	}
	return !ip.IsGlobalUnicast() || ip.IsPrivate()
}

// Tags that services leave in texts: inline ones, and those between paragraphs. Not everything
// that looks like a tag is one: titles may contain vector<int>.
var (
	within  = regexp.MustCompile(`(?i)</?(?:a|b|code|em|i|mark|span|strong|u|wbr)(?:\s+[\w-]+=[^<>]*)?\s*/?>`)
	between = regexp.MustCompile(`(?i)</?(?:br|div|h[1-6]|li|ol|p|ul)(?:\s+[\w-]+=[^<>]*)?\s*/?>`)
)

// plain returns a text on one line, without tags.
func plain(text string, limit int) string {
	text = html.UnescapeString(between.ReplaceAllString(within.ReplaceAllString(text, ""), " "))
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return wording.Clip(strings.Join(strings.Fields(text), " "), limit)
}

// day returns the day of a date in one of the services' formats; empty for others.
func day(date string) string {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly, time.RFC1123, time.RFC1123Z} {
		if t, err := time.Parse(form, date); err == nil && t.Year() > 0 && t.Year() < 10_000 {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}
