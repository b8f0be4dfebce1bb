package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/guard"
	"oneclaw/toolgroups"
)

// errUnhandled is returned if the server has forgotten the session and has not handled the call.
var errUnhandled = errors.New("it forgets its sessions at once")

// handler returns the function behind a tool of the server.
func (s *server) handler(e entry) toolgroups.Handler {
	tool, request := e.Name, (*serverConn).callTool
	if e.ReadsResources {
		request = (*serverConn).readResource
	}
	return func(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		own, leave, err := s.forUser(ctx, call.User)
		if err != nil {
			return toolgroups.Result{}, s.callError(tool, err)
		}
		defer leave()
		res, err := own.call(ctx, e, call, request)
		if errors.Is(err, errUnhandled) {
			res, err = own.call(ctx, e, call, request)
		}
		if err != nil {
			return toolgroups.Result{}, s.callError(tool, err)
		}
		return s.convertResult(tool, call, res)
	}
}

// requestFunc makes the request of a call, and returns the result as the server sent it.
type requestFunc func(l *serverConn, ctx context.Context, params *sdk.CallToolParams) (json.RawMessage, error)

// call runs a tool as it was judged, on a new connection if there is none.
func (s *server) call(ctx context.Context, judged entry, call toolgroups.Call, request requestFunc) (json.RawMessage, error) {
	l, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer s.release(l, false)
	if err := s.checkOwn(judged); err != nil {
		return nil, err
	}
	tool := judged.Name
	timed, cancel := toolgroups.WithPausableTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	timed, posted := withPostStatus(timed)
	end, answered := l.askers.addCall(timed, call), false
	defer func() { end(answered) }()
	params := &sdk.CallToolParams{Name: tool}
	if len(call.Arguments) > 0 {
		params.Arguments = call.Arguments
	}
	defer l.progress.watch(ctx, params, s.redactor)()
	res, err := request(l, timed, params)
	if err != nil && l.askers.askToOpenURLs(timed, err) {
		res, err = request(l, timed, params)
	}
	refused := errorResponse(err)
	answered = err == nil || refused != nil || posted.Load() >= http.StatusBadRequest
	switch {
	case err == nil:
		s.markServed(l)
		return res, nil
	case refused == nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case refused == nil && timed.Err() != nil:
		s.countHang(l)
		return nil, context.Cause(timed)
	}
	return nil, s.callFailure(l, tool, posted, err)
}

// checkOwn returns an error if a person's server does not give a tool the permissions with which its call was judged.
func (s *server) checkOwn(judged entry) error {
	if s.parent == nil {
		return nil // its list is the one that counts
	}
	own, ok := s.listed()[judged.Name]
	switch {
	case s.effect(judged) == s.effect(judged.within(own)):
		return nil
	case !ok:
		return toolgroups.Errorf(CodeUnavailable, "The server does not list this tool for this account, so it was not called.")
	}
	return toolgroups.Errorf(CodeUnavailable, "With this account the tool does more than was known, so it was not called. Call it again: then it may ask first.")
}

// callFailure decides what a failed call says about its connection, and returns the error for the
// caller. posted is that of the call's own request over HTTP.
func (s *server) callFailure(l *serverConn, tool string, posted *postStatus, err error) error {
	status, refusal, forgotten := posted.Load(), posted.refusal.Load(), errors.Is(err, sdk.ErrSessionMissing)
	if l.session.ID() != "" && (status == http.StatusNotFound || refusesSession(err)) || status == statusUnsent && forgotten {
		s.dropConn(l, nil) // which is no failure of the server
		return fmt.Errorf("%w: %w", errUnhandled, err)
	}
	if errorResponse(err) != nil {
		s.markServed(l)
		return err
	}
	if known := userFixableError(err); known != nil {
		return known
	}
	cause := l.cause(err)
	switch {
	case forgotten:
		// The library fails all calls of a session as soon as any request finds it gone. The server may
		// be handling them.
		cause = errors.New("it has forgotten the session")
		s.dropConn(l, nil)
	case status == http.StatusTooManyRequests:
		return toolgroups.Errorf(CodeUnavailable, "MCP server '%s' limits the rate of calls and has not run '%s'. Try again later, or go on without it.",
			s.name, clean(tool, maxName))
	case refusal != nil:
		if !s.isShared(l) { // or else the other calls go on
			s.dropConn(l, refusal)
		}
		return toolgroups.Errorf(CodeUnavailable, "MCP server '%s' has not run '%s': %v. Go on without it, or tell the user.", s.name, clean(tool, maxName), refusal)
	case isRejected(err) && s.isShared(l): // the other calls go on
		s.log.Warn("a request to an MCP server failed", "err", s.redactor.line(withoutURL(err).Error()))
	default:
		s.dropConn(l, cause)
	}
	if isUnsent(err) {
		return toolgroups.Errorf(CodeUnavailable, "MCP server '%s' is unavailable: %s. The call of '%s' did not reach it.",
			s.name, s.redactor.line(withoutURL(err).Error()), clean(tool, maxName))
	}
	return cause
}

// lostSessionPattern matches what servers say when they do not know a session.
var lostSessionPattern = regexp.MustCompile(`(?i)^.{0,40}\bsession\b.{0,60}\b(not found|not exist|expired|unknown|invalid|terminated|closed)\b|\b(no valid|invalid|unknown|expired|missing)( \S+)? session\b`)

// refusesSession reports whether a server has refused a call because it does not know the session. Some say
// so with the status 200. The codes are those of the protocol's libraries.
func refusesSession(err error) bool {
	refused := errorResponse(err)
	return refused != nil && slices.Contains([]int64{-32000, -32001, jsonrpc.CodeInvalidRequest}, refused.Code) &&
		len(refused.Message) < 200 && lostSessionPattern.MatchString(refused.Message)
}

