// Package settings stores the settings that can be changed while the bot runs: model providers and their
// models, agents, a few named values, variables for user tools, switches of tools, and the choices of
// chats.
//
// Each setting is a small JSON value in the key-value store, under a common prefix. While
// [Settings.Follow] runs, values are cached until they change. The provider and the agents in [Config]
// are not stored and cannot be deleted.
//
// API keys and variables are encrypted at rest. [Settings] cannot read them; only the [Vault] can, to
// which tools have no access.
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
	skillOffPrefix = prefix + "off/skill/"
	chatPrefix     = prefix + "chat/"
)

// Bounds of what is stored.
const (
	// maxName bounds the name of a provider, model or agent, in characters.
	maxName = 100
	// maxPrompt bounds the prompt of an agent, in characters.
	maxPrompt = 50_000
	// MaxModels bounds the models of one provider.
	MaxModels = 2000
	// maxProviders bounds the providers.
	maxProviders = 100
	// MaxAgents bounds the agents of one owner.
	MaxAgents = 50
	// maxVariables bounds the variables, MaxVariable the value of one, in bytes.
	maxVariables = 200
	MaxVariable  = 32 << 10
	// MaxKey bounds an API key, in bytes.
	MaxKey = 8 << 10
)

// Config configures [Settings].
type Config struct {
	// KV is the store for the settings.
	KV storage.KV
	// SecretKey encrypts API keys and variables, at least 16 bytes.
	SecretKey []byte
	// Preset is the program's own provider. The zero value means none.
	Preset Preset
	// Agents are the built-in agents; the first is the default. At least one is required. Their ids and
	// prompts must be set.
	Agents []Agent
	// Defaults are the default values by name, except those of [SettingDefaultModel] and
	// [SettingDefaultAgent]. An empty one means that the setting is not set.
	Defaults map[string]string
	// Routings are the allowed values of [SettingRouting]. Empty means "groups" and "all".
	Routings []string
	// Now is the clock. Required.
	Now func() time.Time
	// OnSecret, if not nil, is called with each key and variable that is read or stored, so that the
	// caller can mask it.
	OnSecret func(secret string)
	// Logger logs invalid records. Nil discards the messages.
	Logger *slog.Logger
}

// Preset is a provider from the program's own settings.
type Preset struct {
	// Type is empty for none.
	Type    Type
	BaseURL string
	// Key may be empty for a server without authentication; LacksKey says that the server wants one.
	Key      string
	LacksKey bool
	// Model is the name of the program's own model.
	Model string
}

// Check returns an error for an unusable address or name of the model.
func (p Preset) Check() error {
	own := p.provider()
	return cmp.Or(own.check(), checkModelID(p.Model))
}

// provider returns the provider without stored changes.
func (p Preset) provider() Provider {
	return Provider{ID: PresetID, Name: "Configured at start", Type: p.Type, BaseURL: p.BaseURL, Active: true, Preset: true, HasKey: true}
}

// Settings reads and changes all settings except secrets. It may be used concurrently.
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
	if cfg.KV == nil || cfg.Now == nil {
		return nil, nil, errors.New("settings: KV and Now are required")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, sealPurpose)
	if err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	if len(cfg.Routings) == 0 {
		cfg.Routings = []string{"groups", "all"}
	}
	r := &records{cfg: cfg, kv: cfg.KV, sealer: sealer, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
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
		if err := p.Check(); err != nil {
			return fmt.Errorf("own provider: %w", err)
		}
	}
	for name, value := range r.cfg.Defaults {
		kind, ok := r.valueRules()[name]
		if !ok {
			return fmt.Errorf("there is no setting %q", name)
		}
		if err := kind.check(value); value != "" && err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

// Reason is the reason for a refusal.
type Reason string

// The reasons.
const (
	// Invalid: the value is not valid.
	Invalid Reason = "invalid"
	// NotFound: there is no record with the id.
	NotFound Reason = "not_found"
	// Protected: the record comes with the program and cannot be changed.
	Protected Reason = "protected"
	// Exists: the record exists already.
	Exists Reason = "exists"
	// Full: a limit is reached.
	Full Reason = "full"
)

// Error is a refused change or read. Its text is a sentence for the requester, without secrets.
type Error struct {
	Reason  Reason
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Is reports whether an error is an *[Error] with the given reason.
func Is(err error, reason Reason) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Reason == reason
}

// checkName returns an error unless the name is one line of text of at most maxName characters.
func checkName(what, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return refuse(Invalid, "The %s is blank.", what)
	case utf8.RuneCountInString(name) > maxName:
		return refuse(Invalid, "The %s is longer than %d characters.", what, maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return refuse(Invalid, "The %s must be one line without control characters.", what)
	}
	return nil
}
