package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

// Once per interval a stranger gets a notice that says how to be admitted, and one that says that a code
// is wrong. Their other messages are dropped. All strangers together get a bounded number of notices per
// hour.
const (
	strangerInterval   = 24 * time.Hour
	maxStrangersAnHour = 200
)

// Key prefixes of [strangerNotices].
const (
	strangerPrefix = "stranger/"
	notifiedPrefix = strangerPrefix + "told/"
	hourKey        = strangerPrefix + "hour"
)

// strangerNotices records which strangers got a notice, until they may get it again. A stranger who got a
// notice in a shared chat gets another one in a direct chat.
type strangerNotices struct{ store storage.Store }

// notice is a notice to a stranger: about what, and where.
type notice struct {
	user      string
	direct    bool // in a direct chat
	aboutCode bool // about a code
}

// suppressedBy returns the notices after which this one is not sent.
func (n notice) suppressedBy() []notice {
	if n.direct {
		return []notice{n}
	}
	return []notice{n, {n.user, true, n.aboutCode}}
}

// hourCount counts the notices of one hour.
type hourCount struct {
	Began   time.Time `json:"began"`
	Answers int       `json:"answers"`
}

func (n notice) key() string {
	return notifiedPrefix + n.user + "/" + strconv.FormatBool(n.direct) + "/" + strconv.FormatBool(n.aboutCode)
}

// recordNotice reports whether to send a notice, and records it.
func (b strangerNotices) recordNotice(ctx context.Context, n notice, now time.Time) (told bool, err error) {
	err = storage.Retry(ctx, func() (err error) {
		told, err = b.tryRecord(ctx, n, now)
		return err
	})
	return told, err
}

func (b strangerNotices) tryRecord(ctx context.Context, n notice, now time.Time) (bool, error) {
	var own storage.Revision
	for _, known := range n.suppressedBy() {
		at, rev, err := storage.Load[time.Time](ctx, b.store, known.key())
		if err != nil && rev == storage.Absent { // a damaged record counts as empty, and is overwritten
			return false, err
		}
		if rev != storage.Absent && now.Sub(at).Abs() < strangerInterval { // a clock may have been ahead
			return false, nil
		}
		if known == n {
			own = rev
		}
	}
	h, rev, err := storage.Load[hourCount](ctx, b.store, hourKey)
	if err != nil && rev == storage.Absent {
		return false, err
	}
	if now.Sub(h.Began).Abs() >= time.Hour {
		h = hourCount{Began: now}
	}
	if h.Answers >= maxStrangersAnHour {
		return false, nil
	}
	h.Answers++
	at, err := json.Marshal(now)
	if err != nil {
		return false, fmt.Errorf("encode the time of a notice to a stranger: %w", err)
	}
	count, err := json.Marshal(h)
	if err != nil {
		return false, fmt.Errorf("encode the count of notices to strangers: %w", err)
	}
	if _, err = b.store.Write(ctx, storage.Put(n.key(), at, own), storage.Put(hourKey, count, rev)); err != nil {
		return false, fmt.Errorf("record a notice to a stranger: %w", err)
	}
	return true, nil
}

// forget deletes the records of a user, or of all users if user is empty.
func (b strangerNotices) forget(ctx context.Context, user string) error {
	if user != "" {
		user += "/"
	}
	return b.removeNotices(ctx, notifiedPrefix+user, func(time.Time) bool { return true })
}

// prune deletes the records of strangers who may get a notice again.
func (b strangerNotices) prune(ctx context.Context, now time.Time) error {
	return b.removeNotices(ctx, notifiedPrefix, func(at time.Time) bool { return now.Sub(at).Abs() >= strangerInterval })
}

func (b strangerNotices) removeNotices(ctx context.Context, prefix string, pass func(at time.Time) bool) error {
	for entry, err := range b.store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list the notices to strangers: %w", err)
		}
		var at time.Time
		if json.Unmarshal(entry.Value, &at) == nil && !pass(at) {
			continue
		}
		if err := b.store.Delete(ctx, entry.Key, entry.Revision); err != nil && !errors.Is(err, storage.ErrConflict) { // after a conflict there is a new one
			return fmt.Errorf("delete the record of a notice to a stranger: %w", err)
		}
	}
	return nil
}

const textStranger = "Sorry, I only talk to people I have been introduced to. "

// HandleStranger decides how a stranger's message is handled: as the claim command, with a notice that
// says how to be admitted or that a code is wrong, or, if it returns false, not at all. If the job
// cannot be stored, the caller calls [Registry.ForgetNotice].
func (d *Registry) HandleStranger(ctx context.Context, j *queue.Run) (bool, error) {
	m := j.Message
	if m.Kind != chats.KindText {
		return false, nil
	}
	if code, claims := strings.CutPrefix(m.Text, "/"+claimCommand); claims {
		c, refusal, err := d.checkCode(ctx, code)
		if err != nil || refusal == "" {
			return err == nil, err
		}
		if c.Hash != nil {
			outbox.DeliveryOf(j).Notice = refusal
		}
	}
	if told, err := d.strangers.recordNotice(ctx, notice{m.SenderID(), m.Direct, outbox.DeliveryOf(j).Notice != ""}, d.cfg.Now()); !told || err != nil {
		return false, err
	}
	_, owned := d.register.owner()
	turn.WorkOf(j).AskOwner = owned && m.Direct
	switch {
	case outbox.DeliveryOf(j).Notice != "":
	case owned && !m.Direct:
		outbox.DeliveryOf(j).Notice = textStranger + "Write to me in a direct chat, and I will ask my owner to let you in."
	case !owned && d.cfg.Access.Empty():
		outbox.DeliveryOf(j).Notice = "I'm new here and have no owner yet. Is it you? Run `oneclaw claim` on the computer where I run, and do what it says."
	default:
		outbox.DeliveryOf(j).Notice = fmt.Sprintf(textStranger+"If you should be one of them, ask my operator to allow `%s`.", m.SenderID())
	}
	return true, nil
}

// ForgetNotice undoes what [Registry.HandleStranger] recorded: the sender got no notice.
func (d *Registry) ForgetNotice(ctx context.Context, m chats.Message) {
	if err := d.strangers.forget(ctx, m.SenderID()); err != nil {
		d.cfg.Log.Warn("the record of a notice that was not sent cannot be deleted", "user", m.SenderID(), "err", err)
	}
}
