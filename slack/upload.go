package slack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
)

// maxUpload bounds the size of a sent file. Slack allows 1 GB (docs.slack.dev, working with files),
// which is more than a chat needs.
const maxUpload = chats.MaxFile

// maxComment bounds the text sent with a file, in characters.
const maxComment = 3000

// uploadTimeout bounds the upload of a file.
const uploadTimeout = 5 * time.Minute

// uploadMethod stands for the upload to the address that Slack returned.
const uploadMethod = "upload"

// MaxFile returns the size limit of a file, in bytes.
func (p *platform) MaxFile() int64 { return maxUpload }

// SendFile uploads a file and then shares it in the chat; until then users do not see it. It returns
// the id of the file, as Slack does not return that of the message.
func (p *platform) SendFile(ctx context.Context, to chats.Address, f chats.OutFile) (string, error) {
	if err := checkAddress(to); err != nil {
		return "", err
	}
	begun := time.Now()
	id, err := p.upload(ctx, f)
	if err != nil {
		failure := p.sendError(to, err)
		if failure.Outcome == chats.Unknown {
			failure.Outcome, failure.Outage = chats.Later, true // not shared yet
		}
		if ce, ok := errors.AsType[*callError](err); ok && ce.method == uploadMethod {
			failure.Outage = false // only the upload host failed
		}
		return "", failure
	}
	if err := p.shareFile(ctx, to, id, f); err != nil {
		return "", p.sendError(to, err)
	}
	p.statuses.RecordAnswer(to.Chat, begun)
	p.join(ctx, to.Chat, "")
	return id, nil
}

// VoiceFormat returns MP3, which all of Slack's apps play.
func (p *platform) VoiceFormat() string { return chats.VoiceMP3 }

// SendVoice sends a recording as an audio file.
func (p *platform) SendVoice(ctx context.Context, to chats.Address, f chats.OutFile) (string, error) {
	return p.SendFile(ctx, to, f)
}

func (p *platform) upload(ctx context.Context, f chats.OutFile) (string, error) {
	place, err := callWithResult(ctx, p.api, "files.getUploadURLExternal", func(ctx context.Context, api *slack.Client) (*slack.GetUploadURLExternalResponse, error) {
		place, err := api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: f.Name, FileSize: int(f.Size)})
		if err == nil && (place.FileID == "" || place.UploadURL == "") {
			err = errors.New("the response has no file id or address")
		}
		return place, err
	})
	if err != nil {
		return "", err
	}
	call := apiCall{method: uploadMethod, timeout: uploadTimeout, contentLength: chats.FormLength(nil, "file", f.Name, f.Size)}
	err = p.api.do(ctx, call, func(ctx context.Context, api *slack.Client) error {
		return api.UploadToURL(ctx, slack.UploadToURLParameters{
			UploadURL: place.UploadURL, Filename: f.Name, Reader: io.NewSectionReader(f.Content, 0, f.Size),
		})
	})
	if ce, ok := errors.AsType[*callError](err); ok && ce.status == http.StatusRequestEntityTooLarge {
		ce.code = "file_upload_size_restricted"
	}
	return place.FileID, err
}

func (p *platform) shareFile(ctx context.Context, to chats.Address, id string, f chats.OutFile) error {
	params := slack.CompleteUploadExternalParameters{
		Files: []slack.FileSummary{{ID: id, Title: f.Name}}, Channel: to.Chat.ID,
		ThreadTimestamp: to.Chat.Thread, InitialComment: initialComment(f),
	}
	return p.api.call(ctx, "files.completeUploadExternal", func(ctx context.Context, api *slack.Client) error {
		_, err := api.CompleteUploadExternalContext(ctx, params)
		return err
	})
}

// linkPattern matches within what Slack would take for a link. It would fetch its page for a preview, and has no switch
// for that here; the name of a file may be one that the model has put together.
var linkPattern = regexp.MustCompile(`(\.)([\pL\pN])|(:)(//)`)

// initialComment returns the text sent with a file: the literal caption, and the notice of a repeat.
func initialComment(f chats.OutFile) string {
	caption := escape(wording.Clip(linkPattern.ReplaceAllString(f.Caption, "$1$3\u2060$2$4"), maxComment))
	switch {
	case !f.Repeat:
		return caption
	case caption == "":
		return "_" + chats.RepeatNotice + "_"
	}
	return caption + "\n\n_" + chats.RepeatNotice + "_"
}
