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
	defaultEvalTime = 30
	maxEvalTime     = 120
)

type evalArgs struct {
	Code    string `json:"code"`
	Timeout *int   `json:"timeout_seconds"`
}

func (t *Tools) eval(ctx context.Context, call toolgroups.Call, in evalArgs) (toolgroups.Result, error) {
	if strings.TrimSpace(in.Code) == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'code' is blank. Give JavaScript source text.")
	}
	seconds := defaultEvalTime
	if in.Timeout != nil {
		seconds = min(max(*in.Timeout, 1), maxEvalTime)
	}
	res, err := t.run(ctx, call, sandbox.Script{Source: in.Code, Timeout: time.Duration(seconds) * time.Second}, false)
	if errors.Is(err, sandbox.ErrTimeout) {
		return res, toolgroups.Errorf(toolgroups.CodeTimeout,
			"The script did not end within %d s and was stopped. Make it do less, or raise timeout_seconds (up to %d).",
			seconds, maxEvalTime)
	}
	return res, err
}

// handler runs a user tool.
func (t *Tools) handler(e entry) toolgroups.Handler {
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		params, err := t.params(ctx, call, e.env)
		if err != nil {
			return toolgroups.Result{}, err
		}
		script := sandbox.Script{Source: e.source, Entry: e.function, Params: params, Timeout: e.timeout}
		res, err := t.run(ctx, call, script, e.google)
		if errors.Is(err, sandbox.ErrTimeout) {
			return res, toolgroups.Errorf(toolgroups.CodeTimeout, "Tool '%s' did not end within %s.", call.Name, e.timeout)
		}
		return res, err
	}
}

// params returns the arguments with the manifest's variables as _env.
func (t *Tools) params(ctx context.Context, call toolgroups.Call, names []string) (json.RawMessage, error) {
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

// run runs a script for a call. google says that it may use the user's account.
func (t *Tools) run(ctx context.Context, call toolgroups.Call, s sandbox.Script, google bool) (toolgroups.Result, error) {
	text := ""
	err := files.WithWorkspace(call.Scope, func(root *workspace.Root) (err error) {
		h := &host{tools: t, root: root, scope: call.Scope}
		s.Prelude, s.Owner, s.MaxWait = hostPrelude, call.Owner, t.cfg.MaxWait
		s.Functions = h.functions(google)
		s.Log = func(level slog.Level, text string) {
			t.cfg.Logger.Log(ctx, level, "script console", "tool", call.Name, "session", call.Session, "text", text)
		}
		text, err = t.cfg.Engine.Run(ctx, s)
		return err
	})
	if err != nil {
		return toolgroups.Result{}, scriptError(err)
	}
	return toolgroups.Result{Text: files.Shorten(call.Scope, "js", text, 0, t.cfg.Now())}, nil
}

// scriptError says for the model what is wrong with a script.
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
