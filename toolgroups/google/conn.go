package google

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"oneclaw/toolgroups"
)

// parallel is how many requests one call has open at a time.
const parallel = 10

// conn is a call with the account on which it works.
type conn struct {
	toolgroups.Call
	google *Google
	scopes []string
	client *http.Client
}

// conn finds the account of the user of a call. It has the scopes, or the error
// says how the user can grant them.
func (g *Google) conn(ctx context.Context, call toolgroups.Call, scopes []string) (*conn, error) {
	if call.User == "" {
		return nil, toolgroups.Errorf(CodeNotConnected, "It is not known who asks, so no Google account can be used.")
	}
	tokens, err := g.tokens(ctx, call.User, scopes)
	if err != nil {
		return nil, err
	}
	c := &conn{Call: call, google: g, scopes: scopes}
	c.client = &http.Client{
		Transport:     &authorized{tokens: tokens, base: &limited{base: g.base}},
		CheckRedirect: stay,
	}
	return c, nil
}

// stay keeps a token from travelling to wherever an answer points.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// libraryLog keeps the client library from logging bodies when an environment
// variable tells it to.
func (g *Google) libraryLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// done is the result of a request that Google answers with nothing.
type done struct {
	Success bool `json:"success"`
}

// result encodes what an operation returned. What is too long for the model is
// written to a file of the workspace as a whole.
func (c *conn) result(out any) (toolgroups.Result, error) {
	if res, ok := out.(toolgroups.Result); ok {
		return res, nil
	}
	text, err := encode(out)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	n := utf8.RuneCountInString(text)
	if n <= toolgroups.MaxText || c.Workspace == "" {
		return toolgroups.Result{Text: text}, nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(text), "", " "); err != nil {
		return toolgroups.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	path, err := c.save("google-results/"+c.Name+".json", pretty.Bytes())
	if err != nil {
		return toolgroups.Result{}, err
	}
	head := fmt.Sprintf("[The whole result has %d characters; read it in %s. Its beginning:]\n", n, path)
	return toolgroups.Result{Text: head + text}, nil
}

// encode is json.Marshal without the escapes that only HTML needs.
func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// bounded is a maximum that the model asked for: def where it said nothing of use,
// and no more than limit.
func bounded(n, def, limit int) int {
	if n <= 0 {
		n = def
	}
	return min(n, limit)
}

// maxPages ends a list that does not end by itself.
const maxPages = 100

// collect follows pages until there are limit items or no more pages. It returns
// the token of the next page, if the last was not reached. page gets how many items
// are still wanted.
func collect[T any](limit int, page func(token string, wanted int64) ([]T, string, error)) ([]T, string, error) {
	items := []T{}
	token := ""
	for pages := 1; ; pages++ {
		more, next, err := page(token, int64(limit-len(items)))
		if err != nil {
			return nil, "", err
		}
		items = append(items, more...)
		if next == "" || next == token || len(items) >= limit || pages == maxPages {
			return items[:min(len(items), limit)], next, nil
		}
		token = next
	}
}

// each calls fn for all items side by side, a few at a time, and returns the results
// in the order of the items. The first error ends it.
func each[T, R any](ctx context.Context, items []T, fn func(context.Context, T) (R, error)) ([]R, error) {
	out := make([]R, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, item := range items {
		group.Go(func() error {
			var err error
			out[i], err = fn(ctx, item)
			return err
		})
	}
	return out, group.Wait()
}

// isFault reports an error that already is what the model should be told.
func isFault(err error) bool {
	var fault *toolgroups.Error
	return errors.As(err, &fault)
}
