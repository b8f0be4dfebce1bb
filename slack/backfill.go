package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

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
		params := slack.GetConversationsForUserParameters{Types: []string{kind.list}, ExcludeArchived: true, Limit: maxConversations}
		for more := true; more && len(list) <= maxConversations; more = params.Cursor != "" {
			page, err := retryRateLimited(ctx, r.api, "users.conversations", func(ctx context.Context, api *slack.Client) (page []slack.Channel, err error) {
				page, params.Cursor, err = api.GetConversationsForUserContext(ctx, &params)
				return page, err
			})
			if err := r.ignoreUnreadable(err, kind.list); err != nil {
				return nil, err
			}
			for _, c := range page {
				if r.serves(c.ID, kind.event == "im") {
					list = append(list, conversation{id: c.ID, kind: kind.event, shared: c.IsExtShared})
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

// fillConversation passes messages outside of threads to the inbox. It returns the threads to search:
// first the known ones, then those that began after oldest and have replies. n counts the messages.
func (r *receiver) fillConversation(ctx context.Context, c conversation, oldest string, known []string) (roots []string, n int, err error) {
	// Without Latest the pages would begin at the oldest message, and the bound would drop the newest.
	latest := strconv.FormatInt(r.api.clock.Now().Add(maxGap).Unix(), 10) + ".000000"
	params := slack.GetConversationHistoryParameters{ChannelID: c.id, Oldest: oldest, Latest: latest, Limit: missedPageSize}
	var all []slack.Message
	for more := true; more && len(all) < maxMissed; more = params.Cursor != "" {
		page, err := retryRateLimited(ctx, r.api, "conversations.history", func(ctx context.Context, api *slack.Client) (*slack.GetConversationHistoryResponse, error) {
			return api.GetConversationHistoryContext(ctx, &params)
		})
		if err != nil {
			return nil, n, r.ignoreUnreadable(err, c.id)
		}
		all, params.Cursor = append(all, page.Messages...), page.ResponseMetaData.NextCursor
	}
	if params.Cursor != "" {
		r.log.Warn("too many messages in one conversation: some may be missing", "conversation", c.id, "fetched", len(all))
	}
	roots = slices.Clone(known)
	slices.SortStableFunc(all, func(a, b slack.Message) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	for _, m := range all {
		if err := r.acceptMissed(ctx, c, m); err != nil {
			return nil, n, err
		}
		n++
		if m.LatestReply > oldest && !slices.Contains(roots, m.Timestamp) {
			roots = append(roots, m.Timestamp)
		}
	}
	return roots, n, nil
}

// fillThread passes the replies after oldest in a thread to the inbox. n counts them.
func (r *receiver) fillThread(ctx context.Context, c conversation, root, oldest string) (n int, err error) {
	params := slack.GetConversationRepliesParameters{ChannelID: c.id, Timestamp: root, Oldest: oldest, Limit: missedPageSize}
	for more := true; more && n < maxMissed; more = params.Cursor != "" {
		page, err := retryRateLimited(ctx, r.api, "conversations.replies", readReplies(&params))
		if err != nil {
			return n, r.ignoreUnreadable(err, c.id)
		}
		for _, m := range page {
			if m.Timestamp <= oldest || m.Timestamp == root {
				continue // every page repeats the first message
			}
			if err := r.acceptMissed(ctx, c, m); err != nil {
				return n, err
			}
			n++
		}
	}
	if params.Cursor != "" {
		r.log.Warn("too many replies in one thread: some may be missing", "conversation", c.id, "thread", root, "fetched", n)
	}
	return n, nil
}

// retryRateLimited repeats a call while Slack rate-limits it.
func retryRateLimited[T any](ctx context.Context, c *client, method string, with func(context.Context, *slack.Client) (T, error)) (T, error) {
	for i := 1; ; i++ {
		answer, err := callWithResult(ctx, c, method, with)
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
func (r *receiver) acceptMissed(ctx context.Context, c conversation, m slack.Message) error {
	e := &event{message: newMessage(m.Msg), Channel: c.id, ChannelType: c.kind, shared: c.shared, threaded: r.self.agentView}
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

// newMessage converts a message of the library to the one in an event.
func newMessage(m slack.Msg) message {
	out := message{
		Type: m.Type, Subtype: m.SubType, User: m.User, BotID: m.BotID, Text: m.Text,
		TS: m.Timestamp, ThreadTS: m.ThreadTimestamp, ParentUserID: m.ParentUserId, Team: m.Team, Username: m.Username,
	}
	if m.BotProfile != nil {
		out.Profile.Name = m.BotProfile.Name
	}
	if len(m.Attachments) > 0 {
		out.Attachments, _ = json.Marshal(m.Attachments) // it was decoded from JSON
	}
	for _, f := range m.Files {
		out.Files = append(out.Files, newAttachedFile(f))
	}
	return out
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
