package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/internal/retry"
)

// query calls a method that only reads, and decodes its answer into a type of this package: the library
// refuses a whole answer for one value in it that it does not know.
func (c *client) query(ctx context.Context, method string, args url.Values, into any) (header http.Header, err error) {
	err = c.run(ctx, apiCall{method: method}, func(ctx context.Context, send retry.ClientFunc) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+method, strings.NewReader(args.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := send(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }() // it was read
		header = resp.Header
		if resp.StatusCode != http.StatusOK {
			return statusError(resp)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var answer struct {
			OK       bool   `json:"ok"`
			Error    string `json:"error"`
			Needed   string `json:"needed"`
			Provided string `json:"provided"`
		}
		if _, err := decodeLoosely(body, &answer); err != nil {
			return fmt.Errorf("decode answer: %w", err)
		}
		if !answer.OK {
			return slack.SlackErrorResponse{Err: answer.Error, Needed: answer.Needed, Provided: answer.Provided}
		}
		_, err = decodeLoosely(body, into)
		return err
	})
	return header, err
}

func statusError(resp *http.Response) error {
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && resp.StatusCode == http.StatusTooManyRequests {
		return &slack.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second}
	}
	return slack.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
}

// messageQuery asks for messages of a channel, or of a thread.
type messageQuery struct {
	channel, thread string
	oldest, latest  string
	inclusive       bool // with those at oldest and latest
	limit           int  // of a page
	cursor          string
}

func (q *messageQuery) method() string {
	if q.thread == "" {
		return "conversations.history"
	}
	return "conversations.replies"
}

// listedMessage is a message of a list. One that does not decode is damaged and has no TS.
type listedMessage struct {
	message
	ReplyUsers  []string `json:"reply_users"`
	LatestReply string   `json:"latest_reply"`
}

// readMessages returns a page of messages, and moves the query to the next page. After the last one there is
// no cursor. Each message is decoded by itself.
func (c *client) readMessages(ctx context.Context, q *messageQuery) ([]listedMessage, error) {
	args := url.Values{"channel": {q.channel}, "limit": {strconv.Itoa(q.limit)}, "inclusive": {"0"}}
	if q.inclusive {
		args.Set("inclusive", "1")
	}
	for name, value := range map[string]string{"ts": q.thread, "oldest": q.oldest, "latest": q.latest, "cursor": q.cursor} {
		if value != "" {
			args.Set(name, value)
		}
	}
	var page struct {
		Messages []json.RawMessage `json:"messages"`
		HasMore  bool              `json:"has_more"`
		Metadata struct {
			Cursor string `json:"next_cursor"`
		} `json:"response_metadata"`
	}
	if _, err := c.query(ctx, q.method(), args, &page); err != nil {
		return nil, err
	}
	if q.cursor = page.Metadata.Cursor; q.thread != "" && !page.HasMore {
		q.cursor = ""
	}
	list := make([]listedMessage, len(page.Messages))
	for i, raw := range page.Messages {
		damaged, err := decodeLoosely(raw, &list[i])
		list[i].damaged = damaged || err != nil || list[i].TS == ""
	}
	return list, nil
}
