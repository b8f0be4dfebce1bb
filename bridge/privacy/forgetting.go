// Package privacy deletes what the bot stores about users who ask for it ([Eraser]), and listens in groups
// that want it ([Observer]).
//
// # Forgetting
//
// From the moment at which the bot says that it has forgotten a person, no reply, page, export, prompt or
// replica shows what the person wrote before, and nothing of it is left on disk but what docs/privacy.md
// calls kept. This holds also if processes are killed or paused at any step. What others asked stays, with
// the answers that they got before that moment, even if these quote the person.
//
// The confirmation of /forget is a job. It writes its number into a record that all replicas watch
// ([conversation.Forgotten]). From then on no turn with a lower number begins, because the record is read
// together with the session, and each replica ends those that run or wait. When their jobs are closed, which is
// how the replicas acknowledge, nothing writes any more that was begun before. Then the job erases. Meanwhile
// the person may have written more, and the bot have answered with what was not erased yet: the job waits for
// these answers, erases again, and reports. It deletes last what the rest is found by, so that it can be
// repeated after a crash. An erased conversation gets longer, so a replica that has a copy of it reads it
// again. A day later a sweep looks once more for what a paused replica has added, and removes the record.
package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// ForgetCommand is the name of the command and the kind of its cards.
const ForgetCommand = "forget"

// Button values.
const (
	choiceForget = "forget"
	choiceKeep   = "keep"
)

const (
	elsewhereText = "Please send me /forget in a direct chat: your data is private."
	questionText  = "**Shall I forget you?** I will end what I am doing for you and delete the following, and this cannot be undone:\n\n" +
		"- our conversations, and my receipts of the last week's messages\n" +
		"- your questions in groups and threads, with my answers\n" +
		"- your files, what I remember about you, and what you have allowed me to do without asking\n" +
		"- your scheduled tasks and webhooks\n" +
		"- the accounts you have connected\n\n" +
		"I keep: the messages that you see here, which I cannot delete; your permission to talk to me; how much you have used, as numbers; your id where you allowed or changed something for others; in groups, their files and what I remember there, without your name; the administrators' audit. My operator's backups hold your data until they are deleted.\n\n/export gives you a copy first."
	keptText = "I have forgotten nothing."
	goneText = "I have forgotten you: your data is deleted."
	notYours = "Only the person who sent /forget can decide that."
)

// KindForget is the kind of the job that forgets a person.
const KindForget chats.Kind = "forget"

// The pauses in which the job looks whether what it waits for has ended.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// sweepAfter is the age at which the record of a person is swept and removed.
const sweepAfter = 24 * time.Hour

// EraserConfig configures an [Eraser]. All fields are required except EraseRest and OnErased.
type EraserConfig struct {
	Now   func() time.Time
	Store storage.Store
	// OpenJobs reads the open jobs.
	OpenJobs queue.Store
	// CurrentChat returns the chat to which a chat has moved, or the chat itself.
	CurrentChat func(chats.Chat) chats.Chat
	// EndJobs ends the jobs of a user, platform:id, that this process has and that pass.
	EndJobs func(user string, pass func(m chats.Message, seq int64) bool)
	// MaxWait is how long these jobs may take to end.
	MaxWait  time.Duration
	Cards    Cards
	Observer *Observer
	// Insert inserts the job of a message, once.
	Insert func(ctx context.Context, m chats.Message) error
	// EraseRest deletes what the rest of the program stores about a user, platform:id, and about their
	// direct chat. It is idempotent.
	EraseRest func(ctx context.Context, user string, direct chats.Chat) error
	// OnErased is called after each erasure, before success is reported.
	OnErased func(ctx context.Context) error
}

// Cards posts and closes cards.
type Cards interface {
	// Answer makes a card the answer of a job. On a platform without buttons, it returns the text to
	// answer with instead.
	Answer(ctx context.Context, j *queue.Run, card interact.Card) (string, error)
	// Forget deletes the cards that quote a user or belong to some chats, except the one with the token
	// but and open ones that are still needed.
	Forget(ctx context.Context, person string, of map[chats.Chat]bool, but string) error
}

