package mcp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Bounds of one result.
const (
	maxFiles     = 10
	maxFileBytes = 20 << 20
)

// resultBuilder collects the parts of a result.
type resultBuilder struct {
	server, tool string
	scope        toolgroups.Scope
	texts        []string
	contentTexts []string                     // texts of the content itself, without placeholders
	placeholders map[[sha256.Size]byte]string // placeholders of saved data, which may be repeated
	files        []toolgroups.File
	savedBytes   int
}

// callResult is the result of a call. Each piece is decoded by itself, so that one that cannot be read
// does not take the others with it.
type callResult struct {
	content    []json.RawMessage
	structured any // with the digits of its numbers
	isError    bool
}

// tooManyText stands for what has too many values to be decoded.
const tooManyText = "[content of more than 200,000 values, which is not shown]"

// readResult reads a result in the form of any version of the protocol, and others that mean the same.
func readResult(raw json.RawMessage) callResult {
	if hasTooManyMembers(raw) {
		return callResult{structured: valueOf(raw)}
	}
	fields := objectFields(raw)
	if fields == nil {
		return callResult{structured: valueOf(raw)}
	}
	r := callResult{structured: valueOf(fields["structuredContent"]), isError: isTruth(fields["isError"], "true")}
	content, hasContent := fields["content"]
	if hasTooManyValues(content) {
		content, _ = json.Marshal(tooManyText) // a text always encodes
	}
	if json.Unmarshal(content, &r.content) != nil && hasContent {
		r.content = []json.RawMessage{content}
	}
	if old, ok := fields["toolResult"]; ok && r.structured == nil {
		r.structured = valueOf(old) // version 2024-10-07
	}
	if len(r.content) > 0 || hasContent || r.structured != nil {
		return r
	}
	for _, known := range []string{"_meta", "isError", "structuredContent", "toolResult", "resultType", "requestState", "inputRequests"} {
		delete(fields, known)
	}
	if len(fields) > 0 {
		rest := make(map[string]any, len(fields))
		for name, value := range fields {
			rest[name] = valueOf(value)
		}
		r.structured = rest
	}
	return r
}

// valueOf decodes JSON and keeps numbers as they are written; nil if it is missing or no JSON.
func valueOf(raw json.RawMessage) any {
	if hasTooManyValues(raw) {
		return tooManyText
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if len(raw) == 0 || dec.Decode(&v) != nil {
		return nil
	}
	return v
}

// convertResult converts the server's response into text and files.
func (s *server) convertResult(tool string, call toolgroups.Call, raw json.RawMessage) (toolgroups.Result, error) {
	a := &resultBuilder{server: s.name, tool: tool, scope: call.Scope, placeholders: map[[sha256.Size]byte]string{}}
	res := readResult(raw)
	for _, c := range res.content {
		a.add(c)
	}
	a.addStructured(res.structured)
	text := strings.Join(a.texts, "\n\n")
	if res.isError {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution, "%s",
			cmp.Or(strings.TrimSpace(text), "The tool reported an error without saying which."))
	}
	if text == "" {
		text = "Done. The server returned nothing."
	}
	return toolgroups.Result{Text: files.Shorten(call.Scope, "mcp-"+s.name, strings.ToValidUTF8(text, "\uFFFD"), 0, s.clientCfg.Now()), Files: a.files}, nil
}

// add adds one piece of content.
func (a *resultBuilder) add(raw json.RawMessage) {
	c := objectFields(raw)
	kind := stringOf(c["type"])
	switch {
	case c == nil:
		a.addText(textOf(raw))
	case kind == "text", kind == "" && c["text"] != nil:
		a.addText(textOf(c["text"]))
	case kind == "image":
		a.addData("picture", "image", c)
	case kind == "audio":
		a.addData("audio", "audio", c)
	case kind == "resource" && objectFields(c["resource"]) != nil:
		a.addResource(objectFields(c["resource"]))
	case kind == "resource_link":
		text := fmt.Sprintf("[resource %s: %s %s", cmp.Or(stringOf(c["title"]), stringOf(c["name"])), stringOf(c["uri"]), stringOf(c["description"]))
		a.texts = append(a.texts, strings.TrimSpace(text)+"]")
	default:
		a.addUnknown(kind, raw)
	}
}

func (a *resultBuilder) addText(text string) {
	text = a.saveDataInText(text)
	a.texts = append(a.texts, text)
	a.contentTexts = append(a.contentTexts, text)
}

