package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

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
	// maxMillis bounds a duration, in milliseconds.
	maxMillis = 1 << 30
)

// attachedFile is a file of a message.
type attachedFile struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	MIMEType string `json:"mimetype"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"`
	// Subtype is slack_audio for an audio clip, DurationMS its duration in milliseconds.
	Subtype     string `json:"subtype"`
	DurationMS  int64  `json:"duration_ms"`
	External    bool   `json:"is_external"`
	Access      string `json:"file_access"`
	URL         string `json:"url_private"`
	DownloadURL string `json:"url_private_download"`
}

// newAttachedFile converts a file of the library, which has no subtypes.
func newAttachedFile(f slack.File) attachedFile {
	return attachedFile{
		ID: f.ID, Name: f.Name, Title: f.Title, MIMEType: f.Mimetype, Size: int64(f.Size), Mode: f.Mode, DurationMS: int64(f.DurationMs),
		External: f.IsExternal, Access: f.FileAccess, URL: f.URLPrivate, DownloadURL: f.URLPrivateDownload,
	}
}

// completeFiles completes the files for which Slack reported only the id, using info. A file for which
// info fails is unchanged.
func completeFiles(ctx context.Context, files []attachedFile, info func(ctx context.Context, id string) (*slack.File, error)) []attachedFile {
	files = slices.Clone(files)
	for i, f := range files {
		if f.Access != accessUnknown || f.ID == "" || ctx.Err() != nil {
			continue
		}
		if known, err := info(ctx, f.ID); err == nil {
			files[i] = newAttachedFile(*known)
		}
	}
	return files
}

// convertFiles returns the files that can be fetched, and texts about those that cannot be read.
func convertFiles(files []attachedFile) (list []chats.Attachment, skipped []string) {
	for _, f := range files {
		name := cmp.Or(f.Name, f.Title, f.ID)
		a := chats.Attachment{Ref: cmp.Or(f.DownloadURL, f.URL), Name: name, Size: max(f.Size, 0), Type: f.MIMEType}
		a.Sound = f.sound()
		if f.isCanvas() {
			a.Name, a.Type = name+".html", pageType
		}
		switch {
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

// sound describes the audio in a file. Audio clips have a subtype of their own
// (docs.slack.dev/reference/objects/file-object).
func (f attachedFile) sound() chats.Sound {
	s := chats.Sound{Length: time.Duration(min(max(f.DurationMS, 0), maxMillis)) * time.Millisecond}
	switch {
	case f.Subtype == "slack_audio":
		s.Kind = chats.SoundSpoken
	case strings.HasPrefix(f.MIMEType, "audio/"):
		s.Kind = chats.SoundFile
	default:
		return chats.Sound{}
	}
	return s
}
