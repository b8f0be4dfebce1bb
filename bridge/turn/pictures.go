package turn

import (
	"bytes"
	"context"
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

// DefaultPictureTokens is the default of [Options].PictureTokens, the cost of an album of ten photos.
const DefaultPictureTokens = 16_000

// measurePictures sets the Picture of each file that is one. The properties are stored with the message,
// so that later requests show the same pictures. It changes files in place.
func (t *Runner) measurePictures(j *queue.Run, dir string, files []toolgroups.File) {
	if !slices.ContainsFunc(files, func(f toolgroups.File) bool { return mayBePicture(f.Path) }) {
		return
	}
	root, err := workspace.Open(dir)
	if err != nil {
		t.cfg.Log.Warn("pictures are not shown to models", "job", j.Key(), "err", err)
		return
	}
	defer func() { _ = root.Close() }() // read only
	for i := range files {
		if !mayBePicture(files[i].Path) {
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

// mayBePicture reports whether a file may be a picture, judged by its extension.
func mayBePicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case "", ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}

// pictureOf returns the properties of a picture; nil if models do not accept its format.
func pictureOf(data []byte) *toolgroups.Picture {
	switch http.DetectContentType(data) {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return nil
	}
	p := &toolgroups.Picture{Size: int64(len(data)), Sum: toolgroups.SumOf(data)}
	if size, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		p.Width, p.Height = size.Width, size.Height
	}
	return p
}

// trimPictures drops the oldest pictures from later requests if all cost more than the settings allow.
// It reports whether it dropped any.
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
	t.cfg.Log.Info("pictures dropped from later requests", "log", h.Log, "stay", record.Pictures)
	return true, nil
}
