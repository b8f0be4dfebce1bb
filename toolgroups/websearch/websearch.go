// Package websearch searches the web with the configured services: Brave, Tavily, Exa or a SearXNG
// server. If a service fails, the next one is tried. Without any, it asks open sources, which need no
// key: Wikipedia and Hacker News.
package websearch

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"oneclaw/internal/guard"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Error codes of search_web.
const (
	CodeUnavailable = "search_unavailable"
	CodeBudget      = "no_budget"
)

// Bounds of a search.
const (
	defaultCount = 5
	maxCount     = 10
	// maxQuery (in characters) and maxWords are the limits of the strictest service.
	maxQuery = 400
	maxWords = 50
	// serviceTimeout bounds a request to one service.
	serviceTimeout = 12 * time.Second
	// maxReply bounds the bytes that are read from a response.
	maxReply = 2 << 20
	// maxRest bounds how long a service is left alone that asks for it (Retry-After).
	maxRest = time.Hour
)

//go:embed web_search.json
var manifests embed.FS

// Config configures a [Search].
type Config struct {
	// Services are tried in this order.
	Services []Service
	// AllowPrivate are ranges of addresses that may be reached although they are not public.
	AllowPrivate []netip.Prefix
	// Resolver looks up host names. Nil means the host's.
	Resolver *net.Resolver
	// ReserveCost reserves the cost of a search. settle is called after the search. The model gets the
	// text of an error. Nil means that nothing is charged.
	ReserveCost func(ctx context.Context, scope toolgroups.Scope, dollars float64) (settle func(incurred bool), err error)
	// Now returns the current time. Required.
	Now func() time.Time
	// Logger may be nil.
	Logger *slog.Logger
}

// Search holds the tool search_web.
type Search struct {
	cfg    Config
	client *http.Client

	mu sync.Mutex
	// resting has the time until which a service is not asked, by name.
	resting map[string]time.Time
}

// New makes a search. It checks the configuration, but contacts no service.
func New(cfg Config) (*Search, error) {
	if len(cfg.Services) == 0 || cfg.Now == nil {
		return nil, errors.New("websearch: Services and Now are required")
	}
	for _, s := range cfg.Services {
		if _, ok := protocols()[s.Name]; !ok {
			return nil, fmt.Errorf("websearch: there is no service %q", s.Name)
		}
	}
	if cfg.ReserveCost == nil {
		cfg.ReserveCost = func(context.Context, toolgroups.Scope, float64) (func(bool), error) { return func(bool) {}, nil }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	client := guard.NewClient(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver})
	return &Search{cfg: cfg, client: client, resting: map[string]time.Time{}}, nil
}

// Group returns the group web_search.
func (s *Search) Group() (toolgroups.Group, error) {
	return toolgroups.ReadGroup(manifests, "web_search", map[string]toolgroups.Handler{"search_web": toolgroups.TypedHandler(s.search)})
}

// query has the arguments of search_web, and the current time.
type query struct {
	Text  string `json:"query"`
	Count int    `json:"count"`
	Since string `json:"since"`
	now   time.Time
}

// searchResult is a result with safe and shortened values.
type searchResult struct {
	title, url, date, text string
}

// answer has what a service found.
type answer struct {
	service Service
	pages   []searchResult
}

// search tries one service after the other until one answers, or open sources that follow each other.
func (s *Search) search(ctx context.Context, call toolgroups.Call, q query) (toolgroups.Result, error) {
	q.Text = strings.Join(strings.Fields(q.Text), " ")
	q.Count = min(cmp.Or(max(q.Count, 0), defaultCount), maxCount)
	q.now = s.cfg.Now()
	switch n, words := utf8.RuneCountInString(q.Text), len(strings.Fields(q.Text)); {
	case n == 0:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'query' is empty. Say what to look for.")
	case n > maxQuery || words > maxWords:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid,
			"'query' has %d characters and %d words; at most %d and %d are searched for. Use fewer words.", n, words, maxQuery, maxWords)
	}
	var found []answer
	var failures []string
	incomplete := false
	for _, service := range s.cfg.Services {
		if len(found) > 0 && !service.IsOpen() {
			break
		}
		pages, err := s.searchWith(ctx, call.Scope, service, q)
		switch {
		case err == nil:
			if found = append(found, answer{service, pages}); !service.IsOpen() {
				return formatResult(q, found, nil), nil
			}
			continue
		case ctx.Err() != nil:
			return toolgroups.Result{}, ctx.Err()
		}
		if fault, ok := errors.AsType[*toolgroups.Error](err); ok {
			return toolgroups.Result{}, fault
		}
		if _, ok := errors.AsType[incompleteError](err); ok {
			incomplete = true // even a service in order often has an engine that does not answer
		} else if _, ok := errors.AsType[notAskedError](err); !ok {
			s.cfg.Logger.Warn("a search service failed", "service", service.Name, "err", err)
		}
		failures = append(failures, fmt.Sprintf("%s: %v", service.displayName(), err))
	}
	if len(found) > 0 {
		return formatResult(q, found, failures), nil
	}
	if incomplete {
		return toolgroups.TextResult("Nothing was found for %q (%s). Try other words, or a longer time; or the search can be tried again later.", q.Text, strings.Join(failures, "; "))
	}
	return toolgroups.Result{}, toolgroups.Errorf(CodeUnavailable,
		"The web cannot be searched now (%s). Tell the user so; the search can be tried again later.%s", strings.Join(failures, "; "), s.offer())
}

