package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
)

// fetchTimeout bounds the download of a file.
const fetchTimeout = 2 * time.Minute

// Fetch downloads a file of at most 20 MB, which is what Telegram hands to bots.
func (p *Platform) Fetch(ctx context.Context, a chats.Attachment, w io.Writer) error {
	if a.Size > maxFile {
		return chats.ErrTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var f file
	err := p.api.call(ctx, "getFile", tgbotapi.Params{"file_id": a.Ref}, &f)
	switch {
	case refused(err, "file is too big"), err == nil && f.Size > maxFile:
		return chats.ErrTooLarge
	case err != nil:
		return err
	case f.Path == "":
		return errors.New("telegram: getFile: the answer names no path")
	}
	return p.api.download(ctx, f.Path, w)
}

// download writes a file of the server to w. Its address leaves this function in no error.
func (c *client) download(ctx context.Context, path string, w io.Writer) error {
	parts := strings.Split(strings.TrimLeft(path, "/"), "/")
	for i, part := range parts {
		if part == "." || part == ".." {
			return errors.New("telegram: file: the path leads elsewhere")
		}
		parts[i] = url.PathEscape(part)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.files+strings.Join(parts, "/"), nil)
	if err != nil {
		return fmt.Errorf("telegram: file: %w", c.Clean(err))
	}
	resp, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("telegram: file: %w", c.Clean(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("telegram: file: http status %d", resp.StatusCode)
	}
	if err := c.Save(w, resp, maxFile, chats.ErrTooLarge); err != nil {
		return fmt.Errorf("telegram: file: %w", err)
	}
	return nil
}
