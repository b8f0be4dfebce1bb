package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Conn is a call with the account on which it works.
type Conn struct {
	toolgroups.Call
	// Client adds the token of the account to each request.
	Client *http.Client
	// Scopes are what the operation needs.
	Scopes []string
	// Location is where users mean a time without an offset.
	Location *time.Location
	// Pause is the first pause before a request is sent again.
	Pause time.Duration
	// Now is the clock.
	Now func() time.Time
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
