// Package privacy deletes what the bot stores about users who ask for it ([Eraser]): it implements
// /forget, its confirmation, and the jobs that erase the data. Each chat in which the user has asked
// something gets a job of its own, which waits for its turn there like a message, so that nothing is
// written to a conversation at the same time. The job in the chat of the confirmation begins the others,
// and answers when everything that belongs to the user alone is deleted.
package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
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
	questionText  = "**Shall I forget you?** I will delete the following, and this cannot be undone:\n\n" +
		"- our conversations, and my receipts of the last week's messages\n" +
		"- your questions in groups and threads, with my answers\n" +
		"- your files, what I remember about you, and what you have allowed me to do without asking\n" +
		"- your scheduled tasks and webhooks\n" +
		"- the accounts you have connected\n\n" +
		"I keep: the messages that you see here, which I cannot delete; your permission to talk to me; how much you have used, as numbers; your id where you allowed or changed something for others; in groups, their files and what I remember there, without your name; the administrators' audit. My operator's backups hold your data until they are deleted.\n\n/export gives you a copy first."
	keptText = "I have forgotten nothing."
	goneText = "I have forgotten you: your data here is deleted. I will delete your questions in other chats as soon as I am not busy there."
	notYours = "Only the person who sent /forget can decide that."
)

// Kinds of the jobs of /forget: the user's request, and the jobs in each chat in which the user has
// asked something, for its messages and for its tasks.
const (
	KindForget     chats.Kind = "forget"
	KindErase      chats.Kind = "erase"
	KindEraseTasks chats.Kind = "erase-tasks"
)

// EraserConfig configures an [Eraser]. All fields are required except EraseRest, EraseIn and OnErased.
type EraserConfig struct {
	Now   func() time.Time
	Store storage.Store
	// OpenJobs reads the open jobs.
	OpenJobs queue.Store
	// CurrentChat returns the chat to which a chat has moved, or the chat itself.
	CurrentChat func(chats.Chat) chats.Chat
	// MaxWait is how long earlier jobs may take until an erasure that waits for them fails.
	MaxWait  time.Duration
	Cards    Cards
	Observer *Observer
	Jobs     Jobs
	// Cache holds copies of conversations.
	Cache interface{ Clear() }
	// EraseRest deletes what the rest of the program stores about a user, platform:id, and about their
	// direct chat. It is idempotent.
	EraseRest func(ctx context.Context, user string, direct chats.Chat) error
	// EraseIn deletes what the turns of a user in a shared chat have added to the rest of the program after
	// EraseRest. It is idempotent.
	EraseIn func(ctx context.Context, user string, chat chats.Chat) error
	// CancelTasks cancels the background tasks of a user, platform:id, in a chat and its threads, also those
	// that were started before the chat moved.
	CancelTasks func(ctx context.Context, chat chats.Chat, user string) error
	// OnErased is called after each erasure, before the job reports success.
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

// Jobs inserts the erasing jobs.
type Jobs interface {
	// Append inserts the job of a message, once, behind what is being accepted in its chat: an erasure waits
	// for its user's earlier jobs, which must not stand behind it.
	Append(ctx context.Context, m chats.Message) error
}

// ErrNotYet is returned while an erasure waits for earlier jobs, which is no failure.
var ErrNotYet = errors.New("privacy: an earlier job is still open")

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
	text := "I am forgetting you."
	waits, err := d.waitsFor(ctx, press)
	if err != nil {
		return interact.Result{}, err
	}
	if waits {
		text += " First, what is still open here has to end: decide about what I have asked, or send `/stop` to end it now."
	}
	return interact.Result{Text: text, Close: true}, d.cfg.Jobs.Append(ctx, press.Message(KindForget, press.Token, d.cfg.Now()))
}

// waitsFor reports whether a message of the user in the chat of a press is still open, such as one whose turn
// waits for a decision. The erasure waits for it.
func (d *Eraser) waitsFor(ctx context.Context, press interact.Press) (bool, error) {
	m := press.Message(KindForget, press.Token, d.cfg.Now())
	for j, err := range d.openJobsBy(ctx, m.SenderID()) {
		if err != nil {
			return false, err
		}
		if j.Message.Kind != chats.KindPress && leavesTrace(j.Message) && j.Message.Chat.WithoutThread() == m.Chat.WithoutThread() {
			return true, nil
		}
	}
	return false, nil
}

