package websearch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
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

	// Wikipedia and HackerNews are open sources, which need no key.
	Wikipedia  = "wikipedia"
	HackerNews = "hackernews"
)

// Service is a search service.
type Service struct {
	// Name is the name of the service, such as [Brave].
	Name string
	// BaseURL is the base address of the service's API. Key is the API key; SearXNG and open sources
	// have none.
	BaseURL string
	Key     redact.Secret
	// Contact is how an open source reaches the operator: an address of mail or of a page. It may be empty.
	Contact string
	// USDPerThousand is the price of a thousand searches in dollars.
	USDPerThousand float64
}

// Bounds of a result, in characters.
const (
	maxTitle = 200
	maxText  = 500
	maxURL   = 1000
	maxCode  = 50
)

// protocol describes the API of a service.
type protocol struct {
	displayName, settingName string
	newRequest               func(s Service, q query) (method, path string, body any, headers map[string]string)
	parseResponse            func(data []byte) ([]rawResult, error)
	open                     bool
}

// rawResult is a result as a service returns it.
type rawResult struct{ title, url, date, text string }

func protocols() map[string]protocol {
	return map[string]protocol{
		Brave:      {"Brave Search", "BRAVE_API_KEY", newBraveRequest, parseBrave, false},
		Tavily:     {"Tavily", "TAVILY_API_KEY", newTavilyRequest, parseTavily, false},
		Exa:        {"Exa", "EXA_API_KEY", newExaRequest, parseExa, false},
		SearXNG:    {"SearXNG", "SEARXNG_URL", newSearXNGRequest, parseSearXNG, false},
		Wikipedia:  {"Wikipedia", contactSetting, newWikipediaRequest, parseWikipedia, true},
		HackerNews: {"Hacker News", contactSetting, newHackerNewsRequest, parseHackerNews, true},
	}
}

func (s Service) displayName() string { return protocols()[s.Name].displayName }

// IsOpen reports whether this is an open source: one that anyone may ask without a key, and that knows a
// part of the web only.
func (s Service) IsOpen() bool { return protocols()[s.Name].open }

func (s Service) newRequest(ctx context.Context, q query) (*http.Request, error) {
	method, path, body, headers := protocols()[s.Name].newRequest(s, q)
	text := ""
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the search: %w", err)
		}
		text = string(data)
	}
	headers["Accept"] = "application/json"
	if s.IsOpen() {
		headers["User-Agent"] = s.userAgent()
	}
	return guard.NewRequest(ctx, method, strings.TrimSuffix(s.BaseURL, "/")+path, text, headers)
}

// newBraveRequest follows api-dashboard.search.brave.com/api-reference/web/search/get.
func newBraveRequest(s Service, q query) (method, path string, body any, headers map[string]string) {
	v := url.Values{"q": {q.Text}, "count": {strconv.Itoa(q.Count)}, "text_decorations": {"false"}, "result_filter": {"web"}}
	if q.Since != "" {
		v.Set("freshness", "p"+q.Since[:1])
	}
	return http.MethodGet, "/res/v1/web/search?" + v.Encode(), nil, map[string]string{"X-Subscription-Token": string(s.Key)}
}

func parseBrave(data []byte) ([]rawResult, error) {
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
	var out []rawResult
	if r.Web != nil { // missing if there are no results
		for _, p := range r.Web.Results {
			out = append(out, rawResult{p.Title, p.URL, p.PageAge, p.Description})
		}
	}
	return out, nil
}

// newTavilyRequest follows docs.tavily.com/documentation/api-reference/endpoint/search.
func newTavilyRequest(s Service, q query) (method, path string, body any, headers map[string]string) {
	b := map[string]any{"query": q.Text, "max_results": q.Count, "search_depth": "basic"}
	if q.Since != "" {
		b["time_range"] = q.Since
	}
	return http.MethodPost, "/search", b, map[string]string{"Authorization": "Bearer " + string(s.Key)}
}

func parseTavily(data []byte) ([]rawResult, error) {
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
	var out []rawResult
	for _, p := range *r.Results {
		out = append(out, rawResult{p.Title, p.URL, p.Date, p.Content})
	}
	return out, nil
}

// newExaRequest follows exa.ai/docs/reference/search. The price of a search includes highlights.
func newExaRequest(s Service, q query) (method, path string, body any, headers map[string]string) {
	b := map[string]any{"query": q.Text, "numResults": q.Count, "type": "auto", "contents": map[string]any{"highlights": true}}
	if q.Since != "" {
		b["startPublishedDate"] = q.publishedAfter().UTC().Format(time.RFC3339)
	}
	return http.MethodPost, "/search", b, map[string]string{"x-api-key": string(s.Key)}
}

