package config

import (
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups/websearch"
)

// webSearchConfig configures the search services. Without any, the open sources are asked, which need no key.
type webSearchConfig struct {
	// Order lists the services in the order in which they are tried. Empty means all configured
	// services, in the order of the fields, or else the open sources. A lone [searchOff] means none, and
	// then there is no group web_search.
	Order []string `yaml:"order" env:"ONECLAW_WEB_SEARCH"`

	BraveKey   redact.Secret `yaml:"brave_key" env:"BRAVE_API_KEY"`
	BraveURL   string        `yaml:"brave_url" env:"BRAVE_API_URL"`
	TavilyKey  redact.Secret `yaml:"tavily_key" env:"TAVILY_API_KEY"`
	TavilyURL  string        `yaml:"tavily_url" env:"TAVILY_API_URL"`
	ExaKey     redact.Secret `yaml:"exa_key" env:"EXA_API_KEY"`
	ExaURL     string        `yaml:"exa_url" env:"EXA_API_URL"`
	SearXNGURL string        `yaml:"searxng_url" env:"SEARXNG_URL"`

	// Addresses of the open sources, and how they reach the operator.
	WikipediaURL  string `yaml:"wikipedia_url" env:"WIKIPEDIA_URL"`
	HackerNewsURL string `yaml:"hackernews_url" env:"HACKER_NEWS_URL"`
	Contact       string `yaml:"contact" env:"ONECLAW_WEB_SEARCH_CONTACT"`

	// Prices of a thousand searches, in dollars.
	BraveUSD   float64 `yaml:"brave_usd_per_1000" env:"ONECLAW_BRAVE_USD_PER_1000"`
	TavilyUSD  float64 `yaml:"tavily_usd_per_1000" env:"ONECLAW_TAVILY_USD_PER_1000"`
	ExaUSD     float64 `yaml:"exa_usd_per_1000" env:"ONECLAW_EXA_USD_PER_1000"`
	SearXNGUSD float64 `yaml:"searxng_usd_per_1000" env:"ONECLAW_SEARXNG_USD_PER_1000"`
}

// defaultWebSearch has the addresses of the services and their list prices of 2026-11: Brave's
// plan Search, a basic search of Tavily pay-as-you-go, and Exa with highlights
// (brave.com/search/api, tavily.com/pricing, exa.ai/docs/admin/pricing).
func defaultWebSearch() webSearchConfig {
	return webSearchConfig{
		BraveURL: "https://api.search.brave.com", BraveUSD: 5,
		TavilyURL: "https://api.tavily.com", TavilyUSD: 8,
		ExaURL: "https://api.exa.ai", ExaUSD: 7,
		WikipediaURL: "https://en.wikipedia.org", HackerNewsURL: "https://hn.algolia.com",
	}
}

// searchOff as the only entry of Order switches web search off.
const searchOff = "off"

// allServices returns all services, configured or not, in a fixed order.
func (w webSearchConfig) allServices() []websearch.Service {
	return []websearch.Service{
		{Name: websearch.Brave, BaseURL: w.BraveURL, Key: w.BraveKey, USDPerThousand: w.BraveUSD},
		{Name: websearch.Tavily, BaseURL: w.TavilyURL, Key: w.TavilyKey, USDPerThousand: w.TavilyUSD},
		{Name: websearch.Exa, BaseURL: w.ExaURL, Key: w.ExaKey, USDPerThousand: w.ExaUSD},
		{Name: websearch.SearXNG, BaseURL: w.SearXNGURL, USDPerThousand: w.SearXNGUSD},
		{Name: websearch.Wikipedia, BaseURL: w.WikipediaURL, Contact: w.Contact},
		{Name: websearch.HackerNews, BaseURL: w.HackerNewsURL, Contact: w.Contact},
	}
}

// Services returns the services in the order in which they are tried: the configured ones, or else the
// open sources.
func (w webSearchConfig) Services() ([]websearch.Service, error) {
	if slices.Equal(w.Order, []string{searchOff}) {
		return nil, nil
	}
	usable := map[string]websearch.Service{}
	var names, ready, open []string
	for _, s := range w.allServices() {
		names = append(names, s.Name)
		switch {
		case s.IsOpen():
			open = append(open, s.Name)
		case s.Key != "" || s.Name == websearch.SearXNG && s.BaseURL != "":
			ready = append(ready, s.Name)
		default:
			continue
		}
		usable[s.Name] = s
	}
	switch {
	case len(w.Order) > 0:
		ready = w.Order
	case len(ready) == 0:
		ready = open
	}
	var services []websearch.Service
	for _, name := range ready {
		s, ok := usable[name]
		if !ok {
			return nil, fmt.Errorf("setting tools.web_search.order (ONECLAW_WEB_SEARCH): %q is none of %q that has a key (BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY) or an address (SEARXNG_URL), or stands there twice", name, names)
		}
		delete(usable, name)
		services = append(services, s)
	}
	return services, nil
}

// UsesOnlyOpenSources reports whether searches ask no service but those that need no key.
func (w webSearchConfig) UsesOnlyOpenSources() bool {
	services, err := w.Services()
	return err == nil && !slices.ContainsFunc(services, func(s websearch.Service) bool { return !s.IsOpen() })
}

// maxContact bounds the contact, in bytes.
const maxContact = 200

// checkWebSearch checks the services, and that the contact fits into a header.
func (c Config) checkWebSearch() error {
	contact := c.Tools.WebSearch.Contact
	if len(contact) > maxContact || strings.ContainsFunc(contact, func(r rune) bool { return r < ' ' || r > '~' || r == '(' || r == ')' }) {
		return fmt.Errorf("setting tools.web_search.contact (ONECLAW_WEB_SEARCH_CONTACT): want an address of mail or of a page, of at most %d characters", maxContact)
	}
	_, err := c.Tools.WebSearch.Services()
	return err
}
