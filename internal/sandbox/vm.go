package sandbox

import (
	"cmp"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"modernc.org/quickjs"
)

//go:embed prelude.js
var prelude string

// evalAsync allows await at the top level of a script (JS_EVAL_FLAG_ASYNC of quickjs.h). Its value
// is then a promise of {value}.
const evalAsync = quickjs.EvalGlobal | 1<<7

// startTask runs the task until it waits, and returns the function that delivers events.
func (c *runner) startTask(t task) (settle quickjs.Value, err error) {
	natives := map[string]quickjs.HostFunc{
		"__call": func(args []any) (any, error) {
			text, err := c.call(stringArg(args, 0), stringArg(args, 1))
			return encodeResult(text, err), nil
		},
		"__start": func(args []any) (any, error) { return c.startCall(stringArg(args, 0), stringArg(args, 1)) },
		"__timer": func(args []any) (any, error) {
			c.setTimer(intArg(args, 0), intArg(args, 1))
			return nil, nil
		},
		"__log": func(args []any) (any, error) {
			return nil, c.parent.Send(childMessage{Level: stringArg(args, 0), Text: truncate(stringArg(args, 1))})
		},
		"__finish": func(args []any) (any, error) {
			failed, _ := args[0].(bool)
			c.finish(failed, stringArg(args, 1))
			return nil, nil
		},
		"__url": func(args []any) (any, error) {
			return encodeResult(parseURL(stringArg(args, 0), stringArg(args, 1))), nil
		},
		"__quote":  func(args []any) (any, error) { return quoteLargeNumbers(stringArg(args, 0)), nil },
		"__random": func(args []any) (any, error) { return randomBytes(intArg(args, 0)) },
	}
	for name, f := range natives {
		if err := c.vm.RegisterHostFunc(name, f); err != nil {
			return settle, err
		}
	}
	setUp, err := c.vm.EvalValue(prelude, quickjs.EvalGlobal)
	if err != nil {
		return settle, fmt.Errorf("prelude: %w", readableError(err))
	}
	host, err := setUp.CallValue(quickjs.UndefinedValue, maxConcurrentCalls, append([]string{}, t.Functions...))
	if err != nil {
		return settle, fmt.Errorf("prelude: %w", readableError(err))
	}
	if settle, err = c.property(host, "settle"); err != nil {
		return settle, err
	}
	if t.Prelude != "" {
		if err := c.defineGlobals(host, t.Prelude); err != nil {
			return settle, fmt.Errorf("prelude: %w", readableError(err))
		}
	}
	run, err := c.property(host, "run")
	if err != nil {
		return settle, err
	}
	value, err := c.eval(t)
	if err != nil {
		return settle, readableError(err)
	}
	if _, err := run.Call(quickjs.UndefinedValue, value, t.Entry, cmp.Or(string(t.Params), "{}"), t.Check); err != nil {
		return settle, readableError(err)
	}
	return settle, nil
}

// defineGlobals calls code that turns the host functions into globals.
func (c *runner) defineGlobals(host quickjs.Value, code string) error {
	f, err := c.vm.EvalValue(code, quickjs.EvalGlobal)
	if err != nil {
		return err
	}
	functions, err := c.property(host, "functions")
	if err != nil {
		return err
	}
	_, err = f.Call(quickjs.UndefinedValue, functions)
	return err
}

func (c *runner) property(of quickjs.Value, name string) (quickjs.Value, error) {
	atom, err := c.vm.NewAtom(name)
	if err != nil {
		return quickjs.Value{}, err
	}
	return of.GetPropertyValue(atom)
}

// eval evaluates the source. If no function is named, code with a return at its top level is
// evaluated as the body of a function.
func (c *runner) eval(t task) (quickjs.Value, error) {
	value, err := c.vm.EvalValue(t.Source, evalAsync)
	var e *quickjs.Error
	if err == nil || t.Entry != "" || !errors.As(err, &e) || e.Name != "SyntaxError" {
		return value, err
	}
	body, bodyErr := c.vm.EvalValue("(async () => {"+t.Source+"\n})()", evalAsync)
	if bodyErr != nil {
		return value, err
	}
	return body, nil
}

// stringArg and intArg return an argument, whose type the prelude ensures.
func stringArg(args []any, i int) string {
	s, _ := args[i].(string)
	return s
}

func intArg(args []any, i int) int {
	switch n := args[i].(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return 0
}

// encodeResult encodes a JSON value or an error as one text.
func encodeResult(value string, err error) string {
	if err == nil {
		return value
	}
	quoted, err := json.Marshal(err.Error())
	if err != nil {
		quoted = []byte(`""`)
	}
	return `{"error":` + string(quoted) + `}`
}

// encodeReply encodes a reply for the prelude.
func encodeReply(r reply) string {
	switch {
	case r.Error != nil:
		return encodeResult("", errors.New(*r.Error))
	case len(r.Value) == 0:
		return `{"value":null}`
	}
	return `{"value":` + string(r.Value) + `}`
}

func truncate(s string) string {
	if len(s) <= MaxResult {
		return s
	}
	return strings.ToValidUTF8(s[:MaxResult], "") + fmt.Sprintf("\n[cut: the first %d of %d bytes]", MaxResult, len(s))
}

// randomBytes returns bytes as a number array.
func randomBytes(n int) ([]int, error) {
	data := make([]byte, max(0, min(n, 65_536)))
	if _, err := rand.Read(data); err != nil {
		return nil, err
	}
	out := make([]int, len(data))
	for i, b := range data {
		out[i] = int(b)
	}
	return out, nil
}

// parseURL returns the parts of an address, for the URL class.
func parseURL(input, base string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(input))
	if err == nil && base != "" {
		var b *url.URL
		if b, err = url.Parse(base); err == nil {
			u = b.ResolveReference(u)
		}
	}
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("invalid URL: %.200q", input)
	}
	password, _ := u.User.Password()
	port := u.Port()
	if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		port = ""
	}
	path := u.EscapedPath()
	if path == "" && u.Host != "" {
		path = "/"
	}
	if u.Opaque != "" {
		path = u.Opaque
	}
	data, err := json.Marshal(map[string]any{"value": map[string]any{
		"protocol": u.Scheme + ":", "username": u.User.Username(), "password": password,
		"hostname": strings.ToLower(u.Hostname()), "port": port, "pathname": path,
		"search": withPrefix("?", u.RawQuery), "hash": withPrefix("#", u.EscapedFragment()), "slashes": u.Opaque == "",
	}})
	return string(data), err
}

// jsonTokens matches the texts and numbers of JSON.
var jsonTokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`)

// quoteLargeNumbers returns JSON in which whole numbers that JavaScript cannot hold are texts.
func quoteLargeNumbers(text string) string {
	const maxSafe = 1<<53 - 1
	return jsonTokens.ReplaceAllStringFunc(text, func(token string) string {
		if token[0] == '"' || strings.ContainsAny(token, ".eE") {
			return token
		}
		if n, err := strconv.ParseInt(token, 10, 64); err == nil && n <= maxSafe && n >= -maxSafe {
			return token
		}
		return `"` + token + `"`
	})
}

func withPrefix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
