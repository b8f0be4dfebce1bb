package models

import (
	"cmp"
	"context"
	"errors"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/internal/budget"
	"oneclaw/internal/redact"
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

// ImageMaker makes pictures, each of which is paid before it is made. It implements images.Maker.
type ImageMaker struct {
	*media

	settings ImageSettings
}

// NewImageMaker returns a maker, or nil if no model is set. It sends no requests.
func NewImageMaker(s ImageSettings, cfg MediaConfig) (*ImageMaker, error) {
	m, err := cfg.open("images", s.Model, s.BaseURL, s.APIKey)
	if err != nil || m == nil {
		return nil, err
	}
	if m.atOpenAI {
		s.Quality = cmp.Or(s.Quality, "medium")
	}
	return &ImageMaker{m, s}, nil
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
	t := budget.Tokens{Input: int64(len(prompt)/4 + 1), Output: cmp.Or(imageTokens[m.settings.Quality], maxImageTokens)}
	if size != squareImage {
		t.Output += t.Output / 2
	}
	if source != nil {
		t.Input += sourceTokens
	}
	return m.priced(t)
}

// priced returns the usage of a call that took the given tokens, at the price of the settings.
func (m *ImageMaker) priced(t budget.Tokens) budget.Usage {
	u := m.usage(t)
	if m.settings.USD > 0 {
		u.Money, u.Unpriced = budget.Dollars(m.settings.USD), 0
	}
	return u
}

// MakeImage implements images.Maker. It pays first.
func (m *ImageMaker) MakeImage(ctx context.Context, scope toolgroups.Scope, prompt, size string, source []byte) (picture []byte, err error) {
	err = m.pay(ctx, scope, m.expected(prompt, size, source), func() (*budget.Usage, error) {
		made, used, err := m.client.CreateImage(ctx, openai.ImageRequest{Prompt: prompt, Size: size, Quality: m.settings.Quality, Source: source})
		if err != nil {
			m.Logger.Warn("no picture was made", "model", m.model, "err", err)
		}
		if picture = made; used.Output == 0 {
			return nil, err
		}
		paid := m.priced(budget.Tokens{Input: int64(used.Input), Output: int64(used.Output)})
		return &paid, err
	})
	if failure, ok := errors.AsType[*openai.OnceError](err); ok {
		return nil, imageError(failure)
	}
	if refusal, ok := errors.AsType[*agent.ModelError](err); ok {
		return nil, toolgroups.Errorf(codeNoBudget, "No picture was made: %s Tell the user so.", refusal.Notice)
	}
	if errors.Is(err, context.DeadlineExceeded) {
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
