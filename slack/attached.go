package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

const (
	// lookupPrefix begins the Ref of a file whose address is not known yet, because it comes from a
	// channel that is shared with another workspace.
	lookupPrefix = "file:"
	// pageType is the type of HTML pages, canvasType that of canvases, which download as pages.
	pageType   = "text/html"
	canvasType = "application/vnd.slack-docs"
	// accessUnknown is the file_access of a file for which Slack reports only the id
	// (docs.slack.dev/reference/objects/file-object#slack_connect_files).
	accessUnknown = "check_file_info"
	// unreadableFile is the mode of a file that does not decode.
	unreadableFile = "unreadable"
	// maxMillis bounds a duration, in milliseconds.
	maxMillis = 1 << 30
)

// attachedFile is a file of a message.
type attachedFile struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	MIMEType string `json:"mimetype"`
	// User has made the file, and need not be the sender of a message with it.
	User string `json:"user"`
	Size int64  `json:"size"`
	Mode string `json:"mode"`
	// Subtype is slack_audio for an audio clip, DurationMS its duration in milliseconds.
	Subtype     string `json:"subtype"`
	DurationMS  int64  `json:"duration_ms"`
	External    bool   `json:"is_external"`
	Access      string `json:"file_access"`
	URL         string `json:"url_private"`
	DownloadURL string `json:"url_private_download"`
}

// attachedFiles are the files of a message.
type attachedFiles []attachedFile

// UnmarshalJSON decodes the files one by one. One that does not decode is marked as unreadable, as is what is no
// list. It returns no error: an error would end the decoding of the message.
func (l *attachedFiles) UnmarshalJSON(data []byte) error {
	*l = nil
	var all []json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		all = []json.RawMessage{nil}
	}
	for _, raw := range all {
		var f attachedFile
		if _, err := decodeLoosely(raw, &f); err != nil || f == (attachedFile{}) { // nil does not decode
			f = attachedFile{Mode: unreadableFile}
		}
		*l = append(*l, f)
	}
	return nil
}

// completeFiles completes the files for which Slack reported only the id, using info. A file for which
// info fails is unchanged.
func completeFiles(ctx context.Context, files []attachedFile, info func(ctx context.Context, id string) (attachedFile, error)) []attachedFile {
	files = slices.Clone(files)
	for i, f := range files {
		if f.Access != accessUnknown || f.ID == "" || ctx.Err() != nil {
			continue
		}
		if known, err := info(ctx, f.ID); err == nil {
			files[i] = known
		}
	}
	return files
}

// fileIDs returns the ids of the files that the message still has.
func (m *message) fileIDs() (ids []string) {
	for _, f := range m.Files {
		if f.Mode != "tombstone" {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// attached returns the files of a message that can be fetched, and texts about what cannot be read of it.
func (s identity) attached(m *message) ([]chats.Attachment, []string) {
	list, skipped := convertFiles(m.Files, m.User, s.isOwn)
	if m.damaged {
		skipped = append(skipped, "a part of this message that I cannot read")
	}
	return list, skipped
}

// convertFiles returns the files of a message by a user that can be fetched, and texts about those that cannot be read.
// isOwn reports whether a user is the bot.
func convertFiles(files []attachedFile, by string, isOwn func(user string) bool) (list []chats.Attachment, skipped []string) {
	for _, f := range files {
		name := cmp.Or(f.Name, f.Title, f.ID)
		a := chats.Attachment{Ref: cmp.Or(f.DownloadURL, f.URL), Name: name, Size: max(f.Size, 0), Type: f.MIMEType}
		a.Sound, a.FromBot = f.sound(by), isOwn(f.User)
		if f.isCanvas() {
			a.Name, a.Type = name+".html", pageType
		}
		switch {
		case f.Mode == unreadableFile:
			skipped = append(skipped, "a file that I cannot read")
			continue
		case f.External || f.Mode == "external" || f.Mode == "remote":
			skipped = append(skipped, name+": it lies outside of Slack, where I cannot read it")
			continue
		case f.Mode == "tombstone" || f.Mode == "hidden_by_limit":
			skipped = append(skipped, cmp.Or(name, "a file")+": Slack does not keep it any more")
			continue
		case a.Size > chats.MaxFile:
			skipped = append(skipped, fmt.Sprintf("%s (%s MB): I read files of at most %d MB",
				name, strconv.FormatInt(a.Size>>20, 10), chats.MaxFile>>20))
			continue
		case a.Ref == "" && f.ID != "":
			a.Ref = lookupPrefix + f.ID
		case a.Ref == "":
			continue
		}
		list = append(list, a)
	}
	return list, skipped
}

func (f attachedFile) isCanvas() bool {
	return f.MIMEType == canvasType || f.Mode == "canvas" || f.Mode == "quip" || f.Mode == "docs"
}

// sound describes the audio in a file that a user has sent. Audio clips have a subtype of their own
// (docs.slack.dev/reference/objects/file-object). What somebody else has spoken can be shared like any file.
func (f attachedFile) sound(by string) chats.Sound {
	s := chats.Sound{Length: time.Duration(min(max(f.DurationMS, 0), maxMillis)) * time.Millisecond}
	switch {
	case f.Subtype == "slack_audio" && f.User == by:
		s.Kind = chats.SoundSpoken
	case f.Subtype == "slack_audio", strings.HasPrefix(f.MIMEType, "audio/"):
		s.Kind = chats.SoundFile
	default:
		return chats.Sound{}
	}
	return s
}
