package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Bounds of the cards about newcomers.
const (
	// askedAge is how long the owner has to decide.
	askedAge = 7 * 24 * time.Hour
	// refusedAge is how long the owner is not asked about a refused newcomer.
	refusedAge = 30 * 24 * time.Hour
	// maxAsked bounds the open cards.
	maxAsked = 20
	// maxSaid bounds what a card quotes, in characters.
	maxSaid = 120
	// maxKept bounds the message that is stored with a request, in bytes of its record.
	maxKept = 16 << 10
)

// Kind and choices of the card about a newcomer.
const (
	cardAdmit    = "admit"
	choiceAdmit  = "admit"
	choiceRefuse = "refuse"
)

// AskOwner asks the owner about a stranger, once however often it is called, and returns the text for
// the stranger.
func (d *Registry) AskOwner(ctx context.Context, j *queue.Run) (string, error) {
	d.changing.Lock()
	defer d.changing.Unlock()
	m, now := j.Message, d.cfg.Now()
	if err := d.look(ctx, m.By()); err != nil {
		return "", err
	}
	owner, owned := d.register.owner()
	one := d.register.find(m.By())
	if one.over(now) {
		one = person{rev: one.rev}
	}
	switch {
	case one.Standing.role() > toolgroups.RoleStranger: // admitted meanwhile
		one.Message = keptMessage(m)
		return d.welcomeText(one), d.answer(ctx, one)
	case !owned || one.Standing == isRefused:
		return outbox.Of(j).Notice, nil
	case one.Standing != hasAsked:
		if err := d.makeRoom(ctx, now); err != nil {
			return "", err
		}
		rev := one.rev
		one = writer(m, hasAsked, now)
		one.Until, one.rev, one.Message = now.Add(askedAge), rev, keptMessage(m)
		if err := d.register.put(ctx, &one); err != nil {
			return "", err
		}
	}
	err := d.ask(ctx, owner, one, m.Text)
	if errors.Is(err, interact.ErrNoButtons) || errors.Is(err, queue.ErrInvalid) {
		d.cfg.Log.Warn("owner not asked about a newcomer: let them in with /people add", "user", one.User, "err", err)
		return outbox.Of(j).Notice, nil
	}
	if err != nil {
		return "", err
	}
	then := "I will tell you here"
	if one.Message != nil {
		then = "I will answer your message here"
	}
	return fmt.Sprintf(sorry+"I have asked my owner whether to let you in. If so, %s. (You are `%s`.)", then, one.User), nil
}

// keptMessage returns the message to answer once the stranger is admitted; nil if it is too large to be stored
// until then. It has a key of its own: the notice about the request has the original one.
func keptMessage(m chats.Message) *chats.Message {
	m.ID += "-kept"
	data, err := json.Marshal(m)
	if err != nil || len(data) > maxKept {
		return nil
	}
	return &m
}

// makeRoom closes the oldest cards about newcomers if too many are open: the last newcomer is most
// likely still there, and strangers must not keep others from reaching the owner.
func (d *Registry) makeRoom(ctx context.Context, now time.Time) error {
	waiting := d.register.all(func(p person) bool { return p.Standing == hasAsked && !p.over(now) })
	for _, oldest := range waiting[:max(0, len(waiting)-maxAsked+1)] {
		note := fmt.Sprintf("_Too many others have asked since. `/people add %s` lets them in._", oldest.User)
		if err := d.cfg.Cards.Invalidate(ctx, oldest.Card, note); err != nil {
			return err
		}
		if err := d.register.remove(ctx, oldest); err != nil {
			return err
		}
	}
	return nil
}

// ask posts the card about a newcomer, once.
func (d *Registry) ask(ctx context.Context, owner, one person, text string) error {
	said := "They sent something other than text."
	if text = wording.OneLine(text, maxSaid); text != "" {
		said = "They wrote: " + wording.Code(text)
	}
	if d.cfg.Allowance != "" {
		said += "\n\n" + d.cfg.Allowance
	}
	bare := one
	bare.Message = nil
	data, err := json.Marshal(bare)
	if err != nil {
		return fmt.Errorf("encode newcomer: %w", err)
	}
	token, err := d.cfg.Cards.Post(ctx, admitKey(one), owner.Chat, interact.Card{
		Kind: cardAdmit, Of: one.User, Data: data, Expires: one.Until,
		Text: fmt.Sprintf("**May I talk to someone new?**\n\n%s has written to me. %s", one.title(), said),
		Choices: [][]interact.Choice{{
			{Label: "Let in", Value: choiceAdmit, Style: chats.StylePrimary},
			{Label: "Refuse", Value: choiceRefuse, Style: chats.StyleDanger},
		}},
	})
	if err != nil || token == one.Card {
		return err
	}
	one.Card = token
	return d.register.put(ctx, &one)
}

