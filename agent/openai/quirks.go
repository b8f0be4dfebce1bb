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

// quirks are a server's deviations from the API. They are implied by its address or the model's name, or
// learned from refusals.
type quirks struct {
	// family is the family of models whose schemas the server accepts.
	family provider.Family
	// useResponses: use the Responses API.
	useResponses bool
	// idRule is the required form of call ids. uniqueIDs: each id may occur only once.
	idRule    provider.IDRule
	uniqueIDs bool
	// keepsReasoning: reasoning is sent back in all later requests, with a placeholder if there is none.
	// dropsReasoning: reasoning is never sent back.
	keepsReasoning, dropsReasoning bool
	// needsSignatures: calls by other models need a stand-in signature. needsDetails: they need it in
	// reasoning_details, as at OpenRouter.
	needsSignatures, needsDetails bool
	// needsBridge: a result and a user message must be separated by a reply.
	needsBridge bool
	// noUsage: the server does not know stream_options.
	noUsage bool
	// refusedEfforts are the reasoning efforts that the server has refused.
	refusedEfforts provider.Efforts
	// lowTemperature: the server has refused a temperature above 1. noTemperature: it has refused another.
	lowTemperature, noTemperature bool
	// noVision: the server has refused pictures.
	noVision bool
	// noTools: the server has refused tools. Calls and results are sent as texts.
	noTools bool
	// noSystem: the server has refused a system prompt, which is put in front of the first message.
	noSystem bool
	// singleCalls: the server takes one call in a reply. Others are sent in replies of their own.
	singleCalls bool
	// namesResults: results have the names of their tools, for gateways to Google, which knows results by them.
	namesResults bool
}

var (
	// mistralFamilies matches Mistral's model families, on any host.
	mistralFamilies = regexp.MustCompile(`(^|/)(labs-|open-)?(mistral|mixtral|magistral|ministral|devstral|codestral|pixtral)`)
	// geminiSigned matches the Gemini generations that sign their calls.
	geminiSigned = regexp.MustCompile(`(^|/)gemini-([3-9]|[1-9][0-9])`)
)

