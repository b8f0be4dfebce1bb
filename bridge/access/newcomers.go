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
	// requestAge is how long the owner has to decide.
	requestAge = 7 * 24 * time.Hour
	// refusalAge is how long the owner is not asked again about a refused newcomer.
	refusalAge = 30 * 24 * time.Hour
	// maxOpenRequests bounds the open cards.
	maxOpenRequests = 20
	// maxQuoteLength bounds the quoted message on a card, in characters.
	maxQuoteLength = 120
	// maxKept bounds the message that is stored with a request, in bytes of its JSON.
	maxKept = 16 << 10
)

// Kind and choices of the card about a newcomer.
const (
	cardAdmit    = "admit"
	choiceAdmit  = "admit"
	choiceRefuse = "refuse"
)

// AskOwner asks the owner about a stranger, once however often it is called, and returns the reply to
// the stranger.
func (d *Registry) AskOwner(ctx context.Context, j *queue.Run) (string, error) {
	d.changeMu.Lock()
	defer d.changeMu.Unlock()
	m, now := j.Message, d.cfg.Now()
	if err := d.register.refresh(ctx, m.SenderID()); err != nil {
		return "", err
	}
	owner, owned := d.register.owner()
	one := d.register.find(m.SenderID())
	if one.isExpired(now) {
		one = person{rev: one.rev}
	}
	switch {
	case one.Standing.role() > toolgroups.RoleStranger: // admitted in the meantime
		one.Message = keptMessage(m)
		return d.welcomeText(one), d.enqueueKept(ctx, one)
	case !owned || one.Standing == standingRefused:
		return outbox.DeliveryOf(j).Notice, nil
	case one.Standing != standingAsked:
		if err := d.makeRoom(ctx, now); err != nil {
			return "", err
		}
		rev := one.rev
		one = newPerson(m, standingAsked, now)
		one.Until, one.rev, one.Message = now.Add(requestAge), rev, keptMessage(m)
		if err := d.register.put(ctx, &one); err != nil {
			return "", err
		}
	}
	err := d.postAdmitCard(ctx, owner, one, m.Text)
	if errors.Is(err, interact.ErrNoButtons) || errors.Is(err, queue.ErrInvalid) {
		d.cfg.Log.Warn("owner not asked about a newcomer: let them in with /people add", "user", one.User, "err", err)
		return outbox.DeliveryOf(j).Notice, nil
	}
	if err != nil {
		return "", err
	}
	then := "I will tell you here"
	if one.Message != nil {
		then = "I will answer your message here"
	}
	return fmt.Sprintf(textStranger+"I have asked my owner whether to let you in. If so, %s. (You are `%s`.)", then, one.User), nil
}

// keptMessage returns the message to answer once the stranger is admitted; nil if it is too large to be
// stored until then. It has its own key, because the notice about the request uses the original one.
func keptMessage(m chats.Message) *chats.Message {
	m.ID += "-kept"
	data, err := json.Marshal(m)
	if err != nil || len(data) > maxKept {
		return nil
	}
	return &m
}