// Eraser asks for confirmation of /forget, and carries it out.
type Eraser struct{ cfg EraserConfig }

// NewEraser returns an eraser.
func NewEraser(cfg EraserConfig) *Eraser { return &Eraser{cfg} }

// Ask answers /forget with a card that asks for confirmation.
func (d *Eraser) Ask(ctx context.Context, j *queue.Run, _ string) (string, error) {
	if !j.Message.Direct {
		outbox.MakeEphemeral(j)
		return elsewhereText, nil
	}
	return d.cfg.Cards.Answer(ctx, j, interact.Card{Kind: ForgetCommand, Text: questionText, Choices: [][]interact.Choice{{
		{Label: "Forget me", Value: choiceForget, Style: chats.StyleDanger}, {Label: "Keep all", Value: choiceKeep},
	}}})
}

// HandlePress handles the buttons of the card. If the user confirms, the erasing job is on disk when it
// returns nil.
func (d *Eraser) HandlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	switch {
	case press.Expired || press.Choice == choiceKeep:
		return interact.Result{Text: keptText, Close: true}, nil
	case !press.Direct || press.Choice != choiceForget:
		return interact.Result{Toast: notYours}, nil
	}
	return interact.Result{Text: "I am forgetting you.", Close: true}, d.cfg.Insert(ctx, press.Message(KindForget, press.Token, d.cfg.Now()))
}

// Forget runs the job of a confirmed /forget.
func (d *Eraser) Forget(ctx context.Context, j *queue.Run) (string, error) {
	if err := j.Author(d.cfg.Store).Record(ctx, ForgetCommand, ""); err != nil {
		return "", err
	}
	for range 2 {
		now, err := d.save(ctx, j, false)
		if err == nil {
			err = d.erase(ctx, j, now)
		}
		if err != nil {
			return "", err
		}
	}
	return goneText, nil
}

// Finish records that the job of a confirmed /forget has ended, also if it was given up.
func (d *Eraser) Finish(ctx context.Context, j *queue.Run) error {
	_, err := d.save(ctx, j, true)
	return err
}

// save writes the record of the sender of a job, and returns the number of the write.
func (d *Eraser) save(ctx context.Context, j *queue.Run, done bool) (int64, error) {
	f := conversation.Forgotten{Seq: j.Seq, At: d.cfg.Now(), Done: done}
	rev, err := storage.Save(ctx, d.cfg.Store, conversation.ForgottenPrefix+j.Message.SenderID(), f, storage.Any)
	return d.cfg.OpenJobs.Base.Load() + int64(rev), err //nolint:gosec // a store is never written 2^63 times
}

// erase erases a person when the jobs with numbers below before are closed, on all replicas. It is idempotent,
// and deletes last what the rest is found by.
func (d *Eraser) erase(ctx context.Context, j *queue.Run, before int64) error {
	by := j.Message.SenderID()
	if err := d.awaitEnd(ctx, j, before); err != nil {
		return err
	}
	var rest error // it holds up nothing here
	if d.cfg.EraseRest != nil {
		rest = d.cfg.EraseRest(ctx, by, j.Message.Chat.WithoutThread())
	}
	own, err := conversation.Conversations(ctx, d.cfg.Store, by)
	if err != nil {
		return errors.Join(rest, err)
	}
	direct := map[chats.Chat]bool{j.Message.Chat.WithoutThread(): true}
	for _, c := range own {
		direct[c.Chat.WithoutThread()] = true
	}
	for _, erase := range []func() error{
		func() error { return d.eraseOpen(ctx, by) }, // before the receipts
		func() error { return d.replaceDamaged(ctx, direct) },
		func() error { return interact.ForgetLasting(ctx, d.cfg.Store, by) },
		func() error { return d.cfg.Observer.Forget(ctx, by) },
		func() error { return d.cfg.Cards.Forget(ctx, by, direct, j.Message.ID) },
		func() error { return d.deleteDeadLetters(ctx, by, direct) },
		func() error { return d.eraseDirect(ctx, before, direct, own) },
		func() error { return d.eraseShared(ctx, by, math.MaxInt64) },
	} {
		if err := erase(); err != nil {
			return errors.Join(rest, err)
		}
	}
	return rest
}

