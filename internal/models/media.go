package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"oneclaw/agent/openai"
	"oneclaw/internal/budget"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

// MediaConfig is what the clients share that listen to recordings, speak answers and make pictures.
type MediaConfig struct {
	// BaseURL and APIKey are those of the program's own model, which a section of the settings without an
	// address uses.
	BaseURL, APIKey string
	// HTTPClient sends the requests.
	HTTPClient *http.Client
	Ledger     *budget.Ledger
	// Payer returns the payer of a call.
	Payer  func(scope toolgroups.Scope) budget.Payer
	Logger *slog.Logger
}

// media is a client for the model of a section of the settings.
type media struct {
	MediaConfig

	client   *openai.Client
	model    string
	atOpenAI bool
}

// open returns the client for a section, or nil if no model is set. It sends no requests. No server but the
// program's own gets the key of its model.
func (cfg MediaConfig) open(section, model, address string, key redact.Secret) (*media, error) {
	if address == "" || address == cfg.BaseURL {
		address, key = cfg.BaseURL, cmp.Or(key, redact.Secret(cfg.APIKey))
	} else if model == "" {
		return nil, fmt.Errorf("setting %s.base_url (ONECLAW_%s_BASE_URL) names a server, and %[1]s.model (ONECLAW_%[2]s_MODEL) no model there", section, strings.ToUpper(section))
	}
	if model == "" {
		return nil, nil
	}
	client, err := openai.New(openai.Config{BaseURL: address, APIKey: string(key), Model: model, HTTPClient: cfg.HTTPClient, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w", section, err)
	}
	return &media{cfg, client, model, isOpenAI(address)}, nil
}

// isOpenAI reports whether an address is OpenAI's.
func isOpenAI(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Hostname() == "api.openai.com"
}

// usage returns the usage of a call that took the given tokens.
func (m *media) usage(t budget.Tokens) budget.Usage {
	return m.Ledger.UsageOf(string(settings.TypeOpenAI), m.model, t)
}

// pay pays the expected usage of a call before it makes the call. The payment is returned only if the server
// certainly made nothing. Otherwise it stays, corrected to the usage that call returns; nil if the server
// reports none.
func (m *media) pay(ctx context.Context, scope toolgroups.Scope, expected budget.Usage, call func() (*budget.Usage, error)) error {
	settle, err := m.Ledger.Prepay(ctx, m.Payer(scope), m.model, expected)
	if err != nil {
		return err
	}
	used, err := call()
	if failure, ok := errors.AsType[*openai.OnceError](err); ok && !failure.Unknown {
		settle(budget.Usage{})
	} else if err == nil && used != nil {
		settle(*used)
	}
	return err
}