// Forget runs the job of the user's request: it deletes what belongs to the user alone, and enqueues the
// jobs of the chats. It is idempotent. It deletes last what is needed to find the rest.
func (d *Eraser) Forget(ctx context.Context, j *queue.Run) (string, error) {
	by := j.Message.SenderID()
	if err := d.checkAllClosed(ctx, j); err != nil { // before any deletion
		return "", err
	}
	if err := j.Author(d.cfg.Store).Record(ctx, ForgetCommand, ""); err != nil {
		return "", err
	}
	// Schedules and webhooks begin tasks until they are deleted, and the jobs of the chats have to know these
	// tasks. They do not wait for a part of the rest that cannot be deleted now.
	var rest error
	if d.cfg.EraseRest != nil {
		rest = d.cfg.EraseRest(ctx, by, j.Message.Chat.WithoutThread())
	}
	direct, err := d.enqueueAll(ctx, j)
	if err := errors.Join(rest, err); err != nil {
		return "", err
	}
	if err := d.eraseOpen(ctx, by); err != nil { // before the receipts
		return "", err
	}
	if err := receipts.EraseEverywhere(ctx, d.cfg.Store, by); err != nil {
		return "", err
	}
	if err := d.replaceDamaged(ctx, direct); err != nil {
		return "", err
	}
	if err := interact.ForgetLasting(ctx, d.cfg.Store, by); err != nil {
		return "", err
	}
	if err := d.cfg.Observer.Forget(ctx, by); err != nil {
		return "", err
	}
	if err := d.cfg.Cards.Forget(ctx, by, direct, j.Message.ID); err != nil {
		return "", err
	}
	if err := d.deleteDeadLetters(ctx, by, direct); err != nil {
		return "", err
	}
	return goneText, d.erase(ctx, j)
}

