package settings

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// The names of the settings in [Values].
const (
	// SettingDefaultModel is the default model, as provider/model.
	SettingDefaultModel = "default_model"
	// SettingDefaultAgent is the id of the default agent.
	SettingDefaultAgent = "default_agent"
	// SettingRouting is the routing of tools.
	SettingRouting = "routing"
	// SettingUserBudget bounds the tokens that one user may use per day; 0 means no bound.
	SettingUserBudget = "budget_user_tokens_per_day"
	// SettingTotalBudget bounds the tokens that all users may use per day; 0 means no bound.
	SettingTotalBudget = "budget_total_tokens_per_day"
	// SettingTimeZone is the bot's time zone, for example of schedules, the clock and budgets.
	SettingTimeZone = "time_zone"
	// SettingLogLevel is the log level.
	SettingLogLevel = "log_level"
)

// valueRule describes the valid values of a setting.
type valueRule struct {
	allowed string
	valid   func(value string) bool
}

func (k valueRule) check(value string) error {
	if k.valid(value) {
		return nil
	}
	return refuse(Invalid, "'%s' is not possible here. Allowed: %s.", shorten(value), k.allowed)
}

func oneOf(values ...string) valueRule {
	return valueRule{strings.Join(values, ", "), func(value string) bool { return slices.Contains(values, value) }}
}

func (r *records) valueRules() map[string]valueRule {
	budget := valueRule{"a whole number of tokens, 0 for no bound", func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n >= 0
	}}
	return map[string]valueRule{
		SettingDefaultModel: {"provider_id/model_id of a known model", func(v string) bool {
			_, err := ParseRef(v)
			return err == nil
		}},
		SettingDefaultAgent: {"the id of an agent", isValidID},
		SettingRouting:      oneOf(r.cfg.Routings...),
		SettingUserBudget:   budget,
		SettingTotalBudget:  budget,
		SettingTimeZone: {"a name of the IANA time zone database, such as Europe/Berlin or UTC", func(v string) bool {
			_, err := wording.LoadZone(v)
			return err == nil
		}},
		SettingLogLevel: oneOf("debug", "info", "warn", "error"),
	}
}

// Values stores the settings that have a name and a value.
type Values struct {
	*records
	models Models
	agents Agents
}

// Names returns the names of the settings, sorted.
func (s Values) Names() []string {
	names := map[string]string{SettingDefaultModel: "", SettingDefaultAgent: ""}
	maps.Copy(names, s.cfg.Defaults)
	return slices.Sorted(maps.Keys(names))
}

func (s Values) checkKnown(name string) error {
	if _, known := s.cfg.Defaults[name]; known || name == SettingDefaultModel || name == SettingDefaultAgent {
		return nil
	}
	return refuse(NotFound, "There is no setting '%s'. Settings: %s.", shorten(name), strings.Join(s.Names(), ", "))
}

// Get returns the stored value of a setting, or else its default, which may be empty. A stored value
// that is no longer valid is ignored.
func (s Values) Get(ctx context.Context, name string) (string, error) {
	if err := s.checkKnown(name); err != nil {
		return "", err
	}
	value, exists, err := get[string](ctx, s.records, valuePrefix+name)
	if err != nil {
		return "", err
	}
	if !exists {
		return s.cfg.Defaults[name], nil
	}
	if err := s.valueRules()[name].check(value); err != nil {
		s.log.Warn("ignoring an invalid setting", "name", name, "err", err)
		return s.cfg.Defaults[name], nil
	}
	return value, nil
}

// GetStored returns the stored value of a setting; changed reports whether there is one.
func (s Values) GetStored(ctx context.Context, name string) (value string, changed bool, err error) {
	if err := s.checkKnown(name); err != nil {
		return "", false, err
	}
	value, changed, err = get[string](ctx, s.records, valuePrefix+name)
	return value, changed, err
}

// Set changes a setting.
func (s Values) Set(ctx context.Context, name, value string) error {
	if err := s.checkKnown(name); err != nil {
		return err
	}
	value = strings.TrimSpace(value)
	if err := s.valueRules()[name].check(value); err != nil {
		return err
	}
	if err := s.checkExists(ctx, name, value); err != nil {
		return err
	}
	// Any: the last write wins.
	return s.put(ctx, valuePrefix+name, value, storage.Any)
}

// Reset makes a setting have its default again.
func (s Values) Reset(ctx context.Context, name string) error {
	if err := s.checkKnown(name); err != nil {
		return err
	}
	return s.remove(ctx, valuePrefix+name)
}

// checkExists returns an error for a default model or agent that does not exist, or that is not shared.
func (s Values) checkExists(ctx context.Context, name, value string) error {
	var err error
	switch name {
	case SettingDefaultModel:
		var ref Ref
		if ref, err = ParseRef(value); err == nil {
			_, err = s.models.Get(ctx, ref)
		}
	case SettingDefaultAgent:
		var a Agent
		if a, err = s.agents.Get(ctx, value); err == nil && a.Owner != "" {
			return refuse(Invalid, "Agent '%s' belongs to one user or chat and cannot be everybody's.", a.Name)
		}
	}
	if refusal := (*Error)(nil); errors.As(err, &refusal) {
		return refuse(Invalid, "%s", refusal.Message)
	}
	return err
}
