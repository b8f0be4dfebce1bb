// Package settings stores what administrators change while the bot runs: model providers and
// their models, agents, a few settings, variables of user tools, switches of tools, and the
// choices of chats.
//
// Everything is a small JSON value in the key-value store under one prefix. While
// [Settings.Follow] runs, read values are cached until they change. What the program was started
// with comes from [Config], is never stored, and can be switched off but not deleted.
//
// API keys and variables are encrypted at rest. [Settings] cannot read them; only the [Vault]
// can, which no tool gets.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/redact"
	"oneclaw/storage"
)

// Keys in the store, all below prefix.
const (
	prefix         = "settings/"
	providerPrefix = prefix + "provider/"
	modelsPrefix   = prefix + "models/"
	agentPrefix    = prefix + "agent/"
	valuePrefix    = prefix + "value/"
	variablePrefix = prefix + "variable/"
	keyPrefix      = prefix + "key/"
	toolOffPrefix  = prefix + "off/tool/"
	groupOffPrefix = prefix + "off/group/"
	chatPrefix     = prefix + "chat/"
)

// Bounds of what is stored.
const (
	// MaxName bounds the name of a provider, model or agent, in characters.
	MaxName = 100
	// MaxPrompt bounds the prompt of an agent, in characters.
	MaxPrompt = 50_000
	// MaxModels bounds the models of one provider.
	MaxModels = 2000
	// MaxProviders bounds the providers.
	MaxProviders = 100
	// MaxAgents bounds the agents of one owner.
	MaxAgents = 50
	// MaxVariables bounds the variables, MaxVariable the value of one, in bytes.
	MaxVariables = 200
	MaxVariable  = 32 << 10
	// MaxKey bounds an API key, in bytes.
	MaxKey = 8 << 10
)

// Config configures [Settings].
type Config struct {
	// KV stores them.
	KV storage.KV
	// SecretKey encrypts API keys and variables, at least 16 bytes.
	SecretKey []byte
	// Preset is the provider that the program was started with. The zero value means none.
	Preset Preset
	// Agents are built in; the first is the default. At least one is required; ids and prompts must
	// be set.
	Agents []Agent
	// Defaults are the defaults of the settings by name, besides [SettingDefaultModel] and
	// [SettingDefaultAgent].
	Defaults map[string]string
	// Routings are the values of [SettingRouting]. Empty means groups and all.
	Routings []string
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Revealed, if not nil, is called with each key and variable that is read or stored, so that it
	// can be masked.
	Revealed func(secret string)
	// Logger gets unreadable records. Nil discards them.
	Logger *slog.Logger
}

// Preset is a provider from the program's own settings.
type Preset struct {
	// Type is empty for none.
	Type    Type
	BaseURL string
	// Key may be empty for a server without authentication.
	Key string
	// Model is the name of its model.
	Model string
}

// Settings reads and changes everything but secrets. It may be used concurrently.
type Settings struct {
	*records
	Providers Providers
	Models    Models
	Agents    Agents
	Values    Values
	Variables Variables
	Switches  Switches
	Chats     Chats
}

// Open checks the configuration and returns the settings, and the vault for secrets.
func Open(cfg Config) (*Settings, *Vault, error) {
	if cfg.KV == nil {
		return nil, nil, errors.New("settings: no store")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, sealPurpose)
	if err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if len(cfg.Routings) == 0 {
		cfg.Routings = []string{"groups", "all"}
	}
	r := &records{cfg: cfg, kv: cfg.KV, seal: sealer, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
	if err := r.check(); err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	s := &Settings{records: r, Providers: Providers{r}, Agents: Agents{r}, Variables: Variables{r}, Switches: Switches{r}}
	s.Models = Models{r, s.Providers}
	s.Values = Values{r, s.Models, s.Agents}
	s.Chats = Chats{r, s.Providers, s.Models, s.Agents, s.Values}
	return s, &Vault{r, s.Providers, s.Variables}, nil
}

// check validates the program's configuration.
func (r *records) check() error {
	if len(r.cfg.Agents) == 0 {
		return errors.New("no built-in agent")
	}
	for i := range r.cfg.Agents {
		a := &r.cfg.Agents[i]
		if a.ID == "" {
			return errors.New("a built-in agent has no id")
		}
		if err := a.check(); err != nil {
			return fmt.Errorf("built-in agent %s: %w", a.ID, err)
		}
	}
	if p := r.cfg.Preset; p.Type != "" {
		preset := r.preset()
		if err := preset.check(); err != nil {
			return fmt.Errorf("own provider: %w", err)
		}
		if err := checkModelID(p.Model); err != nil {
			return fmt.Errorf("own model: %w", err)
		}
	}
	for name, value := range r.cfg.Defaults {
		kind, ok := r.kinds()[name]
		if !ok {
			return fmt.Errorf("there is no setting %q", name)
		}
		if err := kind.check(value); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

// Reason is the reason of a refusal.
type Reason string

// The reasons.
const (
	// Invalid: the value is not valid.
	Invalid Reason = "invalid"
	// NotFound: no such id.
	NotFound Reason = "not_found"
	// Protected: it comes with the program.
	Protected Reason = "protected"
	// Exists: it exists already.
	Exists Reason = "exists"
	// Full: a limit is reached.
	Full Reason = "full"
)

// Error is a refusal. Its text is a sentence for the requester, without secrets.
type Error struct {
	Reason  Reason
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Is reports whether an error is a refusal for a reason.
func Is(err error, reason Reason) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Reason == reason
}

// checkName accepts one line of text within the limit.
func checkName(what, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return refuse(Invalid, "The %s is blank.", what)
	case utf8.RuneCountInString(name) > MaxName:
		return refuse(Invalid, "The %s is longer than %d characters.", what, MaxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return refuse(Invalid, "The %s must be one line without control characters.", what)
	}
	return nil
}
