package mcp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Bounds of one result.
const (
	maxFiles     = 10
	maxFileBytes = 20 << 20
)

// answer collects what a result holds.
type answer struct {
	server, tool string
	scope        toolgroups.Scope
	texts        []string
	plain        []string // the texts alone, without what stands for other content
	files        []toolgroups.File
	bytes        int
}

// result turns what the server answered into text and files.
func (s *server) result(tool string, call toolgroups.Call, res *sdk.CallToolResult) (toolgroups.Result, error) {
	a := &answer{server: s.name, tool: tool, scope: call.Scope}
	for _, c := range res.Content {
		a.add(c)
	}
	a.structured(res.StructuredContent)
	text := strings.Join(a.texts, "\n\n")
	if res.IsError {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution, "%s",
			cmp.Or(strings.TrimSpace(text), "The tool reported an error without saying which."))
	}
	if text == "" {
		text = "Done. The server returned nothing."
	}
	return toolgroups.Result{Text: files.Shorten(call.Scope, "mcp-"+s.name, strings.ToValidUTF8(text, "\uFFFD"), 0, time.Now()), Files: a.files}, nil
}

// add takes one piece of content.
func (a *answer) add(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		a.texts = append(a.texts, c.Text)
		a.plain = append(a.plain, c.Text)
	case *sdk.ImageContent:
		a.keep("picture", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		a.keep("audio", c.MIMEType, c.Data)
	case *sdk.EmbeddedResource:
		a.resource(c.Resource)
	case *sdk.ResourceLink:
		a.texts = append(a.texts, fmt.Sprintf("[resource %s: %s %s]", cmp.Or(c.Title, c.Name), c.URI, c.Description))
	default:
		a.texts = append(a.texts, "[content of a kind that is not supported]")
	}
}

func (a *answer) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
	case len(r.Blob) > 0:
		a.keep("resource "+r.URI, r.MIMEType, r.Blob)
	default:
		a.texts = append(a.texts, fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text))
	}
}

// structured adds structured content unless one of the texts is the same, as the
// protocol recommends to servers.
func (a *answer) structured(v any) {
	if v == nil {
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		a.texts = append(a.texts, "[structured content that cannot be shown]")
		return
	}
	for _, text := range a.plain {
		var same any
		if json.Unmarshal([]byte(text), &same) == nil && reflect.DeepEqual(same, v) {
			return
		}
	}
	a.texts = append(a.texts, strings.TrimSpace(b.String()))
}

// keep writes a file into the workspace and names it in the text.
func (a *answer) keep(what, kind string, data []byte) {
	name, err := a.write(extension(kind, data), data)
	if err != nil {
		a.texts = append(a.texts, fmt.Sprintf("[%s, %d bytes, not kept: %v]", what, len(data), err))
		return
	}
	a.files = append(a.files, toolgroups.File{Path: name})
	a.texts = append(a.texts, fmt.Sprintf("[%s saved as %s, %d bytes]", what, name, len(data)))
}

// write puts data under a name made of the data, so that the same answer given
// twice makes one file.
func (a *answer) write(ext string, data []byte) (name string, err error) {
	switch {
	case a.scope.Workspace == "":
		return "", errors.New("there is no workspace")
	case len(data) == 0:
		return "", errors.New("it is empty")
	case len(a.files) == maxFiles:
		return "", fmt.Errorf("only %d files of a result are kept", maxFiles)
	case a.bytes+len(data) > maxFileBytes:
		return "", fmt.Errorf("only %d bytes of a result are kept", maxFileBytes)
	}
	sum := sha256.Sum256(data)
	tool := notInName.ReplaceAllString(a.tool, "_")
	name = fmt.Sprintf("mcp/%s/%s-%s%s", a.server, tool[:min(len(tool), maxName)], hex.EncodeToString(sum[:])[:8], ext)
	if _, err := files.Save(a.scope, name, data); err != nil {
		return "", fmt.Errorf("it could not be written: %w", err)
	}
	a.bytes += len(data)
	return name, nil
}

// extension is that of the kind that the server names, or that the data shows.
func extension(kind string, data []byte) string {
	if known := extensionOf(kind); known != "" {
		return known
	}
	return cmp.Or(extensionOf(http.DetectContentType(data)), ".bin")
}

// extensionOf knows the common kinds. The system's table is not asked: it differs
// from host to host.
func extensionOf(kind string) string {
	base, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return ""
	}
	switch base {
	case "image/png":
		return ".png"
	case "image/jpeg", "image/jpg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "audio/mpeg", "audio/mp3":
		return ".mp3"
	case "audio/wav", "audio/wave", "audio/x-wav":
		return ".wav"
	case "audio/ogg", "application/ogg":
		return ".ogg"
	}
	return otherExtension(base)
}

func otherExtension(base string) string {
	switch base {
	case "video/mp4":
		return ".mp4"
	case "application/pdf":
		return ".pdf"
	case "application/json":
		return ".json"
	case "application/zip":
		return ".zip"
	case "application/gzip", "application/x-gzip":
		return ".gz"
	case "text/csv":
		return ".csv"
	case "text/html":
		return ".html"
	case "text/plain", "text/markdown":
		return ".txt"
	}
	return ""
}
