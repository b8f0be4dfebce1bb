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

// Slack retries events only for some minutes. So after a time without a connection the messages of that
// time are fetched. The inbox drops those that had arrived, by their id.
const (
	// overlap is how far the search goes back before the last sign of life: events may be delayed for
	// that long, and clocks may differ.
	overlap = 5 * time.Minute
	// maxGap bounds the age of a message that is fetched.
	maxGap = 24 * time.Hour
	// Bounds of a search: conversations, threads, and messages of each.
	maxConversations = 200
	maxThreads       = 100
	maxMissed        = 500
	// missedPage is the page size of messages.
	missedPage = 100
	// maxInsist bounds the attempts at a rate-limited call.
	maxInsist = 20
)

// conversation is a channel or direct chat that the bot is in.
type conversation struct {
	id, kind string // kind as channel_type has it
	shared   bool   // with other workspaces
}

// fillGaps fetches missed messages, whenever there may be some.
func (r *receiver) fillGaps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.reach.Wake:
		}
		if r.leads != nil {
			r.saveMarks(ctx) // another process may be the leader
		}
		pauses := retry.New(minBackOff, maxBackOff)
		for since, name := r.reach.Gap(); !since.IsZero() && ctx.Err() == nil && r.leading(); since, name = r.reach.Gap() {
			err := r.backfill(ctx, since)
			if err == nil {
				r.reach.Filled(name)
				continue
			}
			wait := pauses.Next(asked(err))
			r.log.Warn("missed messages not fetched yet", "since", since.UTC(), "wait", wait, "err", err)
			_ = retry.Wait(ctx, wait) // the loop checks ctx
		}
		r.settle(ctx)
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
	live := r.reach.Threads()
	list, err := r.conversations(ctx, live)
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
		for _, root := range roots {
			if threads++; threads > maxThreads {
				r.log.Warn("messages may stay missing: too many threads", "searched", maxThreads)
				break
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

// conversations lists what to search, the most important first.
func (r *receiver) conversations(ctx context.Context, live map[string][]string) ([]conversation, error) {
	var list []conversation
	for _, kind := range []struct{ event, list string }{
		{"im", "im"}, {"mpim", "mpim"}, {"group", "private_channel"}, {"channel", "public_channel"},
	} {
		params := slack.GetConversationsForUserParameters{Types: []string{kind.list}, ExcludeArchived: true, Limit: maxConversations}
		for more := true; more && len(list) <= maxConversations; more = params.Cursor != "" {
			page, err := insist(ctx, r.api, "users.conversations", func(ctx context.Context, api *slack.Client) (page []slack.Channel, err error) {
				page, params.Cursor, err = api.GetConversationsForUserContext(ctx, &params)
				return page, err
			})
			if err := r.unlessUnreadable(err, kind.list); err != nil {
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
		r.log.Warn("messages may stay missing: too many conversations", "searched", maxConversations)
		list = list[:maxConversations]
	}
	return list, nil
}

// fillConversation passes messages outside of threads to the inbox, and returns the threads to search:
// those known, and those begun lately.
func (r *receiver) fillConversation(ctx context.Context, c conversation, oldest string, known []string) (roots []string, n int, err error) {
	// Without an end the pages begin at the oldest message, and the bound would drop the newest.
	latest := strconv.FormatInt(r.api.clock.Now().Add(maxGap).Unix(), 10) + ".000000"
	params := slack.GetConversationHistoryParameters{ChannelID: c.id, Oldest: oldest, Latest: latest, Limit: missedPage}
	var all []slack.Message
	for more := true; more && len(all) < maxMissed; more = params.Cursor != "" {
		page, err := insist(ctx, r.api, "conversations.history", func(ctx context.Context, api *slack.Client) (*slack.GetConversationHistoryResponse, error) {
			return api.GetConversationHistoryContext(ctx, &params)
		})
		if err != nil {
			return nil, n, r.unlessUnreadable(err, c.id)
		}
		all, params.Cursor = append(all, page.Messages...), page.ResponseMetaData.NextCursor
	}
	if params.Cursor != "" {
		r.log.Warn("messages may stay missing: too many in one conversation", "conversation", c.id, "fetched", len(all))
	}
	roots = slices.Clone(known)
	slices.SortStableFunc(all, func(a, b slack.Message) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	for _, m := range all {
		if err := r.offer(ctx, c, m); err != nil {
			return nil, n, err
		}
		n++
		if m.LatestReply > oldest && !slices.Contains(roots, m.Timestamp) {
			roots = append(roots, m.Timestamp)
		}
	}
	return roots, n, nil
}

// fillThread passes the replies of a thread to the inbox.
func (r *receiver) fillThread(ctx context.Context, c conversation, root, oldest string) (n int, err error) {
	params := slack.GetConversationRepliesParameters{ChannelID: c.id, Timestamp: root, Oldest: oldest, Limit: missedPage}
	for more := true; more && n < maxMissed; more = params.Cursor != "" {
		page, err := insist(ctx, r.api, "conversations.replies", replies(&params))
		if err != nil {
			return n, r.unlessUnreadable(err, c.id)
		}
		for _, m := range page {
			if m.Timestamp <= oldest || m.Timestamp == root {
				continue // every page repeats the first message
			}
			if err := r.offer(ctx, c, m); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// insist repeats a call while Slack rate-limits it.
func insist[T any](ctx context.Context, c *client, method string, with func(context.Context, *slack.Client) (T, error)) (T, error) {
	for i := 1; ; i++ {
		answer, err := ask(ctx, c, method, with)
		var ce *callError
		if !errors.As(err, &ce) || ce.code != "ratelimited" || i == maxInsist || retry.Wait(ctx, max(ce.retryAfter, minBackOff)) != nil {
			return answer, err
		}
	}
}

// unlessUnreadable returns an error, except if Slack refuses for good to read a conversation. That is
// logged once for each reason.
func (r *receiver) unlessUnreadable(err error, where string) error {
	var ce *callError
	if !errors.As(err, &ce) || ce.code == "" || transient(ce) || wrongToken(err) {
		return err
	}
	if _, told := r.told.LoadOrStore(ce.code+" "+ce.needed, true); !told {
		r.log.Warn("messages that came without a connection stay missing where slack does not let the app read: "+
			"add the scope under oauth & permissions and install it again", "first", where, "scope", ce.needed, "err", err)
	}
	return nil
}

// offer passes a message to the inbox as its event would have, in the order of its queue.
func (r *receiver) offer(ctx context.Context, c conversation, m slack.Message) error {
	e := &event{message: messageOf(m.Msg), Channel: c.id, ChannelType: c.kind, shared: c.shared, threaded: r.self.agentView}
	e.Type = "message"
	done := make(chan error, 1)
	ran := r.queues.do(ctx, intake{event: e}.queue(), func() {
		msg, err := r.convert(ctx, e)
		// A missed command to stop was about a turn of that time.
		if err == nil && msg != nil && strings.TrimSpace(msg.Text) != "/stop" {
			err = r.give(ctx, msg)
		}
		done <- err
	})
	if !ran {
		return context.Cause(ctx)
	}
	return <-done
}

// messageOf converts a message of the library to that of an event.
func messageOf(m slack.Msg) message {
	out := message{
		Type: m.Type, Subtype: m.SubType, User: m.User, BotID: m.BotID, Text: m.Text,
		TS: m.Timestamp, ThreadTS: m.ThreadTimestamp, Parent: m.ParentUserId, Team: m.Team, Username: m.Username,
	}
	if m.BotProfile != nil {
		out.Profile.Name = m.BotProfile.Name
	}
	if len(m.Attachments) > 0 {
		out.Attachments, _ = json.Marshal(m.Attachments) // it was decoded from JSON
	}
	for _, f := range m.Files {
		out.Files = append(out.Files, attachedOf(f))
	}
	return out
}

func (r *receiver) give(ctx context.Context, msg *chats.Message) error {
	err := r.in.Accept(ctx, *msg)
	if ctx.Err() == nil {
		r.health.accepted(err)
	}
	if err == nil {
		r.surface.Begun(ctx, *msg)
		r.reach.Touch(msg.Chat)
	}
	return err
}
