package config

import (
	"context"
	"fmt"
	"strings"

	"oneclaw/toolgroups"
)

type settingArgs struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (f *Tools) getConfig(ctx context.Context, _ toolgroups.Call, in settingArgs) (string, error) {
	value, err := f.cfg.Settings.Values.Get(ctx, in.Key)
	if err != nil {
		return "", err
	}
	if value == "" {
		return fmt.Sprintf("%s is not set. Settings: %s.", in.Key, strings.Join(f.cfg.Settings.Values.Names(), ", ")), nil
	}
	_, changed, err := f.cfg.Settings.Values.GetStored(ctx, in.Key)
	if changed {
		return fmt.Sprintf("%s = %s, changed in a chat. %s", in.Key, value, takesBack), err
	}
	return fmt.Sprintf("%s = %s", in.Key, value), err
}

// defaultValue is the value with which set_config takes a change back.
const defaultValue = "default"

// takesBack says how a change is taken back.
const takesBack = "It counts instead of the bot's settings file; set_config with the value '" + defaultValue + "' takes it back."

func (f *Tools) setConfig(ctx context.Context, _ toolgroups.Call, in settingArgs) (string, error) {
	if strings.TrimSpace(in.Key) == "" || strings.TrimSpace(in.Value) == "" {
		return "", toolgroups.Errorf(toolgroups.CodeInvalid, "Key and value must not be blank. Settings: %s.",
			strings.Join(f.cfg.Settings.Values.Names(), ", "))
	}
	if strings.EqualFold(strings.TrimSpace(in.Value), defaultValue) {
		if err := f.cfg.Settings.Values.Reset(ctx, in.Key); err != nil {
			return "", err
		}
		value, err := f.cfg.Settings.Values.Get(ctx, in.Key)
		if value == "" { // such as the host's time zone, which may have no name
			return fmt.Sprintf("%s has its default again.", in.Key), err
		}
		return fmt.Sprintf("%s has its default again: %s.", in.Key, value), err
	}
	if err := f.cfg.Settings.Values.Set(ctx, in.Key, in.Value); err != nil {
		return "", err
	}
	value, err := f.cfg.Settings.Values.Get(ctx, in.Key)
	return fmt.Sprintf("%s is now %s. %s", in.Key, value, takesBack), err
}

type variableArgs struct {
	Action string  `json:"action"`
	Key    string  `json:"key"`
	Value  *string `json:"value"`
}

func (f *Tools) manageVariable(ctx context.Context, _ toolgroups.Call, in variableArgs) (string, error) {
	if in.Action == "list" {
		return f.listVariables(ctx)
	}
	if strings.TrimSpace(in.Key) == "" {
		return "", toolgroups.Errorf(toolgroups.CodeInvalid, "The key is missing: %s needs the name of the variable.", in.Action)
	}
	switch in.Action {
	case "set":
		if in.Value == nil {
			return "", toolgroups.Errorf(toolgroups.CodeInvalid, "The value is missing: set needs one.")
		}
		err := f.cfg.Settings.Variables.Set(ctx, in.Key, *in.Value)
		return fmt.Sprintf("Variable %s was set. Its value cannot be shown again.", in.Key), toolError(ctx, codeUpdateFailed, err)
	case "delete":
		err := f.cfg.Settings.Variables.Delete(ctx, in.Key)
		return fmt.Sprintf("Variable %s was deleted.", in.Key), toolError(ctx, codeDeletionFailed, err)
	}
	return "", toolgroups.Errorf(toolgroups.CodeInvalid, "The action must be list, set or delete.")
}

func (f *Tools) listVariables(ctx context.Context) (string, error) {
	names, err := f.cfg.Settings.Variables.Names(ctx)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "There are no variables.", nil
	}
	return fmt.Sprintf("%d variables:\n- %s = ••••", len(names), strings.Join(names, " = ••••\n- ")), nil
}