func admitKey(one person) string {
	return fmt.Sprintf("admit/%s/%d", one.User, one.Since.UnixNano())
}

// decide applies the owner's choice on the card about a newcomer.
func (d *Registry) decide(ctx context.Context, press interact.Press) (interact.Result, error) {
	var who person
	if err := json.Unmarshal(press.Card.Data, &who); err != nil {
		return interact.Result{}, fmt.Errorf("decode newcomer: %w", err)
	}
	if !press.Expired && press.Role < toolgroups.RoleOwner {
		return interact.Result{Toast: "Only my owner decides about this."}, nil
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.look(ctx, who.User); err != nil {
		return interact.Result{}, err
	}
	one := d.register.find(who.User)
	known := one.User != "" && one.Since.Equal(who.Since)
	switch {
	case press.Expired:
		result := interact.Result{Text: "There was no decision about " + who.title() + ". If they write again, I will ask again."}
		if !known || one.Standing != hasAsked {
			return result, nil
		}
		return result, d.register.remove(ctx, one)
	case !known:
		return interact.Result{Close: true, Toast: "This has already been decided.", Text: press.Card.Text + "\n\n_Settled already._"}, nil
	case press.Choice == choiceAdmit:
		return interact.Result{Close: true, Toast: "They may talk to me now.", Text: one.title() + " may talk to me now. /people changes that."},
			d.admit(ctx, one, isUser, press.Author)
	case one.Standing.role() > toolgroups.RoleStranger:
		return interact.Result{Toast: "They have already been let in; /people can change that."}, nil
	}
	if err := press.Author.Record(ctx, "refuse", one.User); err != nil {
		return interact.Result{}, err
	}
	d.cfg.Log.Info("person refused", "user", one.User, "by", press.User)
	return interact.Result{
		Close: true, Toast: "They are not told.",
		Text: fmt.Sprintf("%s is refused; I do not ask about them again for %d days. `/people add %s` lets them in all the same.",
			one.title(), int(refusedAge.Hours()/24), one.User),
	}, d.register.revoke(ctx, one, press.User, d.cfg.Now())
}

// welcomeText returns the text for an admitted user: who admitted them, and whether their message is
// answered or lost.
func (d *Registry) welcomeText(one person) string {
	text := "You were let in."
	if by := d.register.find(one.By); by.Name != "" {
		text = wording.Escape(by.Name) + " let you in."
	}
	if one.Message == nil {
		return text + " Please send your message again; /help says what I can do."
	}
	return text + " Here is the answer to your message:"
}

// admit gives a user a role. If they had asked, it tells them and answers the message with which they
// asked; repeated for the same decision, it does neither again.
func (d *Registry) admit(ctx context.Context, one person, as standing, author audit.Author) error {
	if err := author.Record(ctx, "let in as "+string(as), one.User); err != nil {
		return err
	}
	one.Standing, one.By, one.Until = as, author.By, time.Time{}
	if err := d.register.put(ctx, &one); err != nil {
		return err
	}
	d.cfg.Log.Info("person let in", "user", one.User, "standing", string(as), "by", author.By)
	return d.welcome(ctx, one)
}

// welcome tells an admitted user who had asked, and answers the message with which they asked. That
// message stays stored until its job is on disk, which is inserted once under its key.
func (d *Registry) welcome(ctx context.Context, one person) error {
	if one.Card == "" {
		return nil
	}
	// A card would be wrong here: no answer waits for one.
	err := d.cfg.Jobs.Tell(ctx, chats.Message{
		Chat: one.Chat, ID: queue.Hash(admitKey(one)), Kind: KindTell, Direct: true,
		User: strings.TrimPrefix(one.User, one.Chat.Platform+":"), Time: d.cfg.Now(),
	}, d.welcomeText(one))
	if errors.Is(err, queue.ErrInvalid) {
		return nil // no known chat
	}
	if err != nil {
		return err
	}
	return d.answer(ctx, one)
}

// answer enqueues the message with which a user asked, if it is stored.
func (d *Registry) answer(ctx context.Context, one person) error {
	if one.Message == nil {
		return nil
	}
	if err := d.cfg.Jobs.Put(ctx, *one.Message); err != nil {
		return fmt.Errorf("answer what %s asked: %w", one.User, err)
	}
	one.Message = nil
	return d.register.put(ctx, &one)
}
