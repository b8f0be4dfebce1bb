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

// FetchFile downloads a file. If it is larger than the server hands out to bots, or than [chats.MaxFile], FetchFile
// returns [chats.ErrTooLarge].
func (p *platform) FetchFile(ctx context.Context, a chats.Attachment, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var f file
	if a.Size > maxFile {
		p.api.learnIfLocal(ctx, a.Ref)
	}
	if a.Size > p.api.maxFetch() {
		return chats.ErrTooLarge
	}
	err := p.api.call(ctx, "getFile", tgbotapi.Params{"file_id": a.Ref}, &f)
	switch {
	case isBadRequest(err, "file is too big"), err == nil && f.Size > p.api.maxFetch():
		return chats.ErrTooLarge
	case err != nil:
		return err
	case f.Path == "":
		return errors.New("telegram: getFile: the answer names no path")
	}
	if filepath.IsAbs(f.Path) && !p.api.official {
		p.api.isLocal.Store(new(true))
		return p.api.copyLocal(f.Path, w)
	}
	return p.api.download(ctx, f.Path, w)
}

// maxFetch returns the size limit of a file that a user sent. A self-hosted server with --local has none
// (core.telegram.org/bots/api#using-a-local-bot-api-server).
func (c *client) maxFetch() int64 {
	if is := c.isLocal.Load(); is != nil && *is {
		return chats.MaxFile
	}
	return maxFile
}

// learnIfLocal finds out, once, whether a self-hosted server runs with --local: only such a one hands out the file
// with this id, which is larger than others allow.
func (c *client) learnIfLocal(ctx context.Context, id string) {
	if c.official || c.isLocal.Load() != nil {
		return
	}
	err := c.call(ctx, "getFile", tgbotapi.Params{"file_id": id}, nil)
	if err == nil || isBadRequest(err, "file is too big") {
		c.isLocal.Store(new(err == nil))
	}
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
	case info.Size() > c.maxFetch():
		return chats.ErrTooLarge
	}
	if _, err := io.Copy(w, io.LimitReader(file, c.maxFetch())); err != nil {
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
	if err := c.CopyBody(w, resp, c.maxFetch(), chats.ErrTooLarge); err != nil {
		return fmt.Errorf("telegram: file: %w", err)
	}
	return nil
}
