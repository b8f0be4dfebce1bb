package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// errChanged is why a picture is not shown whose file is another one by now.
var errChanged = errors.New("the file has changed since")

// Picture is one that a model is shown.
type Picture struct {
	Kind string
	Data []byte
}

// Pictures reads those that a request shows, by the places of their messages. What cannot be read,
// or is no picture any more, is left out: the message names it all the same, and skipped is told.
// Blind says that there are some and they cannot be read.
func Pictures(req *agent.Request, skipped func(file string, err error)) (pictures map[int][]Picture, blind bool) {
	seen := agent.Shown(req.Messages)
	if len(seen) == 0 || req.ReadFile == nil {
		return nil, len(seen) > 0
	}
	pictures = make(map[int][]Picture)
	for _, one := range seen {
		name := req.Messages[one.Message].Files[one.File].Path
		data, err := req.ReadFile(name, agent.MaxPicture)
		if sum := sha256.Sum256(data); err == nil && one.Picture.Sum != "" && one.Picture.Sum != hex.EncodeToString(sum[:]) {
			err = errChanged
		}
		if err != nil {
			skipped(name, err)
			continue
		}
		if kind := http.DetectContentType(data); pictureKind(kind) {
			pictures[one.Message] = append(pictures[one.Message], Picture{kind, data})
		}
	}
	return pictures, false
}

// pictureKind reports whether models take pictures of a kind.
func pictureKind(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// fileLine names a file in a message, and says of a picture that it cannot be seen.
func fileLine(f *toolgroups.File, blind bool) string {
	switch {
	case f.Picture == nil:
	case blind:
		return "[file: " + f.Path + ", a picture, which you cannot see]"
	case f.Picture.Gone:
		return "[file: " + f.Path + ", a picture, which you are not shown any more]"
	}
	return "[file: " + f.Path + "]"
}
