package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// Slack retries events only for some minutes. So the messages of a time without a connection, or in which
// they could not be stored, are fetched. The inbox drops those that had arrived, by their id.
const (
	// overlap is how far the search goes back before the last sign of life: events may be delayed, and
	// clocks may differ, by that much.
	overlap = 5 * time.Minute
	// maxGap bounds the age of a fetched message.
	maxGap = 24 * time.Hour
	// Bounds of a search: conversations, threads besides those that [shared.Progress] knows, and messages
	// in each.
	maxConversations = 200
	maxThreads       = 100
	maxMissed        = 500
	// missedPageSize is the number of messages on a page.
	missedPageSize = 100
	// maxRateLimitTries bounds the tries of a rate-limited call.
	maxRateLimitTries = 20
)

// conversation is a channel or direct chat that the bot is in.
type conversation struct {
	id, kind string // kind is a channel_type
	shared   bool   // with other workspaces
}

// fillGaps fetches missed messages whenever some may be missing.
func (r *receiver) fillGaps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.progress.Wake:
		}
		if r.isLeader != nil {
			r.saveMarks(ctx) // another process may be the leader
		}
		pauses := retry.New(minBackOff, maxBackOff)
		for since, name := r.progress.Gap(); !since.IsZero() && ctx.Err() == nil && r.doesSharedWork(); since, name = r.progress.Gap() {
			err := r.backfill(ctx, since)
			if err == nil {
				r.progress.CloseGap(name)
				continue
			}
			wait := pauses.Next(retryAfter(err))
			r.log.Warn("cannot fetch missed messages yet", "since", since.UTC(), "wait", wait, "err", err)
			_ = retry.Wait(ctx, wait) // the loop checks ctx
		}
		r.fetchAllPostponed(ctx)
	}
}

// backfill passes the messages since a time to the inbox. It may be repeated.
func (r *receiver) backfill(ctx context.Context, since time.Time) error {
	from := since.Add(-overlap)
	if cut := r.api.clock.Now().Add(-maxGap); from.Before(cut) {
		r.log.Warn("messages older than a day are not fetched", "since", since.UTC())
		from = cut
	}
	oldest := strconv.FormatInt(from.Unix(), 10) + ".000000"
	live := r.progress.Threads()
	list, err := r.listConversations(ctx, live)
	if err != nil {
		return fmt.Errorf("list conversations: %w", err)
	}
	found, threads := 0, 0
	for _, c := range list {
		roots, n, err := r.fillConversation(ctx, c, oldest, live[c.id])
		if err != nil {
			return fmt.Errorf("fetch messages of %s: %w", c.id, err)
		}
		found += n
		for i, root := range roots {
			if i >= len(live[c.id]) {
				if threads++; threads > maxThreads {
					r.log.Warn("too many threads: messages may be missing", "conversation", c.id, "searched", maxThreads)
					break
				}
			}
			n, err := r.fillThread(ctx, c, root, oldest)
			if err != nil {
				return fmt.Errorf("fetch replies of %s %s: %w", c.id, root, err)
			}
			found += n
		}
	}
	r.log.Info("missed messages fetched", "since", since.UTC(), "conversations", len(list), "messages", found)
	return nil
}

