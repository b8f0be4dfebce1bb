package moving

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
)

// service is a model service whose address is known.
type service struct {
	id, name string
	kind     settings.Type
	url      string
	// variables are the names under which both bots keep its key.
	variables []string
}

// services are those whose keys are taken from the environment of the other bot.
var services = []service{
	{"openai", "OpenAI", settings.TypeOpenAI, "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}},
	{"anthropic", "Anthropic", settings.TypeAnthropic, "https://api.anthropic.com/v1", []string{"ANTHROPIC_API_KEY"}},
	{"openrouter", "OpenRouter", settings.TypeOpenAI, "https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}},
	{"gemini", "Gemini", settings.TypeGemini, "https://generativelanguage.googleapis.com/v1beta/openai", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
	{"deepseek", "DeepSeek", settings.TypeOpenAI, "https://api.deepseek.com/v1", []string{"DEEPSEEK_API_KEY"}},
	{"groq", "Groq", settings.TypeOpenAI, "https://api.groq.com/openai/v1", []string{"GROQ_API_KEY"}},
	{"mistral", "Mistral", settings.TypeOpenAI, "https://api.mistral.ai/v1", []string{"MISTRAL_API_KEY"}},
	{"xai", "xAI", settings.TypeOpenAI, "https://api.x.ai/v1", []string{"XAI_API_KEY"}},
}

// findService returns the service with an id of the other bot.
func findService(id string) (service, bool) {
	id = strings.ToLower(id)
	if id == "google" {
		id = "gemini"
	}
	i := slices.IndexFunc(services, func(s service) bool { return s.id == id })
	if i < 0 {
		return service{}, false
	}
	return services[i], true
}

// providerConfig is a provider as the other bot has it.
type providerConfig struct {
	id, url, api string
	key          secret
}

// addProvider adds a provider with its key. One of the same address is added once.
func (f *Found) addProvider(product string, p providerConfig, env map[string]string) {
	known, isKnown := findService(p.id)
	p.id = redact.MaskAddresses(p.id) // it may be an address
	url := strings.TrimRight(cmp.Or(p.url, known.url), "/")
	one := foundProvider{Provider: settings.Provider{Name: cmp.Or(known.name, p.id), Type: cmp.Or(known.kind, settings.TypeOpenAI), BaseURL: url}}
	switch {
	case strings.HasPrefix(p.api, "anthropic"):
		one.Type = settings.TypeAnthropic
	case strings.HasPrefix(p.api, "google"):
		one.Type = settings.TypeGemini
	}
	switch {
	case url == "":
		f.leave(KindProvider, p.id, "its address is not known here: make the provider in a chat (create_provider)")
		return
	case strings.Contains(url, "${"):
		f.leave(KindProvider, p.id, "its address has variables in it: make the provider in a chat (create_provider)")
		return
	}
	one.Key = p.key.resolve(env)
	for i := 0; isKnown && one.Key == "" && i < len(known.variables); i++ {
		one.Key = env[known.variables[i]]
	}
	if len(one.Key) > settings.MaxKey || strings.ContainsFunc(one.Key, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		f.leave(KindProvider, p.id, "its key has spaces in it or is too long: enter it with oneclaw provider key")
		one.Key = ""
	}
	for i, other := range f.Providers {
		if other.BaseURL == url {
			f.Providers[i].Key = cmp.Or(other.Key, one.Key)
			return
		}
	}
	if len(f.Providers) == settings.MaxProviders/2 {
		f.leave(KindProvider, p.id, "there are more than %d providers", settings.MaxProviders/2)
		return
	}
	one.Name = wording.OneLine(one.Name, settings.MaxName)
	one.ID = "provider_" + stableID(product, url)
	f.Providers = append(f.Providers, one)
}

// addServices adds the services whose keys are in the environment of the other bot.
func (f *Found) addServices(product string, env map[string]string) {
	known := map[string]bool{}
	for _, s := range services {
		for _, name := range s.variables {
			known[name] = true
		}
		if slices.ContainsFunc(s.variables, func(name string) bool { return env[name] != "" }) {
			f.addProvider(product, providerConfig{id: s.id}, env)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasSuffix(name, "_API_KEY") && !known[name] && env[name] != "" {
			f.leave(KindProvider, name, "it is not the key of a model service that is known here; manage_env_var keeps keys for tools")
		}
	}
}

// leaveTokens notes the tokens of the other bot's accounts.
func (f *Found) leaveTokens(names ...string) {
	for _, name := range names {
		f.leave(KindOther, name, "stop the other bot, then set it in oneclaw.yaml or with oneclaw setup: two bots cannot share one account")
	}
}
