package settings

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/storage"
)

// The settings that may change while the program runs.
const (
	// SettingDefaultModel is the default model, as provider/model.
	SettingDefaultModel = "default_model"
	// SettingDefaultAgent is the id of the default agent.
	SettingDefaultAgent = "default_agent"
	// SettingRouting is the routing of tools.
	SettingRouting = "routing"
	// SettingUserBudget bounds the tokens that one user may use a day; 0 is no bound.
	SettingUserBudget = "budget_user_tokens_per_day"
	// SettingTotalBudget bounds the tokens of all users a day; 0 is no bound.
	SettingTotalBudget = "budget_total_tokens_per_day"
	// SettingTimeZone is the time zone of schedules and of get_current_time.
	SettingTimeZone = "time_zone"
	// SettingLogLevel is the log level.
	SettingLogLevel = "log_level"
)

// kind describes the valid values of a setting.
type kind struct {
	allowed string
	valid   func(value string) bool
}

func (k kind) check(value string) error {
	if k.valid(value) {
		return nil
	}
	return refuse(Invalid, "'%s' is not possible here. Allowed: %s.", shorten(value), k.allowed)
}

func oneOf(values ...string) kind {
	return kind{strings.Join(values, ", "), func(value string) bool { return slices.Contains(values, value) }}
}

func (r *records) kinds() map[string]kind {
	budget := kind{"a whole number of tokens, 0 for no bound", func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n >= 0
	}}
	return map[string]kind{
		SettingDefaultModel: {"provider_id/model_id of a known model", func(v string) bool {
			_, err := ParseRef(v)
			return err == nil
		}},
		SettingDefaultAgent: {"the id of an agent", usable},
		SettingRouting:      oneOf(r.cfg.Routings...),
		SettingUserBudget:   budget,
		SettingTotalBudget:  budget,
		SettingTimeZone: {"a name of the IANA time zone database, such as Europe/Berlin or UTC", func(v string) bool {
			_, err := time.LoadLocation(v)
			return err == nil && v != "" && v != "Local"
		}},
		SettingLogLevel: oneOf("debug", "info", "warn", "error"),
	}
}

// Values are the settings with a name and a value.
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

func (s Values) known(name string) error {
	if _, known := s.cfg.Defaults[name]; known || name == SettingDefaultModel || name == SettingDefaultAgent {
		return nil
	}
	return refuse(NotFound, "There is no setting '%s'. Settings: %s.", shorten(name), strings.Join(s.Names(), ", "))
}

// Get returns a setting: the stored value, else the default; empty if it is not set. A stored
// value that is no longer valid is ignored.
func (s Values) Get(ctx context.Context, name string) (string, error) {
	if err := s.known(name); err != nil {
		return "", err
	}
	value, exists, err := get[string](ctx, s.records, valuePrefix+name)
	if err != nil {
		return "", err
	}
	if !exists {
		return s.cfg.Defaults[name], nil
	}
	if err := s.kinds()[name].check(value); err != nil {
		s.log.Warn("setting is ignored", "name", name, "err", err)
		return s.cfg.Defaults[name], nil
	}
	return value, nil
}

// Changed returns the stored value of a setting, if any.
func (s Values) Changed(ctx context.Context, name string) (value string, changed bool, err error) {
	if err := s.known(name); err != nil {
		return "", false, err
	}
	value, changed, err = get[string](ctx, s.records, valuePrefix+name)
	return value, changed, err
}

// Set changes a setting.
func (s Values) Set(ctx context.Context, name, value string) error {
	if err := s.known(name); err != nil {
		return err
	}
	value = strings.TrimSpace(value)
	if err := s.kinds()[name].check(value); err != nil {
		return err
	}
	if err := s.exists(ctx, name, value); err != nil {
		return err
	}
	// Any: the last value counts.
	return s.put(ctx, valuePrefix+name, value, storage.Any)
}

// exists refuses an unknown model or agent.
func (s Values) exists(ctx context.Context, name, value string) error {
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
