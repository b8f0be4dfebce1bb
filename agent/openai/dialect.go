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

// The dialects. Anthropic's and Google's servers are called at their addresses for OpenAI's request
// format.
const (
	dialectOpenai    Dialect = "openai"
	DialectAnthropic Dialect = "anthropic"
	DialectGemini    Dialect = "gemini"
)

// Hosts and base URLs that Anthropic and Google document for OpenAI's clients:
// platform.claude.com/docs/en/api/openai-sdk, ai.google.dev/gemini-api/docs/openai.
const (
	anthropicHost    = "api.anthropic.com"
	anthropicBaseURL = "https://" + anthropicHost + "/v1"
	geminiHost       = "generativelanguage.googleapis.com"
	geminiBaseURL    = "https://" + geminiHost + "/v1beta/openai"
)

// resolveAddress sets the dialect from the base URL, or the base URL from the dialect, and parses it.
func (cfg *Config) resolveAddress() (*url.URL, error) {
	base := strings.TrimRight(strings.TrimSpace(cfg.BaseURL), "/")
	switch cfg.Dialect {
	case "", dialectOpenai:
		base = cmp.Or(base, DefaultBaseURL)
	case DialectAnthropic:
		base = cmp.Or(base, anthropicBaseURL)
	case DialectGemini:
		base = cmp.Or(base, geminiBaseURL)
	default:
		return nil, fmt.Errorf("openai: the dialect must be %s, %s or %s", dialectOpenai, DialectAnthropic, DialectGemini)
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
	return dialectOpenai
}

// missingPath returns the path to append if the base URL is that of Anthropic's or Google's own API.
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

// cachesOnDemand reports whether a server caches prompts only on request. OpenRouter does so for Claude,
// where it sets a cache breakpoint at the end of the request. Anthropic's own address for OpenAI's
// clients has no cache; the others always cache.
func cachesOnDemand(u *url.URL, model string) bool {
	host := strings.ToLower(u.Hostname())
	return (host == "openrouter.ai" || strings.HasSuffix(host, ".openrouter.ai")) &&
		strings.HasPrefix(strings.ToLower(strings.TrimPrefix(model, "~")), "anthropic/")
}

var (
	// refusesToolsOnChat matches models that refuse tools together with reasoning on Chat Completions:
	// reasoning models from 5.4 on, some of them only if an effort is set.
	refusesToolsOnChat = regexp.MustCompile(`^(ft:)?gpt-(5\.([4-9]|[1-9][0-9])|[6-9]|[1-9][0-9])([.:-]|$)`)
	// responsesOnly matches families that were never offered on Chat Completions.
	responsesOnly = regexp.MustCompile(`^(o[0-9]|gpt-[0-9.]+)-pro\b|codex|deep-research|^computer-use`)
	// reasoningModels matches OpenAI's models that reason, and return encrypted reasoning on request.
	reasoningModels = regexp.MustCompile(`^(ft:)?(o[0-9]|gpt-([5-9]|[1-9][0-9]))([.:-]|$)`)
)

// wantsResponses reports whether to use the Responses API, because the model accepts tools only there.
// Some models are recognized by their full names on any host.
func (c *Client) wantsResponses() bool {
	if c.cfg.API != "" {
		return c.cfg.API == APIResponses
	}
	if c.openAIHosted && (responsesOnly.MatchString(c.cfg.Model) || refusesToolsOnChat.MatchString(c.cfg.Model) && isReasoningModel(c.cfg.Model)) {
		return true
	}
	err := api.NewReasoningValidator().Validate(api.ChatCompletionRequest{
		Model: c.cfg.Model, Tools: []api.Tool{{Type: api.ToolTypeFunction}},
	})
	return errors.Is(err, api.ErrReasoningToolsRequireResponses)
}

// isReasoningModel reports whether a model of OpenAI is a reasoning model.
func isReasoningModel(model string) bool {
	return reasoningModels.MatchString(model) && !strings.Contains(model, "-chat")
}
