package config

import (
	"fmt"

	"oneclaw/internal/redact"
	"oneclaw/toolgroups/websearch"
)

// webSearchConfig configures the search services. The group web_search exists if one is configured.
type webSearchConfig struct {
	// Order lists the services in the order in which they are tried. Empty means all configured
	// services, in the order of the fields.
	Order []string `yaml:"order" env:"ONECLAW_WEB_SEARCH"`

	BraveKey   redact.Secret `yaml:"brave_key" env:"BRAVE_API_KEY"`
	BraveURL   string        `yaml:"brave_url" env:"BRAVE_API_URL"`
	TavilyKey  redact.Secret `yaml:"tavily_key" env:"TAVILY_API_KEY"`
	TavilyURL  string        `yaml:"tavily_url" env:"TAVILY_API_URL"`
	ExaKey     redact.Secret `yaml:"exa_key" env:"EXA_API_KEY"`
	ExaURL     string        `yaml:"exa_url" env:"EXA_API_URL"`
	SearXNGURL string        `yaml:"searxng_url" env:"SEARXNG_URL"`

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
	}
}

// allServices returns all services, configured or not, in a fixed order.
func (w webSearchConfig) allServices() []websearch.Service {
	return []websearch.Service{
		{Name: websearch.Brave, BaseURL: w.BraveURL, Key: w.BraveKey, USDPerThousand: w.BraveUSD},
		{Name: websearch.Tavily, BaseURL: w.TavilyURL, Key: w.TavilyKey, USDPerThousand: w.TavilyUSD},
		{Name: websearch.Exa, BaseURL: w.ExaURL, Key: w.ExaKey, USDPerThousand: w.ExaUSD},
		{Name: websearch.SearXNG, BaseURL: w.SearXNGURL, USDPerThousand: w.SearXNGUSD},
	}
}

// Services returns the configured services in the order in which they are tried.
func (w webSearchConfig) Services() ([]websearch.Service, error) {
	usable := map[string]websearch.Service{}
	var names, ready []string
	for _, s := range w.allServices() {
		names = append(names, s.Name)
		if s.Key != "" || s.Name == websearch.SearXNG && s.BaseURL != "" {
			usable[s.Name] = s
			ready = append(ready, s.Name)
		}
	}
	if len(w.Order) > 0 {
		ready = w.Order
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

func (c Config) checkWebSearch() error {
	_, err := c.Tools.WebSearch.Services()
	return err
}