// maxRounds bounds how often a request is repeated with answers for the server.
const maxRounds = 10

// round is what a server asks for instead of a result.
type round struct {
	needsInput bool
	questions  sdk.InputRequestMap
	state      string
}

// answering makes a request, and repeats it with the user's answers while the server asks for them.
func (l *serverConn) answering(ctx context.Context, request func(answers sdk.InputResponseMap, state string) (round, error)) error {
	var answers sdk.InputResponseMap
	var last round
	for range maxRounds {
		asked, err := request(answers, last.state)
		if err != nil || !asked.needsInput {
			return err
		}
		if answers, err = l.askers.answerAll(ctx, asked.questions); err != nil {
			return err
		}
		last = asked
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("it asked for answers %d times", maxRounds)}
}

// callTool calls a tool.
func (l *serverConn) callTool(ctx context.Context, params *sdk.CallToolParams) (json.RawMessage, error) {
	var res *sdk.CallToolResult
	err := l.answering(ctx, func(answers sdk.InputResponseMap, state string) (asked round, err error) {
		once := *params // the answers belong to this call alone
		once.InputResponses, once.RequestState = answers, state
		if res, err = l.session.CallTool(ctx, &once); err != nil {
			return round{}, err
		}
		return round{res.NeedsInput(), res.InputRequests, res.RequestState}, nil
	})
	if err != nil {
		return nil, err
	}
	return unpackCallResult(res), nil
}

// readResource reads the resource that the arguments name, and returns it as the result of a call.
func (l *serverConn) readResource(ctx context.Context, params *sdk.CallToolParams) (json.RawMessage, error) {
	arguments, _ := params.Arguments.(json.RawMessage)
	var res *sdk.ReadResourceResult
	err := l.answering(ctx, func(answers sdk.InputResponseMap, state string) (asked round, err error) {
		read := &sdk.ReadResourceParams{URI: stringOf(objectFields(arguments)["uri"]), InputResponses: answers, RequestState: state}
		if token := params.GetProgressToken(); token != nil {
			read.SetProgressToken(token)
		}
		if res, err = l.session.ReadResource(ctx, read); err != nil {
			return round{}, err
		}
		return round{res.NeedsInput(), res.InputRequests, res.RequestState}, nil
	})
	if err != nil {
		return nil, err
	}
	return unpackResource(res)
}

// errHTTPRequest is the library's unexported error for a failed HTTP request, which looks like a
// response.
var errHTTPRequest = jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// errorResponse returns the server's error response; nil if there was no response.
func errorResponse(err error) *jsonrpc.Error {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || isRejected(err) {
		return nil
	}
	return refused
}

// isRejected reports whether one HTTP request failed, which does not end the connection.
func isRejected(err error) bool {
	failed, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && failed.Code == errHTTPRequest.Code && failed.Message == errHTTPRequest.Message
}

// isUnsent reports whether an HTTP request failed before it was sent.
func isUnsent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial" || errors.Is(guard.Reason(err), guard.ErrAddress)
}

// markServed records that the server has answered a call.
func (s *server) markServed(l *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.served, l.hangs = true, 0
	if s.conn == l {
		s.resetFailures()
	}
}

// countHang drops the connection after several unanswered calls in a row.
func (s *server) countHang(l *serverConn) {
	s.mu.Lock()
	l.hangs++
	hangs := l.hangs
	s.mu.Unlock()
	if hangs >= maxHangs {
		s.dropConn(l, fmt.Errorf("it left %d calls in a row without an answer", hangs))
	}
}

// callError returns the error of a call for the model.
func (s *server) callError(tool string, err error) error {
	var known *toolgroups.Error
	refused := errorResponse(err)
	name := clean(tool, maxName)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, errClosed), errors.Is(err, context.Canceled):
		return toolgroups.Errorf(toolgroups.CodeCancelled, "The call of '%s' was stopped before it ended.", name)
	case errors.Is(err, context.DeadlineExceeded):
		return toolgroups.Errorf(toolgroups.CodeTimeout,
			"MCP server '%s' did not answer the call of '%s' within %s. Whether it had its effect is unknown.", s.name, name, s.cfg.Timeout)
	case refused != nil:
		return toolgroups.Errorf(toolgroups.CodeExecution, "MCP server '%s' refused the call of '%s': %s",
			s.name, name, cmp.Or(s.redactor.line(refused.Message), "it gives no reason"))
	case errors.Is(err, errUnhandled):
		return toolgroups.Errorf(CodeUnavailable, "MCP server '%s' is unavailable: %v. The call of '%s' did not reach it.", s.name, errUnhandled, name)
	}
	return toolgroups.Errorf(CodeUnavailable,
		"MCP server '%s' failed in the middle of the call of '%s': %s. Whether it had its effect is unknown.",
		s.name, name, s.redactor.line(withoutURL(err).Error()))
}

// runConnect is the handler of the placeholder for unknown tools.
func (s *server) runConnect(ctx context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	err := s.connectOnce(ctx, call.User)
	if errors.Is(err, errClosed) {
		err = s.callError(s.naming.connectName(), err)
	}
	if err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.TextResult("Connected to MCP server '%s': it has %s. Load the group %s again to see them.",
		s.name, s.status().CountTools(), groupPrefix+s.name)
}

// connectOnce connects, as the user for a personal server, and thereby learns the tools.
func (s *server) connectOnce(ctx context.Context, user string) error {
	own, leave, err := s.forUser(ctx, user)
	if err != nil {
		return err
	}
	defer leave()
	l, err := own.acquire(ctx)
	if err == nil {
		own.release(l, false)
	}
	return err
}