// makeRoom closes the oldest cards about newcomers if too many are open. The newest newcomer is most
// likely still there, and strangers must not keep others from reaching the owner.
func (d *Registry) makeRoom(ctx context.Context, now time.Time) error {
	waiting := d.register.filter(func(p person) bool { return p.hasAsked(now) && p.Card != "" })
	for _, oldest := range waiting[:max(0, len(waiting)-maxOpenRequests+1)] {
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

// postAdmitCard posts the card about a newcomer, once.
func (d *Registry) postAdmitCard(ctx context.Context, owner, one person, text string) error {
	said := "They sent something other than text."
	if text = wording.OneLine(text, maxQuoteLength); text != "" {
		said = "They wrote: " + wording.InlineCode(text)
	}
	if d.cfg.Allowance != "" {
		said += "\n\nThey may use " + d.cfg.Allowance + " a day."
	}
	bare := one
	bare.Message = nil
	data, err := json.Marshal(bare)
	if err != nil {
		return fmt.Errorf("encode newcomer: %w", err)
	}
	token, err := d.cfg.Cards.Post(ctx, admitKey(one), owner.Chat, interact.Card{
		Kind: cardAdmit, QuotedUser: one.User, Data: data, Expires: one.Until,
		Text: fmt.Sprintf("**May I talk to someone new?**\n\n%s has written to me. %s", one.displayName(), said),
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

// handleAdmitPress applies the owner's choice on the card about a newcomer.
func (d *Registry) handleAdmitPress(ctx context.Context, press interact.Press) (interact.Result, error) {
	var who person
	if err := json.Unmarshal(press.Card.Data, &who); err != nil {
		return interact.Result{}, fmt.Errorf("decode newcomer: %w", err)
	}
	if !press.Expired && press.Role < toolgroups.RoleOwner {
		return interact.Result{Toast: "Only my owner decides about this."}, nil
	}
	d.changeMu.Lock()
	defer d.changeMu.Unlock()
	if err := d.register.refresh(ctx, who.User); err != nil {
		return interact.Result{}, err
	}
	one := d.register.find(who.User)
	known := one.User != "" && one.Since.Equal(who.Since)
	switch {
	case press.Expired:
		result := interact.Result{Text: "There was no decision about " + who.displayName() + ". If they write again, I will ask again."}
		if !known || one.Standing != standingAsked {
			return result, nil
		}
		return result, d.register.remove(ctx, one)
	case !known:
		return interact.Result{Close: true, Toast: "This has already been decided.", Text: press.Card.Text + "\n\n_Settled already._"}, nil
	case press.Choice == choiceAdmit:
		return interact.Result{Close: true, Toast: "They may talk to me now.", Text: one.displayName() + " may talk to me now. /people changes that."},
			d.admit(ctx, one, standingUser, press.Author)
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
			one.displayName(), int(refusalAge.Hours()/24), one.User),
	}, d.register.revoke(ctx, one, press.User, d.cfg.Now())
}

// welcomeText returns the text for an admitted user: who admitted them, and whether their message will
// be answered or is lost.
func (d *Registry) welcomeText(one person) string {
	text := "You were let in."
	if by := d.register.find(one.By); by.Name != "" {
		text = wording.EscapeMarkdown(by.Name) + " let you in."
	}
	if one.Message == nil {
		return text + " Please send your message again; /help says what I can do."
	}
	return text + " Here is the answer to your message:"
}

// admit gives a user a role. If the user had asked, it sends them a notice and answers the message with
// which they asked; called again for the same decision, it does neither.
func (d *Registry) admit(ctx context.Context, one person, as standing, author audit.Author) error {
	if err := author.Record(ctx, "let in as "+string(as), one.User); err != nil {
		return err
	}
	// An interrupted removal, or one at the same time as a decision on a card, may have left lasting
	// approvals.
	if err := interact.ForgetLasting(ctx, d.cfg.Store, one.User); err != nil {
		return err
	}
	if err := d.strangers.forget(ctx, one.User); err != nil { // they are told again after a removal
		return err
	}
	one.Standing, one.By, one.Until = as, author.By, time.Time{}
	if err := d.register.put(ctx, &one); err != nil {
		return err
	}
	d.cfg.Log.Info("person let in", "user", one.User, "standing", string(as), "by", author.By)
	return d.welcome(ctx, one)
}

// welcome sends a notice to an admitted user who had asked, and answers the message with which they
// asked. That message stays stored until its job, which is inserted once under its key, is on disk.
func (d *Registry) welcome(ctx context.Context, one person) error {
	if one.Card == "" {
		return nil
	}
	// The notice is no card, because it asks nothing.
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
	return d.enqueueKept(ctx, one)
}

// enqueueKept enqueues the message with which a user asked, if it is stored.
func (d *Registry) enqueueKept(ctx context.Context, one person) error {
	if one.Message == nil {
		return nil
	}
	if err := d.cfg.Jobs.Put(ctx, *one.Message); err != nil {
		return fmt.Errorf("enqueue the message with which %s asked: %w", one.User, err)
	}
	one.Message = nil
	return d.register.put(ctx, &one)
}
