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

// quirks are what one server wants otherwise than most. They are known by its address or
// the name of the model, or learned from what it refuses.
type quirks struct {
	// responses says that the Responses API is spoken.
	responses bool
	// ids is what ids of calls have to look like, unique that each may occur once.
	ids    provider.IDRule
	unique bool
	// keeps says that reasoning goes back in all later requests, with something in its
	// place where there is none; drops that none goes back at all.
	keeps, drops bool
	// signs says that calls of others need a stand-in for a signature, details the same
	// for OpenRouter.
	signs, details bool
	// bridge says that an answer has to stand between a result and a user message.
	bridge bool
	// noUsage says that it knows no stream_options.
	noUsage bool
	// noEffort says that it has refused to be told how hard to think.
	noEffort bool
	// blind says that it has refused pictures.
	blind bool
}

var (
	// mistrals are the families of Mistral, wherever they are hosted.
	mistrals = regexp.MustCompile(`(^|/)(labs-|open-)?(mistral|mixtral|magistral|ministral|devstral|codestral|pixtral)`)
	// geminiSigned are the generations of Gemini that sign their calls.
	geminiSigned = regexp.MustCompile(`(^|/)gemini-([3-9]|[1-9][0-9])`)
)

// quirksOf are those that an address and the name of a model tell.
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

// lessons are what refusals name, the first that fits counts. All words of one of the
// lists have to be there.
var lessons = []struct {
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

// learn changes what a refusal names: the same request may pass then. Who has nothing to
// learn from it gets the same quirks back.
func (q quirks) learn(f *provider.Fault) quirks {
	status, text := f.Failure.Status, strings.ToLower(f.Said)
	refused := status == 0 || status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusUnprocessableEntity
	if (refused || status >= http.StatusInternalServerError) && blindness(text) {
		q.blind = true
		return q
	}
	for _, l := range lessons {
		if refused && slices.ContainsFunc(l.words, func(all []string) bool {
			return !slices.ContainsFunc(all, func(w string) bool { return !strings.Contains(text, w) })
		}) {
			l.learn(&q)
			return q
		}
	}
	return q
}

// blindness recognises the refusal of a model that takes no pictures: the words of Groq,
// DeepSeek, Mistral, Ollama, LM Studio, vLLM, llama.cpp, OpenRouter and OpenAI.
func blindness(text string) bool {
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

// nearby reports whether a server stands on this machine or in its network: a model may
// have to be loaded there before it says anything.
func nearby(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".localhost")
}
