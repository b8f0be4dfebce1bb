package turn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"image"
	_ "image/gif"  // decodes sizes
	_ "image/jpeg" // decodes sizes
	_ "image/png"
	"net/http"
	"path"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// DefaultPictureTokens is the cost of an album of ten photos.
const DefaultPictureTokens = 16_000

// pictures measures the pictures among files: the sizes are recorded with the message, so that what
// models are shown stays the same. The files are the caller's own.
func (t *Runner) pictures(j *queue.Run, dir string, files []toolgroups.File) {
	if !slices.ContainsFunc(files, func(f toolgroups.File) bool { return maybePicture(f.Path) }) {
		return
	}
	root, err := workspace.Open(dir)
	if err != nil {
		t.cfg.Log.Warn("pictures are not shown to models", "job", j.Key(), "err", err)
		return
	}
	defer func() { _ = root.Close() }() // read only
	for i := range files {
		if !maybePicture(files[i].Path) {
			continue
		}
		data, err := root.ReadFile(files[i].Path, agent.MaxPicture)
		if err != nil {
			t.cfg.Log.Info("a picture is not shown to models", "job", j.Key(), "file", files[i].Path, "err", err)
			continue
		}
		files[i].Picture = pictureOf(data)
	}
}

// maybePicture reports whether a file can be a picture by its name, to avoid reading others.
func maybePicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case "", ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}

// pictureOf returns the properties of a picture; nil if no model accepts it.
func pictureOf(data []byte) *toolgroups.Picture {
	switch http.DetectContentType(data) {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return nil
	}
	sum := sha256.Sum256(data)
	p := &toolgroups.Picture{Size: int64(len(data)), Sum: hex.EncodeToString(sum[:])}
	if size, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		p.Width, p.Height = size.Width, size.Height
	}
	return p
}

// trimPictures hides pictures from models if they cost more than the settings allow. It reports whether it
// did.
func (t *Runner) trimPictures(ctx context.Context, h *conversation.History) (bool, error) {
	if !slices.ContainsFunc(h.Messages, func(m agent.Message) bool { return len(m.Files) > 0 }) {
		return false, nil
	}
	record, needed := agent.TrimPictures(h.Messages, t.cfg.PictureTokens)
	if !needed {
		return false, nil
	}
	record.Time = t.cfg.Now()
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	if _, err := h.Append(writing, nil, record); err != nil {
		return false, err
	}
	t.cfg.Log.Info("pictures are not shown any more", "log", h.Log, "stay", record.Pictures)
	return true, nil
}
