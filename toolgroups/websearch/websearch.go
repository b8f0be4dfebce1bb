// Package websearch searches the web with the configured services: Brave, Tavily, Exa or a SearXNG
// server. If a service fails, the next one is tried.
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
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/internal/guard"
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
	return &Search{cfg: cfg, client: guard.NewClient(guard.Config{AllowPrivate: cfg.AllowPrivate, Resolver: cfg.Resolver})}, nil
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

// search tries one service after the other until one answers.
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
	var failures []string
	incomplete := false
	for _, service := range s.cfg.Services {
		pages, err := s.searchWith(ctx, call.Scope, service, q)
		switch {
		case err == nil:
			return formatResult(service, q, pages), nil
		case ctx.Err() != nil:
			return toolgroups.Result{}, ctx.Err()
		}
		if fault, ok := errors.AsType[*toolgroups.Error](err); ok {
			return toolgroups.Result{}, fault
		}
		if _, ok := errors.AsType[incompleteError](err); ok {
			incomplete = true // even a service in order often has an engine that does not answer
		} else {
			s.cfg.Logger.Warn("a search service failed", "service", service.Name, "err", err)
		}
		failures = append(failures, fmt.Sprintf("%s: %v", service.displayName(), err))
	}
	if incomplete {
		return toolgroups.TextResult("Nothing was found for %q (%s). Try other words, or a longer time; or the search can be tried again later.", q.Text, strings.Join(failures, "; "))
	}
	return toolgroups.Result{}, toolgroups.Errorf(CodeUnavailable,
		"The web cannot be searched now (%s). Tell the user so; the search can be tried again later.", strings.Join(failures, "; "))
}

// searchWith searches with one service, and charges for the search. It also charges after a timeout or
// if ctx has ended, because the service may have done so.
func (s *Search) searchWith(ctx context.Context, scope toolgroups.Scope, service Service, q query) (pages []searchResult, err error) {
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
	return service.parseReply(reply, q)
}

// formatResult formats the results for the model.
func formatResult(service Service, q query, pages []searchResult) toolgroups.Result {
	if len(pages) == 0 {
		return toolgroups.Result{Text: fmt.Sprintf("%s found nothing for %q. Try other words, or a longer time.", service.displayName(), q.Text)}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Found by %s for %q:\n", service.displayName(), q.Text)
	r := toolgroups.Result{}
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
	r.Text = b.String()
	return r
}