// addUnknown adds a piece of a kind that is not known, as it is.
func (a *resultBuilder) addUnknown(kind string, raw json.RawMessage) {
	shown, err := toolgroups.EncodeJSON(a.saveDataInValue(valueOf(raw)))
	if err != nil {
		shown = nil
	}
	a.texts = append(a.texts, strings.TrimSpace(fmt.Sprintf("[content of the kind %q, which is not known here] %s", clean(kind, maxName), shown)))
	a.contentTexts = append(a.contentTexts, string(shown))
}

// addData adds a picture or sound.
func (a *resultBuilder) addData(what, kind string, c map[string]json.RawMessage) {
	mediaType, text := stringOf(c["mimeType"]), strings.TrimSpace(stringOf(c["data"]))
	a.contentTexts = append(a.contentTexts, kind, mediaType)
	if address, err := url.Parse(text); err == nil && (address.Scheme == "http" || address.Scheme == "https") {
		a.texts = append(a.texts, fmt.Sprintf("[%s at %s]", what, text))
		return
	}
	data, named, err := decodeData(text)
	if err != nil {
		a.texts = append(a.texts, fmt.Sprintf("[%s that cannot be read: its data is not base64]", what))
		return
	}
	a.texts = append(a.texts, a.saveFile(what, cmp.Or(mediaType, named), data))
}

// decodeData decodes base64 in any of its forms, also as a data URL, whose type it returns.
func decodeData(text string) (data []byte, mediaType string, err error) {
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		head, body, _ := strings.Cut(rest, ",")
		mediaType, _, _ = strings.Cut(head, ";")
		text = body
	}
	text = strings.TrimRight(strings.NewReplacer("\n", "", "\r", "", " ", "", "-", "+", "_", "/").Replace(text), "=")
	data, err = base64.RawStdEncoding.DecodeString(text)
	return data, mediaType, err
}

func (a *resultBuilder) addResource(r map[string]json.RawMessage) {
	uri, mediaType, blob := stringOf(r["uri"]), stringOf(r["mimeType"]), stringOf(r["blob"])
	a.contentTexts = append(a.contentTexts, "resource", uri, mediaType)
	if blob == "" {
		text := a.saveDataInText(textOf(r["text"]))
		a.texts = append(a.texts, fmt.Sprintf("[resource %s]\n%s", uri, text))
		a.contentTexts = append(a.contentTexts, text)
		return
	}
	data, named, err := decodeData(blob)
	if err != nil {
		a.texts = append(a.texts, fmt.Sprintf("[resource %s that cannot be read: its data is not base64]", uri))
		return
	}
	a.texts = append(a.texts, a.saveFile("resource "+uri, cmp.Or(mediaType, named), data))
}

// addStructured adds structured content unless the other content already contains it: servers send
// both, for clients that know only one of them.
func (a *resultBuilder) addStructured(v any) {
	if v == nil {
		return
	}
	v = a.saveDataInValue(v)
	if text, ok := v.(string); ok && (len(a.texts) == 0 || text == tooManyText) {
		a.texts = append(a.texts, text)
		return
	}
	all, holds := strings.Join(a.contentTexts, "\n"), false
	numbers := strings.FieldsFunc(all, func(r rune) bool { return !strings.ContainsRune("0123456789.+-eE", r) })
	if walk(v, func(leaf any) bool {
		holds = true
		switch leaf := leaf.(type) {
		case string:
			return strings.Contains(all, leaf) || slices.Contains(a.texts, leaf)
		case json.Number:
			return slices.ContainsFunc(numbers, func(n string) bool { return sameNumber(leaf, strings.TrimRight(n, ".")) })
		case bool:
			return strings.Contains(all, fmt.Sprint(leaf))
		}
		return true
	}) && holds {
		return
	}
	for _, text := range a.contentTexts {
		if same := valueOf(json.RawMessage(text)); same != nil && reflect.DeepEqual(same, v) {
			return
		}
	}
	shown, err := toolgroups.EncodeJSON(v)
	if err != nil {
		a.texts = append(a.texts, "[structured content that cannot be shown]")
		return
	}
	a.texts = append(a.texts, string(shown))
}

// sameNumber reports whether a text is a number, in whatever form. Numbers that a float64 does not hold
// exactly are compared by their digits.
func sameNumber(n json.Number, text string) bool {
	const maxExact = 1 << 53
	a, errA := n.Float64()
	b, errB := strconv.ParseFloat(text, 64)
	return string(n) == text || errA == nil && errB == nil && a == b && math.Abs(a) <= maxExact
}

