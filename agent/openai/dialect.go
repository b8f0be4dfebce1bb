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

// Dialect is a server's variant of the API.
type Dialect string

// The dialects. The servers of Anthropic and Google are called at the addresses where they accept
// OpenAI's requests.
const (
	DialectOpenAI    Dialect = "openai"
	DialectAnthropic Dialect = "anthropic"
	DialectGemini    Dialect = "gemini"
)

// Hosts and base URLs that the makers document for OpenAI's clients:
// platform.claude.com/docs/en/api/openai-sdk, ai.google.dev/gemini-api/docs/openai.
const (
	anthropicHost    = "api.anthropic.com"
	anthropicBaseURL = "https://" + anthropicHost + "/v1"
	geminiHost       = "generativelanguage.googleapis.com"
	geminiBaseURL    = "https://" + geminiHost + "/v1beta/openai"
)

// address derives the base URL and the dialect from each other.
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

// missingPath returns what the base URLs of the makers' own APIs lack.
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

// cachesOnDemand reports whether a server caches prompts only if a request asks for it. OpenRouter does
// for Claude: it then marks the end of the request. Anthropic's own address for OpenAI's clients has no
// cache; the others cache without being asked.
func cachesOnDemand(u *url.URL, model string) bool {
	host := strings.ToLower(u.Hostname())
	return (host == "openrouter.ai" || strings.HasSuffix(host, ".openrouter.ai")) &&
		strings.HasPrefix(strings.ToLower(strings.TrimPrefix(model, "~")), "anthropic/")
}

var (
	// refusesToolsOnChat matches the models that refuse tools together with reasoning over Chat Completions: from
	// 5.4 on, if they reason, some only with an effort and some always.
	refusesToolsOnChat = regexp.MustCompile(`^(ft:)?gpt-(5\.([4-9]|[1-9][0-9])|[6-9]|[1-9][0-9])([.:-]|$)`)
	// responsesOnly matches families that were never on Chat Completions.
	responsesOnly = regexp.MustCompile(`^(o[0-9]|gpt-[0-9.]+)-pro\b|codex|deep-research|^computer-use`)
	// reasoners matches the models that reason, and return it encrypted if asked to.
	reasoners = regexp.MustCompile(`^(ft:)?(o[0-9]|gpt-([5-9]|[1-9][0-9]))([.:-]|$)`)
)

// wantsResponses reports whether to use the Responses API: if the model takes tools only there. Some
// models are recognized by their full names on any host.
func (c *Client) wantsResponses() bool {
	if c.cfg.API != "" {
		return c.cfg.API == APIResponses
	}
	if c.hosted && (responsesOnly.MatchString(c.cfg.Model) || refusesToolsOnChat.MatchString(c.cfg.Model) && reasons(c.cfg.Model)) {
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