// listConversations lists the conversations to search, the most important first.
func (r *receiver) listConversations(ctx context.Context, live map[string][]string) ([]conversation, error) {
	var list []conversation
	for _, kind := range []struct{ event, list string }{
		{"im", "im"}, {"mpim", "mpim"}, {"group", "private_channel"}, {"channel", "public_channel"},
	} {
		args := url.Values{"types": {kind.list}, "exclude_archived": {"true"}, "limit": {strconv.Itoa(maxConversations)}}
		for more := true; more && len(list) <= maxConversations; more = args.Get("cursor") != "" {
			page, err := retryRateLimited(ctx, func(ctx context.Context) (conversationPage, error) { return r.api.readConversations(ctx, args) })
			if err := r.ignoreUnreadable(err, kind.list); err != nil {
				return nil, err
			}
			args.Set("cursor", page.Metadata.Cursor)
			for _, raw := range page.Channels {
				var c struct {
					ID     string `json:"id"`
					Shared bool   `json:"is_ext_shared"`
				}
				if _, err := decodeLoosely(raw, &c); err != nil || c.ID == "" {
					r.log.Warn("conversation skipped: it does not decode", "kind", kind.list, "err", err)
					continue
				}
				if r.serves(c.ID, kind.event == "im") {
					list = append(list, conversation{id: c.ID, kind: kind.event, shared: c.Shared})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b conversation) int {
		rank := func(c conversation) int {
			switch {
			case c.kind == "im":
				return 0
			case len(live[c.id]) > 0:
				return 1
			}
			return 2
		}
		return cmp.Compare(rank(a), rank(b))
	})
	if len(list) > maxConversations {
		r.log.Warn("too many conversations: messages may be missing", "searched", maxConversations)
		list = list[:maxConversations]
	}
	return list, nil
}

// conversationPage is a page of users.conversations.
type conversationPage struct {
	Channels []json.RawMessage `json:"channels"`
	Metadata struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

func (c *client) readConversations(ctx context.Context, args url.Values) (page conversationPage, err error) {
	_, err = c.query(ctx, "users.conversations", args, &page)
	return page, err
}

// fillConversation passes messages outside of threads to the inbox. It returns the threads to search:
// first the known ones, then those that began after oldest and have replies. n counts the messages.
func (r *receiver) fillConversation(ctx context.Context, c conversation, oldest string, known []string) (roots []string, n int, err error) {
	// Without Latest the pages would begin at the oldest message, and the bound would drop the newest.
	latest := strconv.FormatInt(r.api.clock.Now().Add(maxGap).Unix(), 10) + ".000000"
	q := messageQuery{channel: c.id, oldest: oldest, latest: latest, limit: missedPageSize}
	var all []listedMessage
	for more := true; more && len(all) < maxMissed; more = q.cursor != "" {
		page, err := retryRateLimited(ctx, func(ctx context.Context) ([]listedMessage, error) { return r.api.readMessages(ctx, &q) })
		if err != nil {
			return nil, n, r.ignoreUnreadable(err, c.id)
		}
		all = append(all, page...)
	}
	if q.cursor != "" {
		r.log.Warn("too many messages in one conversation: some may be missing", "conversation", c.id, "fetched", len(all))
	}
	roots = slices.Clone(known)
	slices.SortStableFunc(all, func(a, b listedMessage) int { return cmp.Compare(a.TS, b.TS) })
	for _, m := range all {
		if err := r.acceptMissed(ctx, c, m.message); err != nil {
			return nil, n, err
		}
		n++
		if m.TS != "" && m.LatestReply > oldest && !slices.Contains(roots, m.TS) {
			roots = append(roots, m.TS)
		}
	}
	return roots, n, nil
}

// fillThread passes the replies after oldest in a thread to the inbox. n counts them.
func (r *receiver) fillThread(ctx context.Context, c conversation, root, oldest string) (n int, err error) {
	q := messageQuery{channel: c.id, thread: root, oldest: oldest, limit: missedPageSize}
	for more := true; more && n < maxMissed; more = q.cursor != "" {
		page, err := retryRateLimited(ctx, func(ctx context.Context) ([]listedMessage, error) { return r.api.readMessages(ctx, &q) })
		if err != nil {
			return n, r.ignoreUnreadable(err, c.id)
		}
		for _, m := range page {
			if m.TS != "" && m.TS <= oldest || m.TS == root {
				continue // every page repeats the first message
			}
			if err := r.acceptMissed(ctx, c, m.message); err != nil {
				return n, err
			}
			n++
		}
	}
	if q.cursor != "" {
		r.log.Warn("too many replies in one thread: some may be missing", "conversation", c.id, "thread", root, "fetched", n)
	}
	return n, nil
}

// retryRateLimited repeats a call while Slack rate-limits it.
func retryRateLimited[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for i := 1; ; i++ {
		answer, err := call(ctx)
		var ce *callError
		if !errors.As(err, &ce) || ce.code != "ratelimited" || i == maxRateLimitTries || retry.Wait(ctx, max(ce.retryAfter, minBackOff)) != nil {
			return answer, err
		}
	}
}

// ignoreUnreadable returns the error, or nil if Slack permanently refuses to let the app read a
// conversation. Each reason for that is logged once.
func (r *receiver) ignoreUnreadable(err error, where string) error {
	var ce *callError
	if !errors.As(err, &ce) || ce.code == "" || isTransient(ce) || isTokenError(err) {
		return err
	}
	if _, told := r.loggedReasons.LoadOrStore(ce.code+" "+ce.missingScope, true); !told {
		r.log.Warn("missed messages cannot be fetched where slack does not let the app read: "+
			"add the scope under oauth & permissions and install it again", "first", where, "scope", ce.missingScope, "err", err)
	}
	return nil
}

// acceptMissed passes a message to the inbox as if its event had arrived, in the order of its queue.
// One that does not decode is skipped: what is known of it is not enough to answer.
func (r *receiver) acceptMissed(ctx context.Context, c conversation, m message) error {
	if m.TS == "" {
		r.log.Warn("missed message skipped: it does not decode", "conversation", c.id)
		return nil
	}
	e := &event{message: m, Channel: c.id, ChannelType: c.kind, shared: c.shared, threaded: r.self.agentView}
	e.Type = "message"
	return r.queues.do(ctx, intake{event: e}.queueKey(), func() error {
		msg, err := r.convert(ctx, e)
		// A missed /stop meant a turn that has ended since.
		if err == nil && msg != nil && strings.TrimSpace(msg.Text) != "/stop" {
			err = r.deliver(ctx, msg)
		}
		return err
	})
}

func (r *receiver) deliver(ctx context.Context, msg *chats.Message) error {
	err := r.in.Accept(ctx, *msg)
	if ctx.Err() == nil {
		r.health.recordAccept(err)
	}
	if err == nil {
		r.surface.SetThreadTitle(ctx, *msg)
		r.progress.Touch(msg.Chat)
	}
	return err
}
