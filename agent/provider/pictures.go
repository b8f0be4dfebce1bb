package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// errChanged says that a picture is not shown because its file has changed.
var errChanged = errors.New("the file has changed since")

// Picture is a picture in a request.
type Picture struct {
	Kind string
	Data []byte
}

// Pictures reads the pictures of a request, by the index of their message. Unreadable files, or files
// that are no longer pictures, are left out and reported to skipped; the message still names them.
// blind says that there are pictures but the model cannot see.
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

// pictureKind reports whether models take pictures of this media type.
func pictureKind(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// fileLine returns the line that names a file in a message; for a picture it can say that the model
// cannot see it.
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