// walk visits the leaves of a JSON value until look returns false, and reports whether it never did.
func walk(v any, look func(leaf any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			if !walk(one, look) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !walk(one, look) })
	}
	return look(v)
}

// saveDataInValue saves the data in the strings of a JSON value as files and returns the new value.
func (a *resultBuilder) saveDataInValue(v any) any {
	switch v := v.(type) {
	case string:
		return a.saveDataInText(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = a.saveDataInValue(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[key] = a.saveDataInValue(one)
		}
		for _, key := range []string{"data", "blob"} {
			kind, named := v["mimeType"].(string)
			text, ok := v[key].(string)
			if data, _, err := decodeData(text); named && ok && err == nil && len(data) > 0 {
				out[key] = a.saveFile("file", kind, data)
			}
		}
		return out
	}
	return v
}

// minBase64 is the length from which base64 counts as data instead of a word.
const minBase64 = 200

// base64Pattern matches possible data in a text, with its type if it is a data URL.
var base64Pattern = regexp.MustCompile(`(?:data:([a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+);base64,)?[A-Za-z0-9+/]+={0,2}`)

// saveDataInText saves base64 data in a text as files and returns the text with placeholders: in
// base64, pictures and sounds mean nothing to a model and cost more than all other content.
func (a *resultBuilder) saveDataInText(text string) string {
	return base64Pattern.ReplaceAllStringFunc(text, func(found string) string {
		if len(found) < minBase64 {
			return found
		}
		kind := base64Pattern.FindStringSubmatch(found)[1]
		data, err := base64.StdEncoding.DecodeString(found[strings.IndexByte(found, ',')+1:])
		seen, _, _ := mime.ParseMediaType(http.DetectContentType(data))
		if err != nil || kind == "" && (strings.HasPrefix(seen, "text/") || seen == "application/octet-stream") {
			return found
		}
		return a.saveFile("file", kind, data)
	})
}

// saveFile saves a file to the workspace and returns its placeholder in the text.
func (a *resultBuilder) saveFile(what, kind string, data []byte) string {
	sum := sha256.Sum256(data)
	if before, ok := a.placeholders[sum]; ok {
		return before
	}
	name, err := a.writeFile(extension(kind, data), data)
	said := fmt.Sprintf("[%s saved as %s, %d bytes]", what, name, len(data))
	if err != nil {
		said = fmt.Sprintf("[%s, %d bytes, not kept: %v]", what, len(data), err)
	} else {
		a.files = append(a.files, toolgroups.File{Path: name})
	}
	a.placeholders[sum] = said
	return said
}

// writeFile saves data under a name derived from the data, so that equal results make one file.
func (a *resultBuilder) writeFile(ext string, data []byte) (name string, err error) {
	switch {
	case a.scope.Workspace == "":
		return "", errors.New("there is no workspace")
	case len(data) == 0:
		return "", errors.New("it is empty")
	case len(a.files) == maxFiles:
		return "", fmt.Errorf("only %d files of a result are kept", maxFiles)
	case a.savedBytes+len(data) > maxFileBytes:
		return "", fmt.Errorf("only %d bytes of a result are kept", maxFileBytes)
	}
	sum := sha256.Sum256(data)
	tool := invalidNameChars.ReplaceAllString(a.tool, "_")
	name = fmt.Sprintf("mcp/%s/%s-%s%s", a.server, tool[:min(len(tool), maxName)], hex.EncodeToString(sum[:])[:8], ext)
	if _, err := files.Save(a.scope, name, data); err != nil {
		return "", fmt.Errorf("it could not be written: %w", err)
	}
	a.savedBytes += len(data)
	return name, nil
}

// extensions maps media types to file extensions; the system's table differs between hosts.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/jpg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	"audio/mpeg": ".mp3", "audio/mp3": ".mp3", "audio/wav": ".wav", "audio/wave": ".wav", "audio/x-wav": ".wav",
	"audio/ogg": ".ogg", "application/ogg": ".ogg", "video/mp4": ".mp4",
	"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip",
	"application/gzip": ".gz", "application/x-gzip": ".gz",
	"text/csv": ".csv", "text/html": ".html", "text/plain": ".txt", "text/markdown": ".txt",
}

// extension returns the extension for the type that the server names, or else for the detected type.
func extension(kind string, data []byte) string {
	named, _, _ := mime.ParseMediaType(kind)
	found, _, _ := mime.ParseMediaType(http.DetectContentType(data))
	return cmp.Or(extensions[named], extensions[found], ".bin")
}
