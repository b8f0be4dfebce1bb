package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// errChanged is reported for a picture that is left out because its file has changed.
var errChanged = errors.New("the file has changed since")

// Picture is a picture in a request.
type Picture struct {
	MediaType string
	Data      []byte
}

// ReadPictures reads the pictures in a request, by the index of their message. Unreadable or changed
// files are left out and reported to skipped, and files that are no pictures for models are left out; the
// message still names them. blind reports whether there are pictures but the request has no ReadFile.
func ReadPictures(req *agent.Request, skipped func(file string, err error)) (pictures map[int][]Picture, blind bool) {
	seen := agent.ShownPictures(req.Messages)
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
		if kind := http.DetectContentType(data); isPictureType(kind) {
			pictures[one.Message] = append(pictures[one.Message], Picture{kind, data})
		}
	}
	return pictures, false
}

// isPictureType reports whether models accept pictures of this media type.
func isPictureType(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// fileLine returns the line that names a file in a message. For a picture that is not sent, the line
// says so.
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
