package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"oneclaw/internal/guard"
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
		if value := files.Line(res.Header.Get(name)); value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.WriteString("\n")
	note := ""
	if res.Cut {
		note = fmt.Sprintf("\n[cut: only the first %d bytes of the body were read]", guard.MaxReply)
	}
	body := textOf(res.Data, res.Header.Get("Content-Type"))
	b.WriteString(files.Shorten(call.Scope, "http", body, files.Inline, t.cfg.Now()) + note)
	return toolgroups.Result{Text: b.String()}, nil
}

// requestError says why there is no reply, without the URL, which may hold secrets.
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

// textOf decodes a body by its content type and its beginning. Other bytes are counted.
func textOf(data []byte, contentType string) string {
	if len(data) == 0 {
		return ""
	}
	if binary(data, contentType) {
		return fmt.Sprintf("[%d bytes that are not text]", len(data))
	}
	return decode(data, contentType)
}

const (
	// maxDeclaration is how far into a text its own word about its encoding is looked for.
	maxDeclaration = 64 << 10
	// escaped is an encoding whose bytes are all of ASCII, and so look like UTF-8.
	escaped = "iso-2022-jp"
)

// declaration is where a page or a feed names its encoding.
var declaration = regexp.MustCompile(`(?i)<(?:\?xml|meta)\b[^>]*?\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)`)

// decode makes UTF-8 of a text. Its content type is believed, then its bytes, then what it
// says of itself: of that, and of the bytes, the library looks at the first 1,024 only.
func decode(data []byte, contentType string) string {
	e, name, certain := charset.DetermineEncoding(data, contentType)
	whole := wholeRunes(data)
	if utf8.Valid(whole) && (name == "utf-8" || !certain && name != escaped) {
		return strings.TrimPrefix(string(whole), "\uFEFF")
	}
	if m := declaration.FindSubmatch(data[:min(len(data), maxDeclaration)]); m != nil && !certain {
		if said, _ := charset.Lookup(string(m[1])); said != nil {
			e = said
		}
	}
	decoded, err := e.NewDecoder().Bytes(data)
	if err != nil {
		decoded = data
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(decoded), "\uFFFD"), "\uFEFF")
}

// wholeRunes drops the part of a character at the end, where a limit cut it.
func wholeRunes(data []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}

// binary reports whether a body is no text for people: by its type, or because it
// holds a zero byte and no type says otherwise.
func binary(data []byte, contentType string) bool {
	if kind, _, err := mime.ParseMediaType(contentType); err == nil && kind != "application/octet-stream" {
		major, minor, _ := strings.Cut(kind, "/")
		switch {
		case major == "text" || strings.HasSuffix(minor, "json") || strings.HasSuffix(minor, "xml"):
			return false
		case major == "image" || major == "audio" || major == "video" || major == "font":
			return true
		}
	}
	return strings.IndexByte(string(data[:min(len(data), 1024)]), 0) >= 0
}

// asksToRequest lets a request through that only reads, as webfetch does without being
// asked about; any other method is there to change something at the other end.
func asksToRequest(arguments json.RawMessage) bool {
	var in map[string]json.RawMessage
	if json.Unmarshal(arguments, &in) != nil {
		return true
	}
	for name, value := range in {
		var method string
		if !strings.EqualFold(name, "method") {
			continue
		}
		if json.Unmarshal(value, &method) != nil || method != "GET" {
			return true
		}
	}
	return false
}
