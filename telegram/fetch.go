package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
)

// fetchTimeout bounds the download of a file.
const fetchTimeout = 2 * time.Minute

// FetchFile downloads a file of at most 20 MB, Telegram's limit for bots. For a larger one it returns
// [chats.ErrTooLarge].
func (p *Platform) FetchFile(ctx context.Context, a chats.Attachment, w io.Writer) error {
	if a.Size > maxFile {
		return chats.ErrTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var f file
	err := p.api.call(ctx, "getFile", tgbotapi.Params{"file_id": a.Ref}, &f)
	switch {
	case isBadRequest(err, "file is too big"), err == nil && f.Size > maxFile:
		return chats.ErrTooLarge
	case err != nil:
		return err
	case f.Path == "":
		return errors.New("telegram: getFile: the answer names no path")
	}
	if filepath.IsAbs(f.Path) && !p.api.official {
		return p.api.copyLocal(f.Path, w)
	}
	return p.api.download(ctx, f.Path, w)
}

// copyLocal copies a file from a self-hosted server with --local, which returns the path of the file
// instead of serving it. The path may contain the token.
func (c *client) copyLocal(path string, w io.Writer) (err error) {
	// Opening does not wait for a writer if the path is a pipe.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("telegram: file: the server at TELEGRAM_API_URL runs with --local, and this program cannot read the folder that it keeps files in: let both have it at the same path: %w", c.CleanError(err))
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("telegram: file: %w", c.CleanError(err))
	case !info.Mode().IsRegular():
		return errors.New("telegram: file: the path leads to no file")
	case info.Size() > maxFile:
		return chats.ErrTooLarge
	}
	if _, err := io.Copy(w, io.LimitReader(file, maxFile)); err != nil {
		return fmt.Errorf("telegram: file: %w", c.CleanError(err))
	}
	return nil
}

// download writes a file from the server to w. Its errors never contain the address.
func (c *client) download(ctx context.Context, path string, w io.Writer) error {
	parts := strings.Split(strings.TrimLeft(path, "/"), "/")
	for i, part := range parts {
		if part == "." || part == ".." {
			return errors.New("telegram: file: the path leads elsewhere")
		}
		parts[i] = url.PathEscape(part)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.fileURL+strings.Join(parts, "/"), nil)
	if err != nil {
		return fmt.Errorf("telegram: file: %w", c.CleanError(err))
	}
	resp, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("telegram: file: %w", c.CleanError(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotFound && !c.official {
		return errors.New("telegram: file: the server at TELEGRAM_API_URL hands out no files: start it with --local, where this program can read its folder, or put a web server in front of it")
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("telegram: file: http status %d", resp.StatusCode)
	}
	if err := c.CopyBody(w, resp, maxFile, chats.ErrTooLarge); err != nil {
		return fmt.Errorf("telegram: file: %w", err)
	}
	return nil
}
