package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/api/googleapi"

	"oneclaw/internal/readable"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Conn is a call of a tool with the account that it uses.
type Conn struct {
	toolgroups.Call
	// Client adds the token of the account to each request.
	Client *http.Client
	// Writes counts the modifying requests of the call.
	Writes *Writes
	// Scopes are required by the operation.
	Scopes []string
	// Reader reads HTML.
	Reader *readable.Reader
	// Location is the time zone of times without an offset.
	Location *time.Location
	// Pause is the first pause before a retry.
	Pause time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Writes counts modifying requests. It may be used concurrently.
type Writes struct{ sent, accepted, lost atomic.Int32 }

// Record counts a request with its response, which is nil if none arrived. connected says whether there
// was a connection: without one, Google cannot have received the request.
func (w *Writes) Record(req *http.Request, resp *http.Response, connected bool) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || resp == nil && !connected {
		return
	}
	w.sent.Add(1)
	switch {
	case resp == nil:
		w.lost.Add(1)
	case resp.StatusCode >= 200 && resp.StatusCode <= 299:
		w.accepted.Add(1)
	}
}

// allAccepted reports whether there were modifying requests and Google has accepted all of them.
func (w *Writes) allAccepted() bool {
	return w.accepted.Load() > 0 && w.accepted.Load() == w.sent.Load()
}

// successWithoutResponse returns the result of a call that succeeded at Google but whose response could
// not be read: the model would repeat a call that is reported as failed. It returns false for any other
// error.
func (c *Conn) successWithoutResponse(err error) (toolgroups.Result, bool) {
	var answer *googleapi.Error
	var unreached *url.Error
	if !c.Writes.allAccepted() || IsToolError(err) || errors.As(err, &answer) || errors.As(err, &unreached) {
		return toolgroups.Result{}, false
	}
	res, encoding := c.encodeResult(OfOthers{map[string]any{"success": true, "note": fmt.Sprintf("Google has done it, but the answer could not be read (%s). "+
		"Do not make this call again; read what is there now if something of the answer is needed.", PlainLine(err.Error()))}})
	return res, encoding == nil
}

// SuccessResult returns the result of a request with an empty response.
func SuccessResult() any { return map[string]bool{"success": true} }

// OfOthers is a result of an operation with words of others, of a tool whose results usually have none.
type OfOthers struct{ Result any }

// encodeResult encodes the result of an operation. A result that is too long for the model is indented, so
// that it has lines, and cut; a file in the workspace has the whole result.
func (c *Conn) encodeResult(out any) (toolgroups.Result, error) {
	if res, ok := out.(toolgroups.Result); ok {
		return res, nil
	}
	if of, ok := out.(OfOthers); ok {
		res, err := c.encodeResult(of.Result)
		res.Origin = toolgroups.OriginComputed
		return res, err
	}
	data, err := toolgroups.EncodeJSON(out)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	if utf8.RuneCount(data) <= c.MaxText() {
		return toolgroups.Result{Text: string(data)}, nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", " "); err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	return toolgroups.Result{Text: files.Shorten(c.Scope, c.Name, pretty.String(), 0, c.Now())}, nil
}