// quirksOf returns the quirks implied by an address and a model's name.
func quirksOf(u *url.URL, cfg Config) quirks {
	host, model := strings.ToLower(u.Hostname()), strings.ToLower(cfg.Model)
	at := func(domains ...string) bool {
		return slices.ContainsFunc(domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
	}
	q := quirks{
		family:         familyOf(cfg),
		keepsReasoning: at("deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com"),
		needsDetails:   at("openrouter.ai") && geminiSigned.MatchString(model),
	}
	q.needsSignatures = cfg.Dialect == DialectGemini && !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2") &&
		!strings.HasPrefix(model, "models/gemini-1") && !strings.HasPrefix(model, "models/gemini-2")
	q.namesResults = q.family == provider.FamilyGemini && cfg.Dialect != DialectGemini
	q.uniqueIDs = cfg.Dialect == DialectAnthropic || strings.Contains(model, "claude")
	switch {
	case at("mistral.ai"), mistralFamilies.MatchString(model):
		q.idRule, q.needsBridge = provider.IDNine, true
	case strings.Contains(model, "kimi"):
		q.idRule = provider.IDLoose
	}
	return q
}

// refusalQuirks maps refusals to quirks; the first match wins. A refusal matches if it contains all
// phrases in one of the lists.
var refusalQuirks = []struct {
	words [][]string
	learn func(q *quirks, r refusal)
}{
	{[][]string{{"stream_options"}, {"include_usage"}}, func(q *quirks, _ refusal) { q.noUsage = true }},
	{[][]string{{"/v1/responses"}, {"responses api"}}, func(q *quirks, _ refusal) { q.useResponses = true }},
	{[][]string{{"reasoning_effort"}, {"reasoning.effort"}}, func(q *quirks, r refusal) { q.refusedEfforts = q.refusedEfforts.Refuse(r.effort, r.text) }},
	{[][]string{{"temperature"}}, func(q *quirks, r refusal) {
		isHigh := r.temperature > 1 && !q.lowTemperature
		q.lowTemperature, q.noTemperature = q.lowTemperature || isHigh, q.noTemperature || !isHigh
	}},
	{[][]string{{"openrouter reasoning details"}}, func(q *quirks, _ refusal) { q.needsDetails = true }},
	{[][]string{{"thought_signature"}, {"thought signature"}}, func(q *quirks, _ refusal) { q.needsSignatures = true }},
	{[][]string{{"messages", "name", "not permitted"}, {"messages", ".name'"}, {"property 'name' is unsupported"}}, func(q *quirks, _ refusal) { q.namesResults = false }},
	{[][]string{{"after role 'tool'"}}, func(q *quirks, _ refusal) { q.needsBridge = true }},
	{[][]string{{"ids must be unique"}, {"duplicate", "tool_call_id"}}, func(q *quirks, _ refusal) { q.uniqueIDs = true }},
	{[][]string{{"tool call id", "length of 9"}, {"tool_call", "length of 9"}}, func(q *quirks, _ refusal) { q.idRule = provider.IDNine }},
	{[][]string{{"reasoning_content", "must be passed back"}, {"reasoning_content", "missing"}}, func(q *quirks, _ refusal) { q.keepsReasoning = true }},
	{
		[][]string{{"reasoning_content"}, {"reasoning_details"}, {"'reasoning'"}, {".reasoning:"}, {`"reasoning"`}, {"extra_content"}, {`"thinking"`}},
		func(q *quirks, _ refusal) { q.dropsReasoning = true },
	},
}

// familyWords are phrases in refusals of schemas, by the family whose servers write them: Kimi, Claude, Gemini.
var familyWords = []struct {
	family provider.Family
	words  []string
}{
	{provider.FamilyKimi, []string{"moonshot flavored json schema"}},
	{provider.FamilyClaude, []string{"property keys should match pattern", "json schema draft 2020-12", "custom.input_schema"}},
	{provider.FamilyGemini, []string{"function_declarations", "generatecontentrequest", "functiondeclaration"}},
}

// refusingFamily returns the family whose servers refuse schemas in the words of a refusal. A gateway's name for
// a model need not tell it.
func refusingFamily(f *provider.Fault) provider.Family {
	text := strings.ToLower(f.Response)
	for _, known := range familyWords {
		if slices.ContainsFunc(known.words, func(words string) bool { return strings.Contains(text, words) }) {
			return known.family
		}
	}
	return provider.FamilyOther
}

// refusal is the text of a refusal, in lower case, with the reasoning effort and the temperature of the
// refused request.
type refusal struct {
	text, effort string
	temperature  float64
}

// learn returns quirks that avoid the cause of a refusal, so that the same request may succeed. effort and
// temperature are those of the request, 0 if it has none. If the refusal names no known cause, the quirks
// are unchanged.
func (q quirks) learn(f *provider.Fault, effort string, temperature float64) quirks {
	status, text := f.Failure.Status, strings.ToLower(f.Response)
	refused := status == 0 || status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusUnprocessableEntity
	if (refused || status >= http.StatusInternalServerError) && refusesPictures(text) {
		q.noVision = true
		return q
	}
	if (refused || status >= http.StatusInternalServerError) && q.learnTemplate(text) {
		return q
	}
	for _, l := range refusalQuirks {
		if refused && slices.ContainsFunc(l.words, func(all []string) bool {
			return !slices.ContainsFunc(all, func(w string) bool { return !strings.Contains(text, w) })
		}) {
			l.learn(&q, refusal{text, effort, temperature})
			return q
		}
	}
	return q
}

var (
	// refusesTools matches a refusal of all tools, by vLLM, Ollama (Vane #1137), OpenRouter (fast-agent #122),
	// llama.cpp and others.
	refusesTools = regexp.MustCompile(`(?:does not|doesn't|do not|don't|not) support (?:the use of )?(?:native )?(?:tools?|functions?)\b|\b(?:tools?|functions?)(?:[ _-](?:use|usage|calls?|calling|choice))? (?:is|are) (?:not supported|unsupported|not enabled|not available)|tool choice requires|tools param requires|found that support tool use`)
	// refusesSystem matches a refusal of a system prompt by a model's template.
	refusesSystem = regexp.MustCompile(`system (?:role|messages?|prompts?) (?:is |are )?not supported|not support (?:the )?system|only user and assistant roles are supported`)
	// refusesSeveralCalls matches a refusal of several calls in one reply by a model's template (vllm #25108).
	refusesSeveralCalls = regexp.MustCompile(`single tool.calls? at once|only supports? (?:a )?single tool|one tool call at a time|parallel tool calls (?:is|are) not supported`)
)

// learnTemplate learns what a model's template refuses, and reports whether that is new. Servers say it with
// status 400 or 500.
func (q *quirks) learnTemplate(text string) bool {
	before := *q
	switch {
	case refusesSeveralCalls.MatchString(text):
		q.singleCalls = true
	case refusesTools.MatchString(text):
		q.noTools = true
	case refusesSystem.MatchString(text):
		q.noSystem = true
	case strings.Contains(text, "roles must alternate"): // because of the prompt, or else of results
		q.noTools = q.noTools || q.noSystem
		q.noSystem = true
	}
	return *q != before
}

// refusesPictures reports whether a refusal says that a model does not accept pictures, as phrased by
// Groq, DeepSeek, Mistral, Ollama, LM Studio, vLLM, llama.cpp, OpenRouter and OpenAI.
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

// isLocal reports whether a server is on this machine or in its network. Such a server may have to load
// the model before it answers.
func isLocal(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".localhost")
}
