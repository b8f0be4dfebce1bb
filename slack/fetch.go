package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

const (
	// fetchTimeout bounds the download of a file.
	fetchTimeout = 2 * time.Minute
	// maxRedirects bounds the redirects of a download.
	maxRedirects = 3
)

var errSignIn = errors.New("slack: file: slack shows its sign-in page instead: the app needs the scope files:read and has to be in the channel")

// FetchFile downloads a file of at most [chats.MaxFile] bytes. For a larger one it returns
// [chats.ErrTooLarge].
func (p *platform) FetchFile(ctx context.Context, a chats.Attachment, w io.Writer) error {
	if a.Size > chats.MaxFile {
		return chats.ErrTooLarge
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	address := a.Ref
	if id, ok := strings.CutPrefix(a.Ref, lookupPrefix); ok {
		info, err := p.api.fileInfo(ctx, id)
		if err != nil {
			return err
		}
		address = cmp.Or(info.DownloadURL, info.URL)
	}
	return p.api.download(ctx, address, strings.HasPrefix(a.Type, pageType), w)
}

func (c *client) fileInfo(ctx context.Context, id string) (attachedFile, error) {
	var info struct {
		File attachedFile `json:"file"`
	}
	_, err := c.query(ctx, "files.info", url.Values{"file": {id}}, &info)
	return info.File, err
}

// completeFiles completes files with Slack's information about them, within lookupTimeout.
func (c *client) completeFiles(ctx context.Context, files []attachedFile) []attachedFile {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return completeFiles(ctx, files, c.fileInfo)
}

// download writes a file to w. Only Slack's hosts get the token. page is set if the file is an HTML page:
// for any other file, a page is Slack's sign-in page.
func (c *client) download(ctx context.Context, address string, page bool, w io.Writer) error {
	for range maxRedirects {
		u, err := url.Parse(address)
		if err != nil || !c.mayHaveToken(u) {
			return errors.New("slack: file: the address is not slack's")
		}
		if u.Query().Has("redir") {
			return errSignIn
		}
		resp, err := c.get(ctx, u)
		if err != nil {
			return err
		}
		if resp.StatusCode/100 == 3 {
			next, err := resp.Location()
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				return fmt.Errorf("slack: file: redirect: %w", c.CleanError(err))
			}
			address = next.String()
			continue
		}
		err = c.saveFile(resp, page, w)
		return errors.Join(err, resp.Body.Close())
	}
	return errors.New("slack: file: too many redirects")
}

func (c *client) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("slack: file: %w", c.CleanError(err))
	}
	req.Header.Set("Authorization", "Bearer "+c.botToken)
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("slack: file: %w", c.CleanError(err))
	}
	return resp, nil
}

func (c *client) saveFile(resp *http.Response, page bool, w io.Writer) error {
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("slack: file: http status %d", resp.StatusCode)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == pageType && !page {
		return errSignIn
	}
	if err := c.CopyBody(w, resp, chats.MaxFile, chats.ErrTooLarge); err != nil {
		return fmt.Errorf("slack: file: %w", err)
	}
	return nil
}
