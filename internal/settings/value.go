package settings

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The settings that may change while the program runs.
const (
	// SettingDefaultModel is the model, as provider/model, where nothing else is chosen.
	SettingDefaultModel = "default_model"
	// SettingDefaultAgent is the id of the agent where a chat has chosen none.
	SettingDefaultAgent = "default_agent"
	// SettingRouting is how tools reach the model.
	SettingRouting = "routing"
	// SettingUserBudget bounds the tokens that one user may spend a day; 0 is no bound.
	SettingUserBudget = "budget_user_tokens_per_day"
	// SettingTotalBudget bounds the tokens that all may spend a day; 0 is no bound.
	SettingTotalBudget = "budget_total_tokens_per_day"
	// SettingTimeZone is that of schedules and of get_current_time.
	SettingTimeZone = "time_zone"
	// SettingLogLevel is how much is logged.
	SettingLogLevel = "log_level"
)

// kind is what may stand in a setting.
type kind struct {
	allowed string
	valid   func(s *Settings, value string) bool
}

func (k kind) check(s *Settings, value string) error {
	if k.valid(s, value) {
		return nil
	}
	allowed := k.allowed
	if allowed == "" {
		allowed = strings.Join(s.cfg.Routings, ", ")
	}
	return refuse(Invalid, "'%s' is not possible here. Allowed: %s.", shorten(value), allowed)
}

func oneOf(values ...string) func(*Settings, string) bool {
	return func(_ *Settings, value string) bool { return slices.Contains(values, value) }
}

func tokens(_ *Settings, value string) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && n >= 0
}

func kinds() map[string]kind {
	const budget = "a whole number of tokens, 0 for no bound"
	return map[string]kind{
		SettingDefaultModel: {"provider_id/model_id of a known model", func(_ *Settings, v string) bool {
			_, err := ParseRef(v)
			return err == nil
		}},
		SettingDefaultAgent: {"the id of an agent", func(_ *Settings, v string) bool { return usable(v) }},
		SettingRouting:      {"", func(s *Settings, v string) bool { return slices.Contains(s.cfg.Routings, v) }},
		SettingUserBudget:   {budget, tokens},
		SettingTotalBudget:  {budget, tokens},
		SettingTimeZone: {"a name of the IANA time zone database, such as Europe/Berlin or UTC", func(_ *Settings, v string) bool {
			_, err := time.LoadLocation(v)
			return err == nil && v != "" && v != "Local"
		}},
		SettingLogLevel: {"debug, info, warn, error", oneOf("debug", "info", "warn", "error")},
	}
}

// Names returns the settings that exist, sorted.
func (s *Settings) Names() []string {
	names := map[string]string{SettingDefaultModel: "", SettingDefaultAgent: ""}
	maps.Copy(names, s.cfg.Defaults)
	return slices.Sorted(maps.Keys(names))
}

func (s *Settings) known(name string) error {
	if names := s.Names(); !slices.Contains(names, name) {
		return refuse(NotFound, "There is no setting '%s'. Settings: %s.", shorten(name), strings.Join(names, ", "))
	}
	return nil
}

// Value returns a setting: what was set, else what the program was started with. An
// empty one is not set. What is stored but can no longer be is not looked at.
func (s *Settings) Value(ctx context.Context, name string) (string, error) {
	if err := s.known(name); err != nil {
		return "", err
	}
	value, _, exists, err := get[string](ctx, s, valuePrefix+name)
	if err != nil {
		return "", err
	}
	return s.effective(name, value, exists), nil
}

func (s *Settings) effective(name, value string, exists bool) string {
	if !exists {
		return s.cfg.Defaults[name]
	}
	if err := kinds()[name].check(s, value); err != nil {
		s.log.Warn("setting is ignored", "name", name, "err", err)
		return s.cfg.Defaults[name]
	}
	return value
}

// SetValue changes a setting.
func (s *Settings) SetValue(ctx context.Context, name, value string) error {
	if err := s.known(name); err != nil {
		return err
	}
	value = strings.TrimSpace(value)
	if err := kinds()[name].check(s, value); err != nil {
		return err
	}
	if err := s.exists(ctx, name, value); err != nil {
		return err
	}
	return change(ctx, s, valuePrefix+name, func(v *string, _ bool) error {
		*v = value
		return nil
	})
}

// exists refuses the name of a model or agent that there is not.
func (s *Settings) exists(ctx context.Context, name, value string) error {
	var err error
	switch name {
	case SettingDefaultModel:
		var ref Ref
		if ref, err = ParseRef(value); err == nil {
			_, err = s.Model(ctx, ref)
		}
	case SettingDefaultAgent:
		var a Agent
		if a, err = s.Agent(ctx, value); err == nil && a.Owner != "" {
			return refuse(Invalid, "Agent '%s' belongs to one user or chat and can not be everybody's.", a.Name)
		}
	}
	if refusal := (*Error)(nil); errors.As(err, &refusal) {
		return refuse(Invalid, "%s", refusal.Message)
	}
	return err
}

// Values are the settings with their types. A setting that does not exist has the zero
// value.
type Values struct {
	DefaultModel Ref
	DefaultAgent string
	Routing      string
	// UserBudget and TotalBudget are tokens a day; 0 is no bound.
	UserBudget  int64
	TotalBudget int64
	TimeZone    string
	LogLevel    string
}

// Values returns all settings.
func (s *Settings) Values(ctx context.Context) (Values, error) {
	stored, err := list[string](ctx, s, valuePrefix)
	if err != nil {
		return Values{}, err
	}
	text := map[string]string{}
	for _, name := range s.Names() {
		value, exists := stored[name]
		text[name] = s.effective(name, value, exists)
	}
	// What is effective has been checked, so that what does not parse is empty.
	ref, _ := ParseRef(text[SettingDefaultModel])
	user, _ := strconv.ParseInt(text[SettingUserBudget], 10, 64)
	total, _ := strconv.ParseInt(text[SettingTotalBudget], 10, 64)
	return Values{
		DefaultModel: ref, DefaultAgent: text[SettingDefaultAgent], Routing: text[SettingRouting],
		UserBudget: user, TotalBudget: total, TimeZone: text[SettingTimeZone], LogLevel: text[SettingLogLevel],
	}, nil
}