// publishedAfter returns the earliest time of publication that the query allows.
func (q query) publishedAfter() time.Time {
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

func parseExa(data []byte) ([]rawResult, error) {
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
	var out []rawResult
	for _, p := range *r.Results {
		out = append(out, rawResult{p.Title, p.URL, p.Date, strings.Join(p.Highlights, " … ")})
	}
	return out, nil
}

// newSearXNGRequest follows docs.searxng.org/dev/search_api, which has no parameter for the number
// of results.
func newSearXNGRequest(_ Service, q query) (method, path string, body any, headers map[string]string) {
	v := url.Values{"q": {q.Text}, "format": {"json"}}
	if q.Since != "" {
		v.Set("time_range", q.Since)
	}
	return http.MethodGet, "/search?" + v.Encode(), nil, map[string]string{}
}

func parseSearXNG(data []byte) ([]rawResult, error) {
	var r struct {
		Results *[]struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
			Date    string `json:"publishedDate"`
		} `json:"results"`
		// Unresponsive has a pair for each engine that failed: its name and the reason.
		Unresponsive []json.RawMessage `json:"unresponsive_engines"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Results == nil {
		return nil, errResponseFormat
	}
	if n := len(r.Unresponsive); len(*r.Results) == 0 && n > 0 {
		return nil, incompleteError(n)
	}
	var out []rawResult
	for _, p := range *r.Results {
		out = append(out, rawResult{p.Title, p.URL, p.Date, p.Content})
	}
	return out, nil
}

// contactSetting is the setting with [Service.Contact].
const contactSetting = "ONECLAW_WEB_SEARCH_CONTACT"

// userAgent names the program and how its operator is reached, as Wikimedia demands
// (foundation.wikimedia.org/wiki/Policy:Wikimedia_Foundation_User-Agent_Policy).
func (s Service) userAgent() string {
	about := "self-hosted chat bot"
	if s.Contact != "" {
		about += "; " + s.Contact
	}
	return "OneClaw/1.0 (" + about + ")"
}

// maxWikipediaQuery bounds a query, in characters (MAX_TEXT_SEARCH in includes/Searcher.php of
// wikimedia/mediawiki-extensions-CirrusSearch).
const maxWikipediaQuery = 300

// newWikipediaRequest follows mediawiki.org/wiki/API:Search (as a generator, so that one request also
// has the addresses, API:Info, and the beginnings, Extension:TextExtracts, of the pages). It has no
// maxlag: mediawiki.org/wiki/Manual:Maxlag_parameter says that tasks for which a person waits may
// omit it.
func newWikipediaRequest(_ Service, q query) (method, path string, body any, headers map[string]string) {
	v := url.Values{
		"action": {"query"}, "format": {"json"}, "formatversion": {"2"},
		"generator": {"search"}, "gsrsearch": {wording.Clip(q.Text, maxWikipediaQuery)}, "gsrlimit": {strconv.Itoa(q.Count)},
		"prop": {"info|extracts"}, "inprop": {"url"}, "exintro": {"1"}, "explaintext": {"1"}, "exchars": {strconv.Itoa(maxText)}, "exlimit": {"max"},
	}
	return http.MethodGet, "/w/api.php?" + v.Encode(), nil, map[string]string{}
}

// parseWikipedia reads a response. Refusals, such as maxlag, also have the status 200
// (mediawiki.org/wiki/API:Errors_and_warnings).
func parseWikipedia(data []byte) ([]rawResult, error) {
	type page struct {
		Index   int    `json:"index"` // its rank; the pages are in another order
		Title   string `json:"title"`
		URL     string `json:"fullurl"`
		Extract string `json:"extract"`
	}
	var r struct {
		Error *struct {
			Code string `json:"code"`
		} `json:"error"`
		Complete bool `json:"batchcomplete"`
		Query    *struct {
			Pages []page `json:"pages"`
		} `json:"query"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Error == nil && r.Query == nil && !r.Complete {
		return nil, errResponseFormat
	}
	if r.Error != nil {
		if r.Error.Code == "maxlag" {
			return nil, errors.New("it is overloaded (maxlag)")
		}
		return nil, fmt.Errorf("it does not take this search (%s)", plainText(r.Error.Code, maxCode))
	}
	if r.Query == nil { // missing if there are no results
		return nil, nil
	}
	slices.SortStableFunc(r.Query.Pages, func(a, b page) int { return cmp.Compare(a.Index, b.Index) })
	var out []rawResult
	for _, p := range r.Query.Pages {
		out = append(out, rawResult{p.Title, p.URL, "", p.Extract})
	}
	return out, nil
}

// newHackerNewsRequest follows hn.algolia.com/api, which allows 10,000 requests an hour from an address.
func newHackerNewsRequest(_ Service, q query) (method, path string, body any, headers map[string]string) {
	v := url.Values{"query": {q.Text}, "tags": {"story"}, "hitsPerPage": {strconv.Itoa(q.Count)}}
	if q.Since != "" {
		v.Set("numericFilters", "created_at_i>"+strconv.FormatInt(q.publishedAfter().Unix(), 10))
	}
	return http.MethodGet, "/api/v1/search?" + v.Encode(), nil, map[string]string{}
}

func parseHackerNews(data []byte) ([]rawResult, error) {
	var r struct {
		Hits *[]struct {
			ID       string `json:"objectID"`
			Title    string `json:"title"`
			URL      string `json:"url"` // of the page that it is about; missing if it has a text instead
			Text     string `json:"story_text"`
			Date     string `json:"created_at"`
			Points   int    `json:"points"`
			Comments int    `json:"num_comments"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Hits == nil {
		return nil, errResponseFormat
	}
	var out []rawResult
	for _, h := range *r.Hits {
		discussion := "https://news.ycombinator.com/item?id=" + url.QueryEscape(h.ID)
		text := fmt.Sprintf("%d points and %d comments at %s", h.Points, h.Comments, discussion)
		if h.Text != "" {
			text = h.Text
		}
		out = append(out, rawResult{h.Title, cmp.Or(h.URL, discussion), h.Date, text})
	}
	return out, nil
}

// incompleteError means that nothing was found, and that so many of the service's engines did not answer.
// Others may have answered.
type incompleteError int

func (e incompleteError) Error() string {
	return fmt.Sprintf("it found nothing, and %d of its search engines did not answer", int(e))
}

var errResponseFormat = errors.New("the response does not have the documented format")

// requestError returns the error to show for a failed request. For a blocked address it says how an
// administrator can allow it.
func (s Service) requestError(err error) error {
	if errors.Is(err, guard.ErrAddress) {
		return fmt.Errorf("%w; an administrator can open its range with tools.allow_private", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

// parseReply parses a response. It does not trust the service: it drops results without a public web
// address, and shortens long values.
func (s Service) parseReply(reply guard.Reply, q query) ([]searchResult, error) {
	if reply.StatusCode != http.StatusOK {
		// Brave refuses a wrong key with the status of an invalid search.
		if bytes.Contains(reply.Data, []byte("SUBSCRIPTION_TOKEN_INVALID")) {
			return nil, s.statusError(http.StatusUnauthorized)
		}
		return nil, s.statusError(reply.StatusCode)
	}
	if reply.Truncated {
		return nil, fmt.Errorf("the response is larger than %d MiB", maxReply>>20)
	}
	all, err := protocols()[s.Name].parseResponse(reply.Data)
	if err != nil {
		return nil, err
	}
	var pages []searchResult
	known := map[string]bool{}
	for _, f := range all {
		address, ok := cleanAddress(f.url)
		if !ok || known[address] || len(pages) == q.Count {
			continue
		}
		known[address] = true
		title := plainText(f.title, maxTitle)
		if title == "" {
			title = address
		}
		pages = append(pages, searchResult{title, address, formatDate(f.date), plainText(f.text, maxText)})
	}
	if len(pages) == 0 && len(all) > 0 {
		return nil, errors.New("none of the results has a public web address")
	}
	return pages, nil
}

// statusError returns the error for an HTTP status.
func (s Service) statusError(status int) error {
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("it does not accept the key; an administrator has to set %s", protocols()[s.Name].settingName)
	case http.StatusForbidden:
		if s.Name == SearXNG {
			return fmt.Errorf("it does not answer in JSON (HTTP %d); json has to be among its search.formats", status)
		}
		return fmt.Errorf("it does not allow this (HTTP %d); an administrator has to look at %s", status, protocols()[s.Name].settingName)
	case http.StatusPaymentRequired, statusPlanUsed, statusLimitReached:
		return fmt.Errorf("its plan is used up (HTTP %d)", status)
	case http.StatusTooManyRequests:
		return fmt.Errorf("it has had too many searches (HTTP %d)", status)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return fmt.Errorf("it does not take this search (HTTP %d)", status)
	}
	return fmt.Errorf("it answered HTTP %d", status)
}

// Tavily's HTTP statuses for a used-up plan and a reached pay-as-you-go limit.
const (
	statusPlanUsed     = 432
	statusLimitReached = 433
)

// cleanAddress returns a web address in a form that is safe in a text. It returns false for an
// address that is not on the public web.
func cleanAddress(text string) (string, bool) {
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

// isInternalHost reports whether a host is localhost or an address that is not public.
func isInternalHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return strings.EqualFold(host, "localhost")
	}
	return !ip.IsGlobalUnicast() || ip.IsPrivate()
}

// HTML tags that services leave in texts. Only known tags are removed, because titles may contain
// text that looks like a tag, such as vector<int>.
var (
	inlineTag = regexp.MustCompile(`(?i)</?(?:a|b|code|em|i|mark|span|strong|u|wbr)(?:\s+[\w-]+=[^<>]*)?\s*/?>`)
	blockTag  = regexp.MustCompile(`(?i)</?(?:br|div|h[1-6]|li|ol|p|ul)(?:\s+[\w-]+=[^<>]*)?\s*/?>`)
)

// plainText returns a text on one line without HTML tags, of at most limit characters.
func plainText(text string, limit int) string {
	text = html.UnescapeString(blockTag.ReplaceAllString(inlineTag.ReplaceAllString(text, ""), " "))
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

// formatDate returns the day of a date in one of the services' formats, "" for other formats.
func formatDate(date string) string {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly, time.RFC1123, time.RFC1123Z} {
		if t, err := time.Parse(form, date); err == nil && t.Year() > 0 && t.Year() < 10_000 {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}
