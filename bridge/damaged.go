package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/storage"
)

// damagedError is a record that does not decode. It is set aside, never tried again.
type damagedError struct {
	key  string
	data []byte
	// pos is its place, where it is a record of the log that key names.
	pos storage.Position
	err error
}

func (e *damagedError) Error() string {
	if e.pos > 0 {
		return fmt.Sprintf("decode record %d of %s: %v", e.pos, e.key, e.err)
	}
	return fmt.Sprintf("decode %s: %v", e.key, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

func isDamaged(err error) bool {
	_, is := errors.AsType[*damagedError](err)
	return is
}

// name is what it is set aside under.
func (e *damagedError) name() string {
	if e.pos > 0 {
		return fmt.Sprintf("log/%s/%d", e.key, e.pos)
	}
	return e.key
}

// decode reads a record of the KV.
func decode(entry storage.Entry, v any) error {
	if err := json.Unmarshal(entry.Value, v); err != nil {
		return &damagedError{key: entry.Key, data: entry.Value, err: err}
	}
	return nil
}

const damagedNotice = "Something that I had stored for this chat can not be read any more. I set it aside and go on without it.%s\n\n_Incident %s_"

// mend sets a damaged record aside and tells the chat that it is about, if that is known.
// Afterwards it is gone, or replaced by what stands for it; a record of a log stays, and
// is skipped. It reports whether it was set aside now, not before.
func (b *Bridge) mend(ctx context.Context, d *damagedError, chat Chat, more string) (bool, error) {
	b.mending.Lock()
	defer b.mending.Unlock()
	if still, err := b.stillThere(ctx, d); !still || err != nil {
		return false, err
	}
	a := Aside{Key: d.name(), Reason: "the record does not decode", Incident: newIncident(), Data: d.data}
	if chat.ID != "" {
		a.Chat = chat.String()
	}
	if err := b.setAside(ctx, a); err != nil {
		return false, err
	}
	if b.platforms[chat.Platform] != nil && chat.ID != "" {
		_, err := b.postNow(ctx, "aside/"+d.name(), chat, Card{Text: fmt.Sprintf(damagedNotice, more, a.Incident)})
		if err != nil && !errors.Is(err, ErrUnwelcome) {
			return false, err
		}
	}
	if d.pos > 0 {
		return true, nil
	}
	return true, b.replace(ctx, d.key)
}

// stillThere reports whether a damaged record was not set aside yet.
func (b *Bridge) stillThere(ctx context.Context, d *damagedError) (bool, error) {
	key := d.key
	if d.pos > 0 { // it stays where it is
		key = asidePrefix + hashed(d.name())
	}
	entry, err := b.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return d.pos > 0, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", key, err)
	}
	return d.pos == 0 && bytes.Equal(entry.Value, d.data), nil
}

// replace takes a damaged record away. A receipt is replaced by an empty one, which still
// stops duplicates; a session by one that nothing was said in, since nobody knows what was
// cleared.
func (b *Bridge) replace(ctx context.Context, key string) error {
	if m, ok := messageOf(key, receiptPrefix); ok {
		return b.jobs.close(ctx, &Job{Message: m, State: StateFailed, Closed: b.cfg.Now()})
	}
	if name, ok := strings.CutPrefix(key, sessionPrefix); ok {
		if chat, err := ParseChat(name); err == nil {
			s := Session{Chat: chat, Generation: 1, rev: storage.Any}
			for ; b.begunLog(ctx, s.Log()); s.Generation++ {
			}
			_, err := s.save(ctx, b.store)
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

// messageOf is what the key of a job says about its message.
func messageOf(key, prefix string) (m Message, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return m, false
	}
	chat, err := ParseChat(parts[0])
	return Message{Chat: chat, ID: parts[1], Kind: Kind(parts[2])}, err == nil
}

// mendJob sets an open job aside that does not decode. A person hears of their message.
func (b *Bridge) mendJob(ctx context.Context, d *damagedError) error {
	m, _ := messageOf(d.key, openPrefix)
	more := ""
	if m.Kind == KindText {
		more = " It was a message of yours: please send it again."
	} else if m.Kind != KindTask {
		m.Chat = Chat{} // a card is nothing to people
	}
	_, err := b.mend(ctx, d, m.Chat, more)
	return err
}

// mendHistory sets aside what was skipped in the conversation of a job. A turn that has
// begun is not gone on with then: what it has done may stand in what is lost.
func (b *Bridge) mendHistory(ctx context.Context, j *Job, h *history) (string, bool, error) {
	lost := false
	for _, d := range h.damaged {
		now, err := b.mend(ctx, d, j.Message.Chat, "")
		if err != nil {
			return "", false, err
		}
		lost = lost || now
	}
	h.damaged = nil
	if !lost || !j.found && !j.begun {
		return "", false, nil
	}
	notes := agent.Stop(h.view())
	for i := range notes {
		notes[i].Time = b.cfg.Now()
	}
	if err := h.append(ctx, notes...); err != nil {
		return "", false, err
	}
	return b.failed(j, errors.New("a record of this turn does not decode")), true, nil
}

// mended reports whether a job failed because of a damaged record, which is set aside now.
// A record that is met twice all the same ends the job.
func (b *Bridge) mended(j *Job, err error) bool {
	d, is := errors.AsType[*damagedError](err)
	if !is {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.work), storeTimeout)
	defer cancel()
	if slices.Contains(j.damaged, d.name()) {
		j.Notice = b.failed(j, err)
		return false
	}
	if _, err := b.mend(ctx, d, j.Message.Chat, ""); err != nil {
		b.log.Error("a damaged record can not be set aside, trying again", "key", d.name(), "err", err)
		return false
	}
	j.damaged = append(j.damaged, d.name())
	return true
}