// awaitEnd ends jobs of a person, and waits until these and those with numbers below before are closed.
func (d *Eraser) awaitEnd(ctx context.Context, j *queue.Run, before int64) error {
	by, f := j.Message.SenderID(), conversation.Forgotten{Seq: j.Seq}
	for pauses := retry.New(minPause, maxPause); ; {
		d.cfg.EndJobs(by, f.Ends)
		open, err := d.firstOpen(ctx, by, func(m chats.Message, seq int64) bool { return seq < before || f.Ends(m, seq) })
		if open == nil || err != nil {
			return err
		}
		if d.cfg.Now().Sub(j.Accepted) >= d.cfg.MaxWait {
			return fmt.Errorf("an earlier job does not end: %s", open.Key())
		}
		if err := retry.Wait(ctx, pauses.Next(0)); err != nil {
			return err
		}
	}
}

// firstOpen returns an open job of a person that passes, or nil. Jobs that forget do not wait for each other.
func (d *Eraser) firstOpen(ctx context.Context, by string, pass func(m chats.Message, seq int64) bool) (*queue.Run, error) {
	platform, _, _ := strings.Cut(by, ":")
	for j, err := range d.cfg.OpenJobs.ListOpenBy(ctx, platform+":", by) {
		if err != nil || j.Message.Kind != KindForget && pass(j.Message, j.Seq) {
			return j, err
		}
	}
	return nil, nil
}

// Watch ends the jobs of people whom other replicas forget, until ctx ends. After an error, it has to be
// called again.
func (d *Eraser) Watch(ctx context.Context) error {
	changes := d.cfg.Store.Watch(ctx, conversation.ForgottenPrefix)
	end := func(entry storage.Entry) {
		person, f := conversation.DecodeForgotten(entry)
		d.cfg.EndJobs(person, f.Ends)
	}
	for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: conversation.ForgottenPrefix}) {
		if err != nil {
			return fmt.Errorf("list whom to forget: %w", err)
		}
		end(entry)
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch whom to forget: %w", err)
		}
		end(e.Entry)
	}
	return nil
}

// Sweep erases once more what people wrote who were forgotten a day ago, and removes their records.
func (d *Eraser) Sweep(ctx context.Context) error {
	var all error
	for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: conversation.ForgottenPrefix}) {
		if err != nil {
			return fmt.Errorf("list whom to forget: %w", err)
		}
		person, f := conversation.DecodeForgotten(entry)
		if d.cfg.Now().Sub(f.At) < sweepAfter {
			continue
		}
		open, err := d.firstOpen(ctx, person, func(_ chats.Message, seq int64) bool { return seq < f.Seq })
		if open == nil && err == nil {
			err = d.eraseShared(ctx, person, f.Seq)
		}
		if open == nil && err == nil {
			err = d.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
		}
		all = errors.Join(all, err)
	}
	return all
}

// eraseShared erases a person from the receipts and from the conversations of shared chats, up to a number.
func (d *Eraser) eraseShared(ctx context.Context, person string, before int64) error {
	if err := receipts.EraseBy(ctx, d.cfg.Store, person, func(r *receipts.Receipt) bool { return r.Seq < before }); err != nil {
		return err
	}
	for a, err := range conversation.AskedBy(ctx, d.cfg.Store, person) {
		if err != nil {
			return err
		}
		owners := []string{chats.Message{Chat: a.Chat}.Owner(), chats.Message{Chat: d.cfg.CurrentChat(a.Chat)}.Owner()}
		if began, err := chats.ParseChat(logChat(a.Log)); err == nil { // it may have moved before the person asked
			owners = append(owners, chats.Message{Chat: began}.Owner())
		}
		kept, err := conversation.EraseBy(ctx, d.cfg.Store, a.Log, person, before, owners...)
		if err == nil && !kept {
			err = a.Remove(ctx, d.cfg.Store)
		}
		if err != nil {
			return err
		}
	}
	if d.cfg.OnErased == nil {
		return nil
	}
	return d.cfg.OnErased(ctx)
}

