package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	api "github.com/sashabaranov/go-openai"
)

// Dialect says whose peculiarities a server has.
type Dialect string

// The dialects. The servers of Anthropic and Google are spoken to at the addresses
// where they take OpenAI's requests.
const (
	DialectOpenAI    Dialect = "openai"
	DialectAnthropic Dialect = "anthropic"
	DialectGemini    Dialect = "gemini"
)

// Hosts and base URLs, as the makers document them for OpenAI's clients:
// platform.claude.com/docs/en/api/openai-sdk, ai.google.dev/gemini-api/docs/openai.
const (
	anthropicHost    = "api.anthropic.com"
	anthropicBaseURL = "https://" + anthropicHost + "/v1"
	geminiHost       = "generativelanguage.googleapis.com"
	geminiBaseURL    = "https://" + geminiHost + "/v1beta/openai"
)

// address sets the base URL and the dialect from each other.
func (cfg *Config) address() (*url.URL, error) {
	base := strings.TrimRight(strings.TrimSpace(cfg.BaseURL), "/")
	switch cfg.Dialect {
	case "", DialectOpenAI:
		base = cmp.Or(base, DefaultBaseURL)
	case DialectAnthropic:
		base = cmp.Or(base, anthropicBaseURL)
	case DialectGemini:
		base = cmp.Or(base, geminiBaseURL)
	default:
		return nil, fmt.Errorf("openai: the dialect must be %s, %s or %s", DialectOpenAI, DialectAnthropic, DialectGemini)
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("openai: the base URL must look like https://host/v1")
	}
	if cfg.Dialect == "" {
		cfg.Dialect = dialectOf(u.Hostname())
	}
	cfg.BaseURL = base + missingPath(cfg.Dialect, u.Path)
	return u, nil
}

func dialectOf(host string) Dialect {
	switch strings.ToLower(host) {
	case anthropicHost:
		return DialectAnthropic
	case geminiHost:
		return DialectGemini
	}
	return DialectOpenAI
}

// missingPath completes the addresses that people know from the makers' own APIs.
func missingPath(d Dialect, path string) string {
	switch path = strings.TrimRight(path, "/"); {
	case d == DialectAnthropic && path == "":
		return "/v1"
	case d == DialectGemini && path == "":
		return "/v1beta/openai"
	case d == DialectGemini && (path == "/v1beta" || path == "/v1"):
		return "/openai"
	}
	return ""
}

func hostedByOpenAI(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return host == "openai.com" || strings.HasSuffix(host, ".openai.com")
}

// cachesOnDemand reports whether a server caches prompts only when a request asks for it.
// OpenRouter does for Claude: it then marks the end of the request. Anthropic's own address
// for OpenAI's clients has no cache, and the others need not be asked.
func cachesOnDemand(u *url.URL, model string) bool {
	host := strings.ToLower(u.Hostname())
	return (host == "openrouter.ai" || strings.HasSuffix(host, ".openrouter.ai")) &&
		strings.HasPrefix(strings.ToLower(strings.TrimPrefix(model, "~")), "anthropic/")
}

var (
	// later are the models that refuse tools beside reasoning over Chat Completions: those
	// from 5.4 on, if they reason, some with an effort alone and some always.
	later = regexp.MustCompile(`^(ft:)?gpt-(5\.([4-9]|[1-9][0-9])|[6-9]|[1-9][0-9])([.:-]|$)`)
	// responsesOnly are families that never were on Chat Completions.
	responsesOnly = regexp.MustCompile(`^(o[0-9]|gpt-[0-9.]+)-pro\b|codex|deep-research|^computer-use`)
	// reasoners are the models that reason, and return it encrypted if asked to.
	reasoners = regexp.MustCompile(`^(ft:)?(o[0-9]|gpt-([5-9]|[1-9][0-9]))([.:-]|$)`)
)

// wantsResponses decides whether the Responses API is spoken: where a model takes tools
// over that one alone. Some are known by their whole names wherever they are hosted.
func (c *Client) wantsResponses() bool {
	if c.cfg.API != "" {
		return c.cfg.API == APIResponses
	}
	if c.hosted && (responsesOnly.MatchString(c.cfg.Model) || later.MatchString(c.cfg.Model) && reasons(c.cfg.Model)) {
		return true
	}
	err := api.NewReasoningValidator().Validate(api.ChatCompletionRequest{
		Model: c.cfg.Model, Tools: []api.Tool{{Type: api.ToolTypeFunction}},
	})
	return errors.Is(err, api.ErrReasoningToolsRequireResponses)
}

// reasons reports whether a model of OpenAI reasons.
func reasons(model string) bool {
	return reasoners.MatchString(model) && !strings.Contains(model, "-chat")
}
