package jstools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

const (
	defaultEvalSeconds = 30
	maxEvalSeconds     = 120
)

type evalArgs struct {
	Code           string `json:"code"`
	TimeoutSeconds *int   `json:"timeout_seconds"`
}

func (t *Tools) eval(ctx context.Context, call toolgroups.Call, in evalArgs) (toolgroups.Result, error) {
	if strings.TrimSpace(in.Code) == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'code' is blank. Give JavaScript source text.")
	}
	seconds := defaultEvalSeconds
	if in.TimeoutSeconds != nil {
		seconds = min(max(*in.TimeoutSeconds, 1), maxEvalSeconds)
	}
	res, err := t.runScript(ctx, call, sandbox.Script{Source: in.Code, Timeout: time.Duration(seconds) * time.Second}, access{})
	if errors.Is(err, sandbox.ErrTimeout) {
		return res, toolgroups.Errorf(toolgroups.CodeTimeout,
			"The script did not end within %d s and was stopped. Make it do less, or raise timeout_seconds (up to %d).",
			seconds, maxEvalSeconds)
	}
	return res, err
}

// newHandler returns the handler that runs a user tool.
func (t *Tools) newHandler(e scriptSpec) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		params, err := t.paramsWithEnv(ctx, call, e.env)
		if err != nil {
			return toolgroups.Result{}, err
		}
		script := sandbox.Script{Source: e.source, Entry: e.function, Params: params, Timeout: e.timeout}
		res, err := t.runScript(ctx, call, script, access{sends: true, google: e.usesGoogle, hosts: hostsIn(script.Source)})
		if errors.Is(err, sandbox.ErrTimeout) {
			return res, toolgroups.Errorf(toolgroups.CodeTimeout, "Tool '%s' did not end within %s.", call.Name, e.timeout)
		}
		return res, err
	}
}

// paramsWithEnv returns the arguments of a call, with the values of the variables names as _env.
func (t *Tools) paramsWithEnv(ctx context.Context, call toolgroups.Call, names []string) (json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	if len(call.Arguments) > 0 {
		if err := json.Unmarshal(call.Arguments, &params); err != nil {
			return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "The arguments must be one JSON object.")
		}
	}
	env := map[string]string{}
	for _, name := range names {
		if t.cfg.Env == nil {
			break
		}
		value, ok, err := t.cfg.Env(ctx, call.Scope, name)
		if err != nil {
			return nil, fmt.Errorf("read the variable %s: %w", name, err)
		}
		if ok {
			env[name] = value
		}
	}
	data, err := json.Marshal(env)
	if err != nil {
		return nil, err
	}
	params["_env"] = data
	return json.Marshal(params)
}

// runScript runs a script for a call.
func (t *Tools) runScript(ctx context.Context, call toolgroups.Call, s sandbox.Script, may access) (toolgroups.Result, error) {
	text, origin := "", toolgroups.OriginOwn
	if !runsText.MatchString(s.Source) {
		may.named = hostsIn(s.Source + "\n" + string(s.Params))
	}
	err := files.WithWorkspace(call.Scope, func(root *workspace.Root) (err error) {
		h := &host{tools: t, root: root, scope: call.Scope, access: may}
		s.Prelude, s.Owner, s.MaxWait = hostPrelude, call.Owner, t.cfg.MaxWait
		s.Functions = h.functions()
		s.Log = func(level slog.Level, text string) {
			t.cfg.Logger.Log(ctx, level, "script console", "tool", call.Name, "session", call.Session, "text", text)
		}
		text, err = t.cfg.Engine.Run(ctx, s)
		if h.readOthers.Load() || h.bytesWritten.Load() > 0 || may.sends {
			origin = toolgroups.OriginComputed
		}
		return err
	})
	if err != nil {
		return toolgroups.Result{}, scriptError(err)
	}
	return toolgroups.Result{Text: files.Shorten(call.Scope, "js", text, 0, t.cfg.Now()), Origin: origin}, nil
}

// scriptError converts an error from the sandbox into one for the model.
func scriptError(err error) error {
	if fault, ok := errors.AsType[*sandbox.ScriptError](err); ok {
		return toolgroups.Errorf(toolgroups.CodeExecution, "%s", fault.Message)
	}
	if errors.Is(err, sandbox.ErrBusy) {
		return toolgroups.Errorf(toolgroups.CodeTimeout, "The script did not begin: other scripts are still running. Try again later.")
	}
	if errors.Is(err, sandbox.ErrScriptTooLong) {
		return toolgroups.Errorf(toolgroups.CodeExecution, "The script is longer than the limit of %d bytes.", sandbox.MaxSource)
	}
	return err
}
