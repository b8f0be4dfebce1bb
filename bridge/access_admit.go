package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
	"oneclaw/toolgroups"
)

// Bounds of the cards about newcomers.
const (
	// askedAge is how long the owner has to decide about somebody.
	askedAge = 7 * 24 * time.Hour
	// refusedAge is how long the owner is not asked again about somebody who was refused
	// or removed.
	refusedAge = 30 * 24 * time.Hour
	// maxAsked bounds the cards that are open.
	maxAsked = 20
	// maxSaid bounds what a card shows of what they wrote.
	maxSaid = 120
)

const cardAdmit = "admit"

// The choices of the card about a newcomer.
const (
	choiceAdmit  = "admit"
	choiceRefuse = "refuse"
)

// newcomer is who a card is about.
type newcomer struct {
	User  string    `json:"user"`
	Title string    `json:"title"`
	Since time.Time `json:"since"`
}

// knock has the owner asked about a stranger who has written, and returns what the
// stranger is told. Done again it asks no second time.
func (b *Bridge) knock(ctx context.Context, j *jobs.Job) (string, error) {
	b.people.changing.Lock()
	defer b.people.changing.Unlock()
	m, now := j.Message, b.cfg.Now()
	user := m.Chat.Platform + ":" + m.User
	owner, owned := b.people.owner()
	one, known := b.people.find(user)
	if known && one.over(now) {
		known = false
	}
	switch {
	case known && one.Standing.role() > toolgroups.RoleStranger:
		return welcome, nil
	case !owned || known && one.Standing == isRefused:
		return j.Notice, nil
	case !known:
		if err := b.makeRoom(ctx, now); err != nil {
			return "", err
		}
		one = person{
			User: user, Name: wording.OneLine(m.UserName, maxCalled), Standing: hasAsked, Since: now, Until: now.Add(askedAge),
			Chat: chats.Chat{Platform: m.Chat.Platform, ID: m.Chat.ID},
		}
		if err := b.people.put(ctx, one); err != nil {
			return "", err
		}
	}
	err := b.ask(ctx, owner, one, m.Text)
	if errors.Is(err, cards.ErrNoButtons) || errors.Is(err, ErrUnwelcome) {
		b.log.Warn("owner not asked about a newcomer: let them in with /people add", "user", user, "err", err)
		return j.Notice, nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Sorry, I only talk to people I have been introduced to. "+
		"I have asked my owner whether to let you in. If so, I tell you here. (You are `%s`.)", user), nil
}

// makeRoom ends the oldest card about a newcomer where as many are open as may be: who
// has asked last is most likely still there, and strangers must not be able to keep
// others from being asked about. Changing is held.
func (b *Bridge) makeRoom(ctx context.Context, now time.Time) error {
	waiting := b.people.all(func(p person) bool { return p.Standing == hasAsked && !p.over(now) })
	for _, oldest := range waiting[:max(0, len(waiting)-maxAsked+1)] {
		note := fmt.Sprintf("_Too many have asked since. `/people add %s` lets them in._", oldest.User)
		if err := b.desk.Void(ctx, oldest.Card, note); err != nil {
			return err
		}
		if err := b.people.remove(ctx, oldest.User); err != nil {
			return err
		}
	}
	return nil
}

// ask posts the card about a newcomer, once.
func (b *Bridge) ask(ctx context.Context, owner, one person, text string) error {
	said := "They sent something that is no text."
	if text = wording.OneLine(text, maxSaid); text != "" {
		said = "They wrote: " + wording.Code(text)
	}
	data, err := json.Marshal(newcomer{one.User, one.title(), one.Since})
	if err != nil {
		return fmt.Errorf("encode newcomer: %w", err)
	}
	token, err := b.desk.Post(ctx, admitKey(one), owner.Chat, cards.Card{
		Kind: cardAdmit, Data: data, Expires: one.Until,
		Text: fmt.Sprintf("**May I talk to somebody new?**\n\n%s has written to me. %s", one.title(), said),
		Choices: [][]cards.Choice{{
			{Label: "Let in", Value: choiceAdmit, Style: chats.StylePrimary},
			{Label: "Refuse", Value: choiceRefuse, Style: chats.StyleDanger},
		}},
	})
	if err != nil || token == one.Card {
		return err
	}
	one.Card = token
	return b.people.put(ctx, one)
}

func admitKey(one person) string {
	return fmt.Sprintf("admit/%s/%d", one.User, one.Since.UnixNano())
}

// admit decides about a newcomer as the owner has pressed.
func (b *Bridge) admit(ctx context.Context, press cards.Press) (cards.Result, error) {
	var who newcomer
	if err := json.Unmarshal(press.Card.Data, &who); err != nil {
		return cards.Result{}, fmt.Errorf("decode newcomer: %w", err)
	}
	if !press.Expired && press.Role < toolgroups.RoleOwner {
		return cards.Result{Toast: "Only my owner decides about this."}, nil
	}
	b.people.changing.Lock()
	defer b.people.changing.Unlock()
	one, known := b.people.find(who.User)
	known = known && one.Since.Equal(who.Since)
	switch {
	case press.Expired && known && one.Standing == hasAsked:
		return undecided(who), b.people.remove(ctx, one.User)
	case press.Expired:
		return undecided(who), nil
	case !known:
		return cards.Result{Close: true, Toast: "This was settled already.", Text: press.Card.Text + "\n\n_Settled already._"}, nil
	case press.Choice == choiceAdmit:
		return cards.Result{Close: true, Toast: "They may talk to me now.", Text: one.title() + " may talk to me now. /people changes that."},
			b.letIn(ctx, one, isUser, press.User)
	case one.Standing.role() > toolgroups.RoleStranger:
		return cards.Result{Toast: "They were let in already; /people changes that."}, nil
	}
	b.log.Info("person refused", "user", one.User, "by", press.User)
	return cards.Result{
		Close: true, Toast: "They are not told.",
		Text: fmt.Sprintf("%s is refused; I do not ask about them again for %d days. `/people add %s` lets them in all the same.",
			one.title(), int(refusedAge.Hours()/24), one.User),
	}, b.people.bar(ctx, one, press.User, b.cfg.Now())
}

func undecided(who newcomer) cards.Result {
	return cards.Result{Text: "Nobody has decided about " + who.Title + ". When they write again, I ask again."}
}

const welcome = "You have been let in: I talk to you now. Please send your message again; /help says what I can do."

// letIn gives somebody a standing, and tells them where they have asked for it; made
// again, the same decision tells them no second time. Changing is held.
func (b *Bridge) letIn(ctx context.Context, one person, as standing, by string) error {
	one.Standing, one.By, one.Until = as, by, time.Time{}
	if err := b.people.put(ctx, one); err != nil {
		return err
	}
	b.log.Info("person let in", "user", one.User, "standing", string(as), "by", by)
	if one.Card == "" {
		return nil
	}
	err := b.Post(ctx, admitKey(one), one.Chat, cards.Card{Text: welcome})
	if errors.Is(err, ErrUnwelcome) {
		return nil // there is nobody to tell any more
	}
	return err
}
