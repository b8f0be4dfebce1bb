package mcp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/mcp/oauth"
)

// The official suite plays a server to the client of the program, in each of its scenarios. What
// it is to find is in testdata/conformance.yml, with the reasons: it fails where something else
// goes wrong, and where something that is listed there works.
func TestTheClientConformsToTheProtocol(t *testing.T) {
	t.Parallel()
	node, script := installed(t, "conformance")
	self, err := os.Executable()
	must(t, err)
	shim, err := filepath.Abs("testdata/servers/older-node.mjs")
	must(t, err)
	expected, err := filepath.Abs("testdata/conformance.yml")
	must(t, err)
	for _, file := range []string{shim, expected} {
		_, err := os.ReadFile(file) // so that go test runs this again when it changes
		must(t, err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--import", shim, script, "client", "--suite", "all", "--timeout", "600000", "--expected-failures", expected, "--command", self, "-o", t.TempDir())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), modeVariable+"=conformance", turnVariable+"="+filepath.Join(t.TempDir(), "turn"), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// turnVariable names a file that a client locks while it runs: the suite starts all at once, which a
// busy machine does not bring to an end within the times that a server has.
const turnVariable = "ONECLAW_TEST_MCP_TURN"

// visitor is somebody at a bot with one server.
type visitor struct {
	bot  *mcp.Client
	kind string
}

// conform is the program under the suite: a bot with the server at the last argument, and somebody
// who signs in where that is wanted and has each tool called.
func conform() (err error) {
	turn, err := os.Create(os.Getenv(turnVariable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, "db"), NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		ToolCalls    []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	server := mcp.Server{URL: os.Args[len(os.Args)-1], Timeout: patience, StartTimeout: patience}
	if strings.HasPrefix(scenario, "auth/") {
		server.Auth, server.ClientID = mcp.AuthOAuth, given.ClientID
	}
	cfg := mcp.Config{
		Accounts: mcp.AccountsConfig{KV: store, SecretKey: []byte("0123456789abcdef"), PublicURL: "https://conformance-test.local"},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if server.ClientID != "" && given.ClientSecret != "" {
		server.ClientSecret = "${SECRET}"
		cfg.LookupEnv = func(string) (string, bool) { return given.ClientSecret, true }
	}
	cfg.Servers = map[string]mcp.Server{"x": server}
	v := &visitor{kind: scenario}
	if v.bot, err = mcp.New(cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.bot.Close()) }()
	// The person takes what a form offers.
	ctx := toolgroups.WithAsker(context.Background(), func(_ context.Context, q toolgroups.Question) (toolgroups.Answer, error) {
		answer := toolgroups.Answer{Action: toolgroups.AnswerAccept, Values: map[string]any{}}
		for _, f := range q.Fields {
			if answer.Values[f.Name] = f.Default; f.Default == nil && f.Type == toolgroups.FieldBoolean {
				answer.Values[f.Name] = true
			}
		}
		return answer, nil
	})
	if server.Auth != "" {
		if err := v.signIn(ctx, ""); err != nil {
			return err
		}
	} else {
		v.bot.Discover(ctx)
	}
	if given.ToolCalls == nil {
		return v.callAll(ctx)
	}
	for _, call := range given.ToolCalls {
		if err := v.call(ctx, "x_"+call.Name, call.Arguments); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return nil
}

// signIn brings the person through a sign-in, as a browser would.
func (v *visitor) signIn(ctx context.Context, args string) error {
	send := func(args string) (string, error) {
		return v.bot.ConnectAccount(ctx, "x", toolgroups.RoleUser, oauth.Request{User: "telegram:1", Chat: "telegram:1", Direct: true, Args: args})
	}
	text, err := send(args)
	if err != nil {
		return err
	}
	visit := func(address string) string {
		w := httptest.NewRecorder()
		v.bot.Pages().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, strings.TrimPrefix(address, "https://conformance-test.local"), http.NoBody))
		return w.Body.String()
	}
	find := func(page string, pattern interface{ FindStringSubmatch(string) []string }) string {
		found := pattern.FindStringSubmatch(page)
		if found == nil {
			err = cmp.Or(err, fmt.Errorf("the person is shown %q", page))
			return ""
		}
		return html.UnescapeString(found[1])
	}
	link := find(text, linkPattern)
	if err != nil {
		return err
	}
	next := find(visit(link), nextPattern)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, next, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	proof := find(visit(resp.Header.Get("Location")), proofPattern)
	if err != nil {
		return err
	}
	text, err = send(proof)
	fmt.Fprintln(os.Stderr, text)
	if err == nil && args == "" && strings.Contains(text, "cannot be read yet") && strings.Contains(text, "/connect x") {
		return v.signIn(ctx, "again")
	}
	return err
}

// callAll has each tool called, with what the scenarios expect.
func (v *visitor) callAll(ctx context.Context) error {
	for _, tool := range v.bot.Groups()[0].Tools {
		arguments := json.RawMessage(`{}`)
		switch {
		case tool.Name == "x_add_numbers":
			arguments = json.RawMessage(`{"a":5,"b":3}`)
		case tool.Name == "x_json_schema_echo":
			arguments = json.RawMessage(`{"schema":` + string(v.tool("x_json_schema_2020_12_tool").Parameters) + `}`)
		case strings.HasPrefix(v.kind, "http-"):
			arguments = json.RawMessage(`{"region":"us-west1"}`)
		}
		if err := v.call(ctx, tool.Name, arguments); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return nil
}

// tool is a tool as it is offered now; the zero value where it is not.
func (v *visitor) tool(name string) (tool toolgroups.Tool) {
	for _, one := range v.bot.Groups()[0].Tools {
		if one.Name == name {
			tool = one
		}
	}
	return tool
}

// maxSignIns is how often the person signs in for one call.
const maxSignIns = 2

// call calls a tool, and signs in again where the tool asks for that.
func (v *visitor) call(ctx context.Context, name string, arguments json.RawMessage) error {
	for try := 0; ; try++ {
		tool := v.tool(name)
		if tool.Run == nil {
			return fmt.Errorf("there is no tool %s", name)
		}
		res, fault := toolgroups.Run(ctx, nil, tool, toolgroups.Call{
			ID: "1", Name: name, Arguments: arguments, Scope: toolgroups.Scope{User: "telegram:1", Role: toolgroups.RoleAdmin},
		})
		fmt.Fprintln(os.Stderr, name, res.Text, fault)
		if fault == nil || !strings.Contains(fault.Message, "/connect x") || try == maxSignIns {
			return nil
		}
		if err := v.signIn(ctx, "again"); err != nil {
			return err
		}
	}
}
