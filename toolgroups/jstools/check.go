package jstools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
)

// checkTimeout bounds the check of new code. It is shorter than the timeouts of the tools, so that the model
// is told why the check did not end.
const checkTimeout = 5 * time.Second

// checkCode runs code without calling its function. Host functions fail meanwhile.
func (t *Tools) checkCode(ctx context.Context, call toolgroups.Call, code, source, function string) error {
	if strings.TrimSpace(source) == "" {
		return toolgroups.Errorf(code, "'js_code' is blank.")
	}
	h := &host{tools: t, scope: call.Scope, access: access{sends: true, google: true}}
	functions := h.functions()
	for name := range functions {
		functions[name] = func(context.Context, json.RawMessage) (any, error) {
			return nil, fmt.Errorf("only %s(params) may use what is outside of the script", function)
		}
	}
	_, err := t.cfg.Engine.Run(ctx, sandbox.Script{
		Source: source, Entry: function, CheckOnly: true, Prelude: hostPrelude, Functions: functions,
		Owner: call.Owner, Timeout: checkTimeout,
	})
	switch fault, ok := errors.AsType[*sandbox.ScriptError](err); {
	case err == nil:
		return nil
	case ok:
		return toolgroups.Errorf(code, "The code does not work: %s", fault.Message)
	case errors.Is(err, sandbox.ErrScriptTooLong):
		return toolgroups.Errorf(code, "The code is longer than the limit of %d bytes.", sandbox.MaxSource)
	case errors.Is(err, sandbox.ErrTimeout):
		return toolgroups.Errorf(code, "The code runs on outside of its function. Move that into %s(params).", function)
	}
	return err
}
