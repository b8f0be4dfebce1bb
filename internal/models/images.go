package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/internal/budget"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

// ImageSettings configures the model that makes pictures, on any server with /images/generations and
// /images/edits.
type ImageSettings struct {
	// Model is the model's name. Empty means that no pictures are made.
	Model string `yaml:"model" env:"ONECLAW_IMAGES_MODEL"`
	// BaseURL is the model's server. Empty means the server of the program's own model, with its key.
	BaseURL string        `yaml:"base_url" env:"ONECLAW_IMAGES_BASE_URL"`
	APIKey  redact.Secret `yaml:"api_key" env:"ONECLAW_IMAGES_API_KEY"`
	// Quality is low, medium, high, xhigh, max or auto. Empty means medium at OpenAI, and elsewhere
	// leaves it to the server.
	Quality string `yaml:"quality" env:"ONECLAW_IMAGES_QUALITY"`
	// USD is the price of a picture in dollars; 0 means that of its tokens.
	USD float64 `yaml:"usd" env:"ONECLAW_IMAGES_USD"`
}

// ImageQualities returns the possible values of [ImageSettings].Quality.
func ImageQualities() []string { return []string{"", "low", "medium", "high", "xhigh", "max", "auto"} }

// Validate returns an error for the first invalid setting.
func (s ImageSettings) Validate() error {
	if s.Model == "" && s.BaseURL != "" {
		return errors.New("setting images.base_url (ONECLAW_IMAGES_BASE_URL) names a server, and images.model (ONECLAW_IMAGES_MODEL) no model there")
	}
	return nil
}

// ImageConfig configures an [ImageMaker].
type ImageConfig struct {
	Settings ImageSettings
	// BaseURL and APIKey are those of the program's own model.
	BaseURL, APIKey string
	// HTTPClient sends the requests.
	HTTPClient *http.Client
	Ledger     *budget.Ledger
	// Payer returns the payer of a call.
	Payer  func(scope toolgroups.Scope) budget.Payer
	Logger *slog.Logger
}

// ImageMaker makes pictures, each of which is paid before it is made. It implements images.Maker.
type ImageMaker struct {
	cfg    ImageConfig
	client *openai.Client
}