// enqueueAll enqueues the jobs of the chats, and returns the direct chats.
func (d *Eraser) enqueueAll(ctx context.Context, j *queue.Run) (direct map[chats.Chat]bool, err error) {
	by := j.Message.SenderID()
	// Unanswered messages may not be in a list of conversations yet.
	for o, err := range d.openJobsBy(ctx, by) {
		if err == nil && leavesTrace(o.Message) {
			err = d.enqueueErase(ctx, j, o.Message.Chat, receipts.IsTask(o.Message), o.Message.Direct, o.Seq)
		}
		if err != nil {
			return nil, err
		}
	}
	direct = map[chats.Chat]bool{j.Message.Chat.WithoutThread(): true}
	own, err := conversation.Conversations(ctx, d.cfg.Store, by)
	if err != nil {
		return nil, err
	}
	listed := make(map[string]bool)
	for _, c := range own {
		direct[c.Chat.WithoutThread()], listed[c.Log()] = true, true
		if err := d.enqueueErase(ctx, j, c.Chat, c.Task != "", true, 0); err != nil {
			return nil, err
		}
	}
	if err := d.enqueueUnlisted(ctx, j, listed); err != nil {
		return nil, err
	}
	for a, err := range conversation.AskedBy(ctx, d.cfg.Store, by) {
		if err == nil {
			err = d.enqueueErase(ctx, j, a.Chat, a.Task, false, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	return direct, nil
}

// enqueueUnlisted enqueues the jobs of the conversations in the direct chat that are not in the list,
// because their entries were damaged.
func (d *Eraser) enqueueUnlisted(ctx context.Context, j *queue.Run, listed map[string]bool) error {
	for _, end := range []string{"/", ":"} { // of the chat itself, and of its threads
		for log, err := range d.cfg.Store.Logs(ctx, storage.Range{Prefix: j.Message.Chat.WithoutThread().String() + end}) {
			if err != nil {
				return fmt.Errorf("look for conversations that no list has: %w", err)
			}
			chat, err := chats.ParseChat(logChat(log))
			if err != nil || listed[log] {
				continue
			}
			if err := d.enqueueErase(ctx, j, chat, isTaskLog(log), true, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// enqueueErase inserts the job that erases a chat's conversations in its turn there: those of its tasks,
// or the others. For the others in the chat of the user's request it inserts none: the job of the request
// erases them. After is the number of the open job because of which it is inserted, or 0 if the chat has a
// conversation that is to be erased. An earlier attempt may have inserted an erasure there: it is enough
// if it is still open, and waits for that job.
func (d *Eraser) enqueueErase(ctx context.Context, j *queue.Run, chat chats.Chat, tasks, direct bool, after int64) error {
	kind := KindErase
	switch {
	case tasks:
		kind = KindEraseTasks
	case chat == j.Message.Chat && j.Message.Kind == KindForget:
		return nil
	}
	m := chats.Message{Chat: chat, Kind: kind, User: j.Message.User, Direct: direct, Time: d.cfg.Now()}
	for n := 0; ; n++ {
		m.ID = queue.Hash(j.Message.ID, chat.String(), strconv.Itoa(n)) // keys do not contain the thread
		last, err := d.cfg.OpenJobs.Find(ctx, queue.KeyOf(m))
		switch {
		case queue.IsDamaged(err):
			continue
		case err != nil:
			return err
		case last == nil || last.Closed.IsZero() && last.Seq > after:
			return d.cfg.Jobs.Append(ctx, m)
		}
	}
}

// Erase runs the job of a chat.
func (d *Eraser) Erase(ctx context.Context, j *queue.Run) error {
	if err := d.checkAllClosed(ctx, j); err != nil {
		return err
	}
	by := j.Message.SenderID()
	if d.cfg.EraseIn != nil && !j.Message.Direct {
		if err := d.cfg.EraseIn(ctx, by, j.Message.Chat); err != nil {
			return err
		}
	}
	if err := d.eraseOpen(ctx, by); err != nil {
		return err
	}
	// Receipts stay under the id that a chat had when the message came. The other chats have jobs of their own.
	home := d.cfg.CurrentChat(j.Message.Chat).WithoutThread()
	here := func(chat chats.Chat) bool { return d.cfg.CurrentChat(chat) == home }
	if err := receipts.EraseIn(ctx, d.cfg.Store, by, here); err != nil {
		return err
	}
	// The user may have given a lasting approval since the request, to a call that waited here.
	if err := interact.ForgetLasting(ctx, d.cfg.Store, by); err != nil {
		return err
	}
	if err := d.cfg.Cards.Forget(ctx, by, nil, ""); err != nil {
		return err
	}
	if err := d.deleteDeadLetters(ctx, by, nil); err != nil {
		return err
	}
	if err := d.erase(ctx, j); err != nil || j.Message.Direct {
		return err
	}
	return d.enqueueLater(ctx, j)
}

// enqueueLater enqueues the jobs that erase what turns of the user in a shared chat have begun since the
// request: background tasks and others, which end after the job that erases the turns. The result of a
// background task comes back to the turns, so these are erased once more when the tasks are. A task that
// has ended is known only from its conversation.
func (d *Eraser) enqueueLater(ctx context.Context, j *queue.Run) error {
	if j.Message.Kind == KindEraseTasks {
		return d.enqueueErase(ctx, j, j.Message.Chat, false, false, 0)
	}
	by := j.Message.SenderID()
	for o, err := range d.openJobsBy(ctx, by) {
		later := err == nil && leavesTrace(o.Message) && o.Message.Kind != chats.KindText && o.Message.Kind != chats.KindPress // which come after the request
		if later && d.isHere(o.Message.Chat, j) {
			err = d.enqueueErase(ctx, j, o.Message.Chat, receipts.IsTask(o.Message), false, o.Seq)
		}
		if err != nil {
			return err
		}
	}
	for a, err := range conversation.AskedBy(ctx, d.cfg.Store, by) {
		if err == nil && a.Task && d.isHere(a.Chat, j) {
			err = d.enqueueErase(ctx, j, a.Chat, true, false, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Eraser) erase(ctx context.Context, j *queue.Run) error {
	erase := d.eraseShared
	if j.Message.Direct {
		erase = d.eraseDirect
	}
	if err := erase(ctx, j); err != nil {
		return err
	}
	d.cfg.Cache.Clear()
	if d.cfg.OnErased == nil {
		return nil
	}
	return d.cfg.OnErased(ctx)
}

// eraseDirect deletes the conversations of a user in a direct chat.
func (d *Eraser) eraseDirect(ctx context.Context, j *queue.Run) error {
	tasks := j.Message.Kind == KindEraseTasks
	if !tasks {
		if err := conversation.StartNew(ctx, d.cfg.Store, &j.Job); err != nil {
			return err
		}
	}
	all, err := conversation.Conversations(ctx, d.cfg.Store, j.Message.SenderID())
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Chat != j.Origin() || (c.Task != "") != tasks {
			continue
		}
		if err := c.Delete(ctx, d.cfg.Store, storage.Any); err != nil {
			return err
		}
	}
	// A conversation whose entry was damaged is in no list.
	for log, err := range d.cfg.Store.Logs(ctx, storage.Range{Prefix: j.Origin().String() + "/"}) {
		if err == nil && isTaskLog(log) == tasks {
			err = d.cfg.Store.Drop(ctx, log)
		}
		if err != nil {
			return fmt.Errorf("remove the conversations of %s that no list has: %w", j.Origin(), err)
		}
	}
	return nil
}

// isTaskLog reports whether a log is the conversation of a task.
func isTaskLog(log string) bool {
	return strings.HasPrefix(log, logChat(log)+"/task/")
}

// logChat returns the chat in which the conversation of a log began.
func logChat(log string) string {
	chat, _, _ := strings.Cut(log, "/")
	return chat
}

// eraseShared erases what a user has asked from the conversations of a shared chat.
func (d *Eraser) eraseShared(ctx context.Context, j *queue.Run) error {
	by := j.Message.SenderID()
	for a, err := range conversation.AskedBy(ctx, d.cfg.Store, by) {
		if err != nil {
			return err
		}
		if !d.isHere(a.Chat, j) || a.Task != (j.Message.Kind == KindEraseTasks) {
			continue
		}
		owners := []string{j.Message.Owner(), chats.Message{Chat: a.Chat}.Owner()}
		if began, err := chats.ParseChat(logChat(a.Log)); err == nil { // it may have moved before the user asked
			owners = append(owners, chats.Message{Chat: began}.Owner())
		}
		if err := conversation.EraseBy(ctx, d.cfg.Store, a.Log, by, owners...); err != nil {
			return err
		}
		if err := a.Remove(ctx, d.cfg.Store); err != nil {
			return err
		}
	}
	return nil
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

// openJobsBy yields the open jobs of a user, platform:id.
func (d *Eraser) openJobsBy(ctx context.Context, by string) iter.Seq2[*queue.Run, error] {
	platform, _, _ := strings.Cut(by, ":")
	return d.cfg.OpenJobs.ListOpenBy(ctx, platform+":", by)
}

// isHere reports whether a chat is that of a job. Either may have moved since.
func (d *Eraser) isHere(chat chats.Chat, j *queue.Run) bool {
	return d.cfg.CurrentChat(chat) == d.cfg.CurrentChat(j.Message.Chat)
}

// leavesTrace reports whether the job of a message may still write something about its user, if only its
// receipt. That is any job but those of an erasure, which would wait for each other.
func leavesTrace(m chats.Message) bool {
	return m.Kind != KindForget && m.Kind != KindErase && m.Kind != KindEraseTasks
}

// checkAllClosed cancels the background tasks of the job's sender in its chat. It returns an error
// while an earlier job of the sender in that chat is still open. For the job that erases
// tasks these are the tasks, otherwise the other jobs. The job of the user's request waits for all
// threads and tasks, whose tools may create more of the user's data; it delays no other user.
func (d *Eraser) checkAllClosed(ctx context.Context, by *queue.Run) error {
	if err := d.cfg.CancelTasks(ctx, by.Message.Chat, by.Message.SenderID()); err != nil {
		return err
	}
	for j, err := range d.openJobsBy(ctx, by.Message.SenderID()) {
		if err != nil {
			return err
		}
		here := d.isHere(j.Message.Chat, by) && receipts.IsTask(j.Message) == (by.Message.Kind == KindEraseTasks)
		if by.Message.Kind == KindForget {
			here = j.Message.Chat.WithoutThread() == by.Message.Chat.WithoutThread()
		}
		if here && leavesTrace(j.Message) && j.Seq < by.Seq {
			if d.cfg.Now().Sub(by.Accepted) < d.cfg.MaxWait {
				return ErrNotYet
			}
			return fmt.Errorf("an earlier job does not end: %s", j.Key())
		}
	}
	return nil
}