// offer tells how the whole web can be searched, if only open sources are configured.
func (s *Search) offer() string {
	if slices.ContainsFunc(s.cfg.Services, func(service Service) bool { return !service.IsOpen() }) {
		return ""
	}
	return " " + keyOffer
}

// keyOffer tells the model what a person can do about open sources.
const keyOffer = "For a search of the whole web, an administrator can set BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY or SEARXNG_URL: say so if it matters."

// notAskedError tells why a service was not asked, which is no failure.
type notAskedError string

func (e notAskedError) Error() string { return string(e) }

// checkAskable returns a [notAskedError] if a service must not be asked now, or cannot answer.
func (s *Search) checkAskable(service Service, q query) error {
	if service.Name == Wikipedia && q.Since != "" {
		return notAskedError("not asked, since its pages have no day of publication")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := s.resting[service.Name].Sub(q.now); wait > 0 {
		return notAskedError("not asked, since it wants a pause for another " + wording.DurationInWords(wait))
	}
	return nil
}

// rest leaves a service alone for as long as its response asks for.
func (s *Search) rest(service Service, q query, header http.Header, err error) error {
	wait, ok := retry.After(header, q.now)
	if !ok || wait <= 0 {
		return err
	}
	wait = min(wait, maxRest)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resting[service.Name] = q.now.Add(wait)
	return fmt.Errorf("%w; it wants a pause of %s", err, wording.DurationInWords(wait))
}

// searchWith searches with one service, and charges for the search. It also charges after a timeout or
// if ctx has ended, because the service may have done so.
func (s *Search) searchWith(ctx context.Context, scope toolgroups.Scope, service Service, q query) (pages []searchResult, err error) {
	if err := s.checkAskable(service, q); err != nil {
		return nil, err
	}
	settle := func(bool) {}
	if service.USDPerThousand > 0 {
		settle, err = s.cfg.ReserveCost(ctx, scope, service.USDPerThousand/1000)
		if err != nil {
			return nil, toolgroups.Errorf(CodeBudget, "No search was made: %v", err)
		}
	}
	incurred := false
	defer func() { settle(incurred) }()
	limited, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	req, err := service.newRequest(limited, q)
	if err != nil {
		return nil, err
	}
	// SearXNG redirects a query such as "!!x words" to any of thousands of sites.
	isService := func(host string) bool { return host == strings.ToLower(req.URL.Hostname()) }
	reply, err := guard.Fetch(s.client, req.WithContext(guard.WithHosts(limited, isService)), maxReply)
	incurred = err == nil && reply.StatusCode == http.StatusOK || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if err != nil {
		return nil, service.requestError(err)
	}
	if pages, err = service.parseReply(reply, q); err != nil {
		return nil, s.rest(service, q, reply.Header, err)
	}
	return pages, nil
}

// formatResult formats what was found for the model: the best of each service first. Of open sources it
// says that they are not the whole web, and which of them were not searched.
func formatResult(q query, found []answer, failures []string) toolgroups.Result {
	var names []string
	var pages []searchResult
	for _, a := range found {
		names = append(names, a.service.displayName())
	}
	for rank := range q.Count {
		for _, a := range found {
			if rank < len(a.pages) && len(pages) < q.Count {
				pages = append(pages, a.pages[rank])
			}
		}
	}
	var b strings.Builder
	r := toolgroups.Result{}
	if who := strings.Join(names, " and "); len(pages) == 0 {
		fmt.Fprintf(&b, "%s found nothing for %q. Try other words, or a longer time.", who, q.Text)
	} else {
		fmt.Fprintf(&b, "Found by %s for %q:\n", who, q.Text)
	}
	for i, p := range pages {
		fmt.Fprintf(&b, "\n%d. %s\n%s\n", i+1, p.title, p.url)
		if p.date != "" {
			b.WriteString(p.date + "\n")
		}
		if p.text != "" {
			b.WriteString(p.text + "\n")
		}
		r.Sources = append(r.Sources, toolgroups.Source{Title: p.title, URL: p.url})
	}
	if len(found) > 0 && found[0].service.IsOpen() {
		b.WriteString("\n\nNothing else was searched")
		if len(failures) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(failures, "; "))
		}
		b.WriteString(". " + keyOffer)
	}
	r.Text = b.String()
	return r
}