// NewImageMaker returns a maker, or nil if no model is set. It sends no requests.
func NewImageMaker(cfg ImageConfig) (*ImageMaker, error) {
	s := &cfg.Settings
	if err := s.Validate(); err != nil || s.Model == "" {
		return nil, err
	}
	s.BaseURL, s.APIKey = serverOr(s.BaseURL, s.APIKey, cfg.BaseURL, cfg.APIKey)
	if isOpenAI(s.BaseURL) {
		s.Quality = cmp.Or(s.Quality, "medium")
	}
	client, err := openai.New(openai.Config{BaseURL: s.BaseURL, APIKey: string(s.APIKey), Model: s.Model, HTTPClient: cfg.HTTPClient, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("setting images: %w", err)
	}
	return &ImageMaker{cfg, client}, nil
}

// serverOr returns the address and the key of a server. An empty address means the program's own, whose
// key no other server gets.
func serverOr(address string, key redact.Secret, ownAddress, ownKey string) (string, redact.Secret) {
	if address == "" || address == ownAddress {
		return ownAddress, cmp.Or(key, redact.Secret(ownKey))
	}
	return address, key
}

// Error codes of failures to make a picture.
const (
	codeNoBudget    = "no_budget"
	codeRefused     = "refused_by_provider"
	codeUnavailable = "images_unavailable"
	codeUnknown     = "outcome_unknown"
)

// imageTokens has the expected output tokens of a picture at OpenAI, by quality: the most that one of its
// models uses for a square one (developers.openai.com/api/docs/guides/image-generation). Other qualities take
// maxImageTokens; wider and higher pictures cost half as much again. A source costs about as much as a
// picture of high quality.
var imageTokens = map[string]int64{"low": 272, "medium": 1756}

const (
	maxImageTokens = 7024
	sourceTokens   = 6240
	squareImage    = "1024x1024"
)

// expected returns the expected usage of a call.
func (m *ImageMaker) expected(prompt, size string, source []byte) budget.Usage {
	t := budget.Tokens{Input: int64(len(prompt)/4 + 1), Output: cmp.Or(imageTokens[m.cfg.Settings.Quality], maxImageTokens)}
	if size != squareImage {
		t.Output += t.Output / 2
	}
	if source != nil {
		t.Input += sourceTokens
	}
	return m.usage(t)
}

// usage returns the usage of a call that took the given tokens.
func (m *ImageMaker) usage(t budget.Tokens) budget.Usage {
	u := m.cfg.Ledger.UsageOf(string(settings.TypeOpenAI), m.cfg.Settings.Model, t)
	if m.cfg.Settings.USD > 0 {
		u.Money, u.Unpriced = budget.Dollars(m.cfg.Settings.USD), 0
	}
	return u
}

// MakeImage implements images.Maker. It pays first. The payment is returned only if the server certainly
// made no picture. Otherwise it stays, corrected to the usage that the server reports with a picture.
func (m *ImageMaker) MakeImage(ctx context.Context, scope toolgroups.Scope, prompt, size string, source []byte) ([]byte, error) {
	expected := m.expected(prompt, size, source)
	settle, err := m.cfg.Ledger.Prepay(ctx, m.cfg.Payer(scope), m.cfg.Settings.Model, expected)
	if refusal, ok := errors.AsType[*agent.ModelError](err); ok {
		return nil, toolgroups.Errorf(codeNoBudget, "No picture was made: %s Tell the user so.", refusal.Notice)
	}
	if err != nil {
		return nil, err
	}
	picture, used, err := m.client.CreateImage(ctx, openai.ImageRequest{Prompt: prompt, Size: size, Quality: m.cfg.Settings.Quality, Source: source})
	failure, failed := errors.AsType[*openai.OnceError](err)
	switch {
	case failed && !failure.Unknown:
		settle(budget.Usage{})
	case err == nil && used.Output > 0:
		settle(m.usage(budget.Tokens{Input: int64(used.Input), Output: int64(used.Output)}))
	}
	if err != nil {
		m.cfg.Logger.Warn("no picture was made", "model", m.cfg.Settings.Model, "err", err)
	}
	switch {
	case failed:
		return nil, imageError(failure)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, unknownError(errors.New("the server took too long"))
	}
	return picture, err
}

func unknownError(err error) *toolgroups.Error {
	return toolgroups.Errorf(codeUnknown,
		"No picture came back (%v). It may have been made and paid all the same, so do not try again by yourself: tell the user, and make it again only if they ask for it.", err)
}

// imageError returns the error for the model that asked for a picture.
func imageError(e *openai.OnceError) *toolgroups.Error {
	switch failure := e.Failure; {
	case errors.Is(failure, provider.ErrFiltered):
		return toolgroups.Errorf(codeRefused,
			"The provider's filter refused this picture, and it cost nothing. Do not try to get around that: tell the user plainly that the provider does not make this picture.")
	case e.Unknown:
		return unknownError(failure.Err)
	case failure.Kind == agent.KindAuth:
		return toolgroups.Errorf(codeUnavailable,
			"No picture was made: the provider rejects the key. Tell the user that an administrator has to check images.api_key, or OPENAI_API_KEY.")
	case failure.Kind == agent.KindCredit:
		return toolgroups.Errorf(codeUnavailable,
			"No picture was made: the account at the provider has run out of credit (%v). Tell the user that an administrator has to top it up.", failure.Err)
	case failure.Kind == agent.KindRateLimit:
		return toolgroups.Errorf(codeUnavailable,
			"No picture was made: the provider makes no more now (%v). Tell the user to ask again later.", failure.Err)
	case failure.Kind == agent.KindRejected, failure.Kind == agent.KindOverflow:
		return toolgroups.Errorf(codeRefused,
			"The provider does not take this request, and it cost nothing: %v. Tell the user why; make another call only if that helps.", failure.Err)
	default:
		return toolgroups.Errorf(codeUnavailable, "No picture was made: the provider cannot be reached (%v). Tell the user to ask again later.", failure.Err)
	}
}
