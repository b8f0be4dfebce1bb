package openai

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"oneclaw/agent/provider"
)

// quirks are a server's deviations from the API. They follow from its address or the model's name, or
// are learned from refusals.
type quirks struct {
	// responses: use the Responses API.
	responses bool
	// ids is the required form of call ids; unique: each may occur only once.
	ids    provider.IDRule
	unique bool
	// keeps: reasoning goes back in all later requests, with a placeholder if there is none. drops:
	// none ever goes back.
	keeps, drops bool
	// signs: calls of other models need a stand-in for a signature. details: the same for OpenRouter.
	signs, details bool
	// bridge: a reply has to stand between a result and a user message.
	bridge bool
	// noUsage: the server does not know stream_options.
	noUsage bool
	// noEffort: the server has refused a reasoning effort.
	noEffort bool
	// blind: the server has refused pictures.
	blind bool
}

var (
	// mistrals matches the families of Mistral, on any host.
	mistrals = regexp.MustCompile(`(^|/)(labs-|open-)?(mistral|mixtral|magistral|ministral|devstral|codestral|pixtral)`)
	// geminiSigned matches the generations of Gemini that sign their calls.
	geminiSigned = regexp.MustCompile(`(^|/)gemini-([3-9]|[1-9][0-9])`)
)

// quirksOf returns the quirks that follow from an address and the name of a model.
func quirksOf(u *url.URL, cfg Config) quirks {
	host, model := strings.ToLower(u.Hostname()), strings.ToLower(cfg.Model)
	at := func(domains ...string) bool {
		return slices.ContainsFunc(domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
	}
	q := quirks{
		keeps:   at("deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com"),
		details: at("openrouter.ai") && geminiSigned.MatchString(model),
	}
	q.signs = cfg.Dialect == DialectGemini && !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2") &&
		!strings.HasPrefix(model, "models/gemini-1") && !strings.HasPrefix(model, "models/gemini-2")
	q.unique = cfg.Dialect == DialectAnthropic || strings.Contains(model, "claude")
	switch {
	case at("mistral.ai"), mistrals.MatchString(model):
		q.ids, q.bridge = provider.IDNine, true
	case strings.Contains(model, "kimi"):
		q.ids = provider.IDLoose
	}
	return q
}

// refusalQuirks maps refusals to quirks; the first match counts. A match contains all words of one of the
// lists.
var refusalQuirks = []struct {
	words [][]string
	learn func(q *quirks)
}{
	{[][]string{{"stream_options"}, {"include_usage"}}, func(q *quirks) { q.noUsage = true }},
	{[][]string{{"/v1/responses"}, {"responses api"}}, func(q *quirks) { q.responses = true }},
	{[][]string{{"reasoning_effort"}, {"reasoning.effort"}}, func(q *quirks) { q.noEffort = true }},
	{[][]string{{"openrouter reasoning details"}}, func(q *quirks) { q.details = true }},
	{[][]string{{"thought_signature"}, {"thought signature"}}, func(q *quirks) { q.signs = true }},
	{[][]string{{"after role 'tool'"}}, func(q *quirks) { q.bridge = true }},
	{[][]string{{"ids must be unique"}, {"duplicate", "tool_call_id"}}, func(q *quirks) { q.unique = true }},
	{[][]string{{"tool call id", "length of 9"}, {"tool_call", "length of 9"}}, func(q *quirks) { q.ids = provider.IDNine }},
	{[][]string{{"reasoning_content", "must be passed back"}, {"reasoning_content", "missing"}}, func(q *quirks) { q.keeps = true }},
	{
		[][]string{{"reasoning_content"}, {"reasoning_details"}, {"'reasoning'"}, {".reasoning:"}, {`"reasoning"`}, {"extra_content"}, {`"thinking"`}},
		func(q *quirks) { q.drops = true },
	},
}

// learn returns quirks that avoid what a refusal names, so that the same request may pass. If the
// refusal teaches nothing, they are unchanged.
func (q quirks) learn(f *provider.Fault) quirks {
	status, text := f.Failure.Status, strings.ToLower(f.Said)
	refused := status == 0 || status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusUnprocessableEntity
	if (refused || status >= http.StatusInternalServerError) && refusesPictures(text) {
		q.blind = true
		return q
	}
	for _, l := range refusalQuirks {
		if refused && slices.ContainsFunc(l.words, func(all []string) bool {
			return !slices.ContainsFunc(all, func(w string) bool { return !strings.Contains(text, w) })
		}) {
			l.learn(&q)
			return q
		}
	}
	return q
}

// refusesPictures reports whether a refusal says that a model takes no pictures, in the words of Groq,
// DeepSeek, Mistral, Ollama, LM Studio, vLLM, llama.cpp, OpenRouter and OpenAI.
func refusesPictures(text string) bool {
	for _, words := range []string{
		"content must be a string", "value must be a string", "unknown variant `image_url`",
		"invalid type: sequence, expected a string", "untagged enum chatcompletionrequestcontent", "image input is not", "image input not", "image inputs are not",
		"data required for image input", "does not support image", "do not support image", "not a multimodal model",
		"not support vision", "support image input", "image_url is only supported", "images are not supported",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// nearby reports whether a server is on this machine or in its network: it may have to load the model
// before it answers.
func nearby(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".localhost")
}
