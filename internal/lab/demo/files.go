package demo

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// sentFile is a file of a message.
type sentFile struct {
	Name string `json:"name"`
	// Type is the media type of a picture or a recording; empty for other files.
	Type string `json:"type,omitempty"`
	data []byte
}

// mediaTypes are the types that the page shows or plays.
var mediaTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif", "audio/ogg", "audio/mpeg", "audio/mp4", "audio/wav", "audio/webm"}

// newSentFile returns a file with its type, by its content or else as its sender says.
func newSentFile(name, said string, data []byte) sentFile {
	f := sentFile{Name: name, data: data}
	for _, one := range []string{http.DetectContentType(data), said} {
		if one, _, _ = mime.ParseMediaType(one); one == "application/ogg" {
			one = "audio/ogg"
		}
		if f.Type == "" && slices.Contains(mediaTypes, one) {
			f.Type = one
		}
	}
	return f
}

// serveFile serves a file of a message in a pane. Files other than pictures and recordings can only be
// saved, so that none acts as a page of the demo.
func (d *Demo) serveFile(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var shown pane
	switch query.Get("pane") {
	case "telegram":
		d.Telegram.View(func(s telegram.State) { shown.fillTelegram(s, d.TelegramUser) })
	case "slack":
		d.Slack.View(func(s slack.State) { shown.fillSlack(s, d.channelOf(pageRequest{Place: query.Get("place")})) })
	}
	i := slices.IndexFunc(shown.Messages, func(m message) bool { return m.ID == query.Get("message") })
	n, err := strconv.Atoi(query.Get("n"))
	if i < 0 || err != nil || n < 0 || n >= len(shown.Messages[i].Files) {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	f := shown.Messages[i].Files[n]
	header := w.Header()
	if f.Type != "" {
		header.Set("Content-Type", f.Type)
	} else {
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": strings.ToValidUTF8(f.Name, "")}))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data)) // players ask for ranges
}
