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
)

// Conn is a call with the account on which it works.
type Conn struct {
	toolgroups.Call
	// Client adds the token of the account to each request.
	Client *http.Client
	// Writes counts the requests of the call that may change something.
	Writes *Writes
	// Scopes are what the operation needs.
	Scopes []string
	// Reader reads what is HTML.
	Reader *readable.Reader
	// Location is where users mean a time without an offset.
	Location *time.Location
	// Pause is the first pause before a request is sent again.
	Pause time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Writes counts requests that may change something. It may be used concurrently.
type Writes struct{ sent, taken atomic.Int32 }

// Note counts a request with its answer; nil for none.
func (w *Writes) Note(req *http.Request, resp *http.Response) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return
	}
	w.sent.Add(1)
	if resp != nil && resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		w.taken.Add(1)
	}
}

// done reports whether Google has done all that it was asked to change.
func (w *Writes) done() bool { return w.taken.Load() > 0 && w.taken.Load() == w.sent.Load() }

// unread is the result of a call of which Google has said that it did what it was asked, in an
// answer that could not be read: told as a failure, it would be made again. It reports false
// for any other error.
func (c *Conn) unread(err error) (toolgroups.Result, bool) {
	var answer *googleapi.Error
	var unreached *url.Error
	if !c.Writes.done() || IsFault(err) || errors.As(err, &answer) || errors.As(err, &unreached) {
		return toolgroups.Result{}, false
	}
	res, encoding := c.result(map[string]any{"success": true, "note": fmt.Sprintf("Google has done it, but the answer could not be read (%s). "+
		"Do not make this call again; read what is there now if something of the answer is needed.", Plain(err.Error()))})
	return res, encoding == nil
}

// Done is the result of a request that Google answers with nothing.
func Done() any { return map[string]bool{"success": true} }

// result encodes what an operation returned. What is too long for the model is
// written to a file of the workspace as a whole.
func (c *Conn) result(out any) (toolgroups.Result, error) {
	if res, ok := out.(toolgroups.Result); ok {
		return res, nil
	}
	data, err := toolgroups.EncodeJSON(out)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	text := string(data)
	n := utf8.RuneCountInString(text)
	if n <= toolgroups.MaxText || c.Workspace == "" {
		return toolgroups.Result{Text: text}, nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", " "); err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	path, err := c.Save("google-results/"+c.Name+".json", pretty.Bytes())
	if err != nil {
		return toolgroups.Result{}, err
	}
	head := fmt.Sprintf("[The whole result has %d characters; read it in %s. Its beginning:]\n", n, path)
	return toolgroups.Result{Text: head + text}, nil
}
