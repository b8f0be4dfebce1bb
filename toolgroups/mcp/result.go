package mcp

import (
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
	return toolgroups.Result{Text: files.Shorten(call.Scope, "mcp-"+s.name, strings.ToValidUTF8(text, "\uFFFD"), 0, s.family.Now()), Files: a.files}, nil
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

// structured adds structured content unless one of the texts is the same.
func (a *answer) structured(v any) {
	if v == nil {
		return
	}
	shown, err := toolgroups.EncodeJSON(v)
	if err != nil {
		a.texts = append(a.texts, "[structured content that cannot be shown]")
		return
	}
	for _, text := range a.plain {
		var same any
		if json.Unmarshal([]byte(text), &same) == nil && reflect.DeepEqual(same, v) {
			return
		}
	}
	a.texts = append(a.texts, string(shown))
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

// write puts data under a name made of it, so that the same answer makes one file.
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

// extensions are fixed: the system's table differs from host to host.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/jpg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	"audio/mpeg": ".mp3", "audio/mp3": ".mp3", "audio/wav": ".wav", "audio/wave": ".wav", "audio/x-wav": ".wav",
	"audio/ogg": ".ogg", "application/ogg": ".ogg", "video/mp4": ".mp4",
	"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip",
	"application/gzip": ".gz", "application/x-gzip": ".gz",
	"text/csv": ".csv", "text/html": ".html", "text/plain": ".txt", "text/markdown": ".txt",
}

// extension is that of the kind that the server names, or that the data shows.
func extension(kind string, data []byte) string {
	named, _, _ := mime.ParseMediaType(kind)
	found, _, _ := mime.ParseMediaType(http.DetectContentType(data))
	return cmp.Or(extensions[named], extensions[found], ".bin")
}
