package config

import (
	"context"
	"strings"

	"oneclaw/toolgroups"
)

type setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (f *Family) getConfig(ctx context.Context, _ toolgroups.Call, in setting) (toolgroups.Result, error) {
	value, err := f.cfg.Settings.Values.Get(ctx, in.Key)
	if err != nil {
		return refused(ctx, toolgroups.CodeExecution, err)
	}
	if value == "" {
		return toolgroups.Text("%s is not set. Settings: %s.", in.Key, strings.Join(f.cfg.Settings.Values.Names(), ", "))
	}
	return toolgroups.Text("%s = %s", in.Key, value)
}

func (f *Family) setConfig(ctx context.Context, _ toolgroups.Call, in setting) (toolgroups.Result, error) {
	if strings.TrimSpace(in.Key) == "" || strings.TrimSpace(in.Value) == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Key and value must not be blank. Settings: %s.",
			strings.Join(f.cfg.Settings.Values.Names(), ", "))
	}
	if err := f.cfg.Settings.Values.Set(ctx, in.Key, in.Value); err != nil {
		return refused(ctx, CodeUpdateFailed, err)
	}
	value, err := f.cfg.Settings.Values.Get(ctx, in.Key)
	if err != nil {
		return refused(ctx, CodeUpdateFailed, err)
	}
	return toolgroups.Text("%s is now %s.", in.Key, value)
}

type variable struct {
	Action string  `json:"action"`
	Key    string  `json:"key"`
	Value  *string `json:"value"`
}

func (f *Family) manageVariable(ctx context.Context, _ toolgroups.Call, in variable) (toolgroups.Result, error) {
	if in.Action == "list" {
		return f.listVariables(ctx)
	}
	if strings.TrimSpace(in.Key) == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "The key is missing: %s needs the name of the variable.", in.Action)
	}
	switch in.Action {
	case "set":
		if in.Value == nil {
			return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "The value is missing: set needs one.")
		}
		if err := f.cfg.Settings.Variables.Set(ctx, in.Key, *in.Value); err != nil {
			return refused(ctx, CodeUpdateFailed, err)
		}
		return toolgroups.Text("Variable %s was set. Its value cannot be shown again.", in.Key)
	case "delete":
		if err := f.cfg.Settings.Variables.Delete(ctx, in.Key); err != nil {
			return refused(ctx, CodeDeletionFailed, err)
		}
		return toolgroups.Text("Variable %s was deleted.", in.Key)
	}
	return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "The action must be list, set or delete.")
}

func (f *Family) listVariables(ctx context.Context) (toolgroups.Result, error) {
	names, err := f.cfg.Settings.Variables.Names(ctx)
	if err != nil {
		return refused(ctx, toolgroups.CodeExecution, err)
	}
	if len(names) == 0 {
		return toolgroups.Text("There are no variables.")
	}
	return toolgroups.Text("%d variables:\n- %s = ••••", len(names), strings.Join(names, " = ••••\n- "))
}
