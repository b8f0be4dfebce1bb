package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"oneclaw/internal/guard"
	"oneclaw/internal/readable"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

type requestArgs struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func (t *tools) httpRequest(ctx context.Context, call toolgroups.Call, in requestArgs) (toolgroups.Result, error) {
	method := cmp.Or(in.Method, http.MethodGet)
	if in.Body != "" && method != http.MethodPost && method != http.MethodPut {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid,
			"A %s request has no body. Leave it out, or use POST or PUT.", method)
	}
	req, err := guard.NewRequest(ctx, method, in.URL, in.Body, in.Headers)
	if err != nil {
		return toolgroups.Result{}, requestError(ctx, err)
	}
	res, err := guard.Fetch(t.client, req, guard.MaxReply)
	if err != nil {
		return toolgroups.Result{}, requestError(ctx, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s\n", res.StatusCode, http.StatusText(res.StatusCode))
	for _, name := range []string{"Content-Type", "Content-Length"} {
		if value := files.SingleLine(res.Header.Get(name)); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteString("\n")
	note := ""
	if res.Truncated {
		note = fmt.Sprintf("\n[cut: only the first %d bytes of the body were read]", guard.MaxReply)
	}
	body := textOf(res.Data, res.Header.Get("Content-Type"))
	b.WriteString(files.Shorten(call.Scope, "http", body, files.InlineLimit(call.Scope), t.cfg.Now()) + note)
	return toolgroups.Result{Text: b.String()}, nil
}

// requestError returns the error for a request without a reply. It omits the URL and its secrets.
func requestError(ctx context.Context, err error) error {
	err = guard.Reason(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return toolgroups.Errorf(toolgroups.CodeTimeout, "The server did not answer in time.")
	case errors.Is(err, guard.ErrRequest):
		return toolgroups.Errorf(toolgroups.CodeInvalid, "The request was not made: %v.", err)
	}
	return toolgroups.Errorf(toolgroups.CodeExecution, "The request was not made or failed: %v.", err)
}

// textOf decodes a body by its content type and its first bytes. For binary data it returns the
// size.
func textOf(data []byte, contentType string) string {
	if len(data) == 0 {
		return ""
	}
	if isBinary(data, contentType) {
		return fmt.Sprintf("[%d bytes that are not text]", len(data))
	}
	return readable.Decode(data, contentType)
}

// isBinary reports whether a body is not text: by its type, or, if the type does not tell, by its first
// bytes or a zero byte.
func isBinary(data []byte, contentType string) bool {
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && kind != "application/octet-stream" {
		major, minor, _ := strings.Cut(kind, "/")
		switch {
		case major == "text" || strings.HasSuffix(minor, "json") || strings.HasSuffix(minor, "xml"):
			return false
		case major == "image" || major == "audio" || major == "video" || major == "font":
			return true
		case minor == "pdf" || minor == "zip" || minor == "gzip" || minor == "x-gzip",
			strings.HasPrefix(minor, "vnd.openxmlformats-"), strings.HasPrefix(minor, "vnd.oasis.opendocument."):
			return true
		}
	}
	// Only the marks of files count: those of pictures are so short that texts begin with them.
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "application/") && kind != "application/octet-stream" {
		return true
	}
	return strings.IndexByte(string(data[:min(len(data), 1024)]), 0) >= 0
}

// requestNeedsApproval reports whether a request needs approval. Requests that only read do not, as
// with webfetch. Other methods change something, and so may a GET that asks the server to treat
// it as another method. Headers can carry what the conversation knows.
func requestNeedsApproval(call toolgroups.Call) bool {
	var in map[string]json.RawMessage
	if json.Unmarshal(call.Arguments, &in) != nil {
		return true
	}
	for name, value := range in {
		var text string
		switch strings.ToLower(name) {
		case "method":
			if json.Unmarshal(value, &text) != nil || text != "GET" {
				return true
			}
		case "url":
			if json.Unmarshal(value, &text) != nil || guard.OverridesMethod(text) {
				return true
			}
		case "headers":
			var headers map[string]string
			if json.Unmarshal(value, &headers) != nil || !guard.OnlyNegotiates(headers) {
				return true
			}
		}
	}
	return false
}