// eraseDirect deletes the conversations in direct chats that began before a job, given by its number. The
// chats go on with new ones.
func (d *Eraser) eraseDirect(ctx context.Context, before int64, direct map[chats.Chat]bool, listed []conversation.Conversation) error {
	for chat := range direct {
		for _, end := range []string{"/", ":"} { // of the chat itself, and of its threads
			for log, err := range d.cfg.Store.Logs(ctx, storage.Range{Prefix: chat.String() + end}) {
				var current conversation.Session
				if err == nil {
					current, err = d.startNew(ctx, logChat(log), before)
				}
				if err == nil && log != current.Log() {
					err = d.cfg.Store.Drop(ctx, log)
				}
				if err != nil {
					return fmt.Errorf("remove the conversations of %s: %w", chat, err)
				}
			}
		}
	}
	for _, c := range listed {
		current, err := d.startNew(ctx, c.Chat.String(), before)
		if err == nil && c.Log() != current.Log() {
			err = c.Delete(ctx, d.cfg.Store, storage.Any)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// startNew begins a new conversation in a direct chat at a job, unless that was done before.
func (d *Eraser) startNew(ctx context.Context, chat string, before int64) (conversation.Session, error) {
	c, err := chats.ParseChat(chat)
	if err != nil {
		return conversation.Session{}, err
	}
	return conversation.StartNew(ctx, d.cfg.Store, &queue.Job{Message: chats.Message{Chat: c}, Seq: before})
}

// logChat returns the chat in which the conversation of a log began.
func logChat(log string) string {
	chat, _, _ := strings.Cut(log, "/")
	return chat
}

// eraseOpen erases from the open jobs what a user did to the turns of others, because a job copies it into
// its receipt when it is closed. Erase the receipts after that.
func (d *Eraser) eraseOpen(ctx context.Context, by string) error {
	platform, _, _ := strings.Cut(by, ":")
	for again := true; again; {
		again = false
		open, _, err := d.cfg.OpenJobs.ListOpen(ctx, platform+":", func(chats.Chat) bool { return true })
		if err != nil {
			return err
		}
		for _, j := range open {
			w, ok := j.Work.(interface{ Forget(user string) bool })
			if !ok || !w.Forget(by) {
				continue
			}
			err := d.cfg.OpenJobs.Put(ctx, j)
			if errors.Is(err, storage.ErrConflict) { // the job is read again, unless it has a receipt now
				again, err = true, nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceDamaged replaces the receipts of direct chats that do not decode by empty ones, which still stop
// duplicates.
func (d *Eraser) replaceDamaged(ctx context.Context, direct map[chats.Chat]bool) error {
	for chat := range direct {
		for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: receipts.Prefix + chat.String() + "/"}) {
			if err != nil {
				return fmt.Errorf("look for damaged receipts: %w", err)
			}
			m, known := queue.MessageOf(entry.Key, receipts.Prefix)
			if !known || json.Unmarshal(entry.Value, new(receipts.Receipt)) == nil {
				continue
			}
			empty := &receipts.Receipt{Message: m, State: receipts.Failed, Closed: d.cfg.Now()}
			if err := receipts.Put(ctx, d.cfg.Store, empty, storage.Any); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteDeadLetters deletes the dead letters of a user's messages, of cards that quote the user, and of
// direct chats.
func (d *Eraser) deleteDeadLetters(ctx context.Context, by string, direct map[chats.Chat]bool) error {
	all, err := queue.ListDeadLetters(ctx, d.cfg.Store)
	if err != nil {
		return err
	}
	for _, a := range all {
		theirs := a.SenderID() == by || a.QuotedUser == by
		places := []string{a.Chat}
		if a.Chat == "" { // of a damaged record, whose key names a chat or an owner
			places = strings.Split(a.Key, "/")
			theirs = theirs || slices.Contains(places, by)
		}
		for _, place := range places {
			chat, err := chats.ParseChat(place)
			theirs = theirs || err == nil && direct[chat.WithoutThread()]
		}
		if !theirs {
			continue
		}
		if err := d.cfg.Store.Delete(ctx, queue.DeadLetterKey(a.Key), storage.Any); err != nil {
			return fmt.Errorf("remove a dead letter: %w", err)
		}
	}
	return nil
}
