package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/storage"
)

const damagedNotice = "Something that I had stored for this chat can not be read any more. I set it aside and go on without it.%s\n\n_Incident %s_"

// mend sets a damaged record aside and tells the chat that it is about, if that is known.
// Afterwards it is gone, or replaced by what stands for it; a record of a log stays, and
// is skipped. It reports whether it was set aside now, not before.
func (b *Bridge) mend(ctx context.Context, d *jobs.DamagedError, chat chats.Chat, more string) (bool, error) {
	b.mending.Lock()
	defer b.mending.Unlock()
	if still, err := b.stillThere(ctx, d); !still || err != nil {
		return false, err
	}
	a := jobs.Aside{Key: d.Name(), Reason: "the record does not decode", Incident: jobs.NewIncident(), Data: d.Data}
	if chat.ID != "" {
		a.Chat = chat.String()
	}
	if err := b.asides.Add(ctx, a); err != nil {
		return false, err
	}
	if b.platforms[chat.Platform] != nil && chat.ID != "" {
		_, err := b.desk.Post(ctx, "aside/"+d.Name(), chat, cards.Card{Text: fmt.Sprintf(damagedNotice, more, a.Incident)})
		if err != nil && !errors.Is(err, jobs.ErrInvalid) {
			return false, err
		}
	}
	if d.Pos > 0 {
		return true, nil
	}
	return true, b.replace(ctx, d.Key)
}

// stillThere reports whether a damaged record was not set aside yet.
func (b *Bridge) stillThere(ctx context.Context, d *jobs.DamagedError) (bool, error) {
	key := d.Key
	if d.Pos > 0 { // it stays where it is
		key = jobs.AsideKey(d.Name())
	}
	entry, err := b.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return d.Pos > 0, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", key, err)
	}
	return d.Pos == 0 && bytes.Equal(entry.Value, d.Data), nil
}

// replace takes a damaged record away. A receipt is replaced by an empty one, which still
// stops duplicates; a session by one that nothing was said in, since nobody knows what was
// cleared.
func (b *Bridge) replace(ctx context.Context, key string) error {
	if m, ok := jobs.MessageOf(key, jobs.ReceiptPrefix); ok {
		return b.jobs.Close(ctx, &jobs.Job{Message: m, State: jobs.StateFailed, Closed: b.cfg.Now()})
	}
	if name, ok := strings.CutPrefix(key, sessions.SessionPrefix); ok {
		if chat, err := chats.ParseChat(name); err == nil {
			s := sessions.Session{Chat: chat, Generation: 1, Rev: storage.Any}
			for ; b.begunLog(ctx, s.Log()); s.Generation++ {
			}
			_, err := s.Save(ctx, b.store)
			return err
		}
	}
	if err := b.store.Delete(ctx, key, storage.Any); err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

func (b *Bridge) begunLog(ctx context.Context, log string) bool {
	for _, err := range b.store.Records(ctx, log, storage.Query{Limit: 1}) {
		return err == nil
	}
	return false
}

// mendJob sets an open job aside that does not decode. A person hears of their message.
func (b *Bridge) mendJob(ctx context.Context, d *jobs.DamagedError) error {
	m, _ := jobs.MessageOf(d.Key, jobs.OpenPrefix)
	more := ""
	if m.Kind == chats.KindText {
		more = " It was a message of yours: please send it again."
	} else if m.Kind != jobs.KindTask {
		m.Chat = chats.Chat{} // a card is nothing to people
	}
	_, err := b.mend(ctx, d, m.Chat, more)
	return err
}

// mended reports whether a job failed because of a damaged record, which is set aside now.
// A record that is met twice all the same ends the job.
func (b *Bridge) mended(j *jobs.Job, err error) bool {
	d, is := errors.AsType[*jobs.DamagedError](err)
	if !is {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.lanes.Work()), jobs.StoreTimeout)
	defer cancel()
	if slices.Contains(j.Damaged, d.Name()) {
		j.Notice = b.turns.Failed(j, err)
		return false
	}
	if _, err := b.mend(ctx, d, j.Message.Chat, ""); err != nil {
		b.log.Error("a damaged record can not be set aside, trying again", "key", d.Name(), "err", err)
		return false
	}
	j.Damaged = append(j.Damaged, d.Name())
	return true
}
