package budget

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// CardKind is the kind of the card about a refused turn.
const CardKind = "budget"

// The buttons of a budget card.
const (
	choiceRaise = "raise"
	choiceAsk   = "ask"
)

// CardHandler makes the cards about refused turns, handles their buttons, and writes to administrators.
type CardHandler struct {
	// Bridge returns the bridge, which posts cards and is created later.
	Bridge func() *bridge.Bridge
	Ledger *Ledger
	Store  storage.KV
	Admins []string // from the settings
}

// budgetRequest is the subject of a budget card.
type budgetRequest struct {
	// ID is the same in all cards about one refusal.
	ID string `json:"id"`
	// Chat and User are those of the refused call. In a request to administrators about the budget of all,
	// User is who asks.
	Chat    chats.Chat `json:"chat"`
	User    string     `json:"user"`
	Refusal Refusal    `json:"refusal"`
}

func (p budgetRequest) period() string {
	if p.Refusal.Account.Kind == KindMonth {
		return "for this month"
	}
	return "for today"
}

// askKey returns the key under which administrators are asked once about a limit.
func (p budgetRequest) askKey() string {
	r := p.Refusal
	return fmt.Sprintf("budget/ask/%s/%s/%s/%s", r.Account.Kind, r.Account.Name, r.Limit, r.Until.Format(time.DateOnly))
}

func (p budgetRequest) raiseButton() []interact.Choice {
	return []interact.Choice{{
		Label: fmt.Sprintf("Raise by %s %s", p.Refusal.SuggestedRaise(), p.period()), Value: choiceRaise, Style: chats.StylePrimary,
	}}
}

func (p budgetRequest) newCard(text string, rows ...[]interact.Choice) (interact.Card, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return interact.Card{}, fmt.Errorf("encode budget card: %w", err)
	}
	return interact.Card{Kind: CardKind, Text: text, QuotedUser: p.User, Choices: rows, Data: data, Expires: p.Refusal.Until}, nil
}

// RefusalCard implements bridge.Hooks.RefusalCard.
func (d *CardHandler) RefusalCard(_ context.Context, scope toolgroups.Scope, failure error) (interact.Card, error) {
	var refusal *Refusal
	if !errors.As(failure, &refusal) {
		return interact.Card{}, errors.New("the error is not a budget refusal")
	}
	chat, err := chats.ParseChat(scope.Chat)
	if err != nil {
		return interact.Card{}, err
	}
	p := budgetRequest{ID: rand.Text(), Chat: chat, User: scope.User, Refusal: *refusal}
	if refusal.PartlyReserved {
		return p.newCard(refusal.UserText()) // waiting a minute is faster than asking an administrator
	}
	text := refusal.UserText()
	if scope.Role >= toolgroups.RoleAdmin {
		return p.newCard(text+" You may raise it.", p.raiseButton())
	}
	return p.newCard(text+" An administrator can raise it.",
		[]interact.Choice{{Label: "Ask an administrator", Value: choiceAsk}}, p.raiseButton())
}

// Pressed implements interact.Handler for cards of [CardKind].
func (d *CardHandler) Pressed(ctx context.Context, press interact.Press) (interact.Result, error) {
	var p budgetRequest
	if err := json.Unmarshal(press.Card.Data, &p); err != nil {
		return interact.Result{}, fmt.Errorf("decode budget card: %w", err)
	}
	switch {
	case press.Expired:
		return interact.Result{}, nil
	case press.Choice == choiceAsk:
		return d.askAdministrators(ctx, press, p)
	case press.Role < toolgroups.RoleAdmin:
		return interact.Result{Toast: "Only an administrator can raise a budget."}, nil
	}
	raise := Raise{Account: p.Refusal.Account, Amount: p.Refusal.SuggestedRaise(), User: press.User, Key: p.ID}
	if err := press.Author.Record(ctx, "raise a budget", p.Refusal.Account.Name); err != nil {
		return interact.Result{}, err
	}
	limit, err := d.Ledger.Raise(ctx, raise, p.Refusal.Base)
	if err != nil {
		return interact.Result{}, err
	}
	now := Limit{Tokens: limit.Tokens}
	if p.Refusal.IsMoney {
		now = Limit{Money: limit.Money}
	}
	told := fmt.Sprintf("The budget was raised to %s %s.", now, p.period())
	if press.Place == p.Chat {
		return interact.Result{Toast: "Raised.", Text: told + " Please send your message again.", Close: true}, nil
	}
	card := interact.Card{Text: told + " Please send your message again."}
	if err := d.Bridge().Post(ctx, "budget/told/"+p.ID, p.Chat, card); err != nil {
		return interact.Result{}, err
	}
	return interact.Result{Toast: "Raised.", Text: told + " I have told them.", Close: true}, nil
}

// maxAsked bounds the number of administrators who are asked, and maxName the name of who asks.
const maxAsked, maxName = 10, 60

// askAdministrators asks administrators in their direct chats.
func (d *CardHandler) askAdministrators(ctx context.Context, press interact.Press, p budgetRequest) (interact.Result, error) {
	places, err := d.adminChats(ctx)
	if err != nil {
		return interact.Result{}, err
	}
	if p.Refusal.Account.Kind != KindUser {
		p.User = press.User
	}
	who := "`" + press.User + "`"
	if wording.HasVisible(press.UserName) {
		who = wording.EscapeMarkdown(wording.Quote(press.UserName, maxName)) + " " + who
	}
	if p.User != press.User {
		who = "Somebody else" // a card is deleted with one user, so it names no second
	}
	asked := 0
	for _, chat := range places {
		card, err := p.newCard(fmt.Sprintf("%s asks for more budget in `%s`.\n\nUsed by %s: %s.",
			who, p.Chat, p.Refusal.Account.describeOwner(press.User), p.Refusal.spentOfLimit()), p.raiseButton())
		if err != nil {
			return interact.Result{}, err
		}
		err = d.Bridge().Post(ctx, p.askKey(), chat, card)
		switch {
		case errors.Is(err, interact.ErrNoButtons), errors.Is(err, queue.ErrInvalid):
			continue
		case err != nil:
			return interact.Result{}, err
		}
		asked++
	}
	if asked == 0 {
		return interact.Result{Toast: "I do not know where to reach an administrator. Show them this message: they can press the other button."}, nil
	}
	return interact.Result{
		Toast: "Asked.", Text: p.Refusal.UserText() + " I have asked an administrator. Once it is raised, please send your message again.",
		Choices: [][]interact.Choice{p.raiseButton()},
	}, nil
}

// NotifyAdmins is [CardHandler.SendToAdmins] without the number of administrators.
func (d *CardHandler) NotifyAdmins(ctx context.Context, key, text string) error {
	_, err := d.SendToAdmins(ctx, key, text)
	return err
}

// SendToAdmins sends a text to administrators in their direct chats, once per key, and returns
// their number.
func (d *CardHandler) SendToAdmins(ctx context.Context, key, text string) (told int, err error) {
	places, err := d.adminChats(ctx)
	if err != nil {
		return 0, err
	}
	for _, chat := range places {
		err := d.Bridge().Post(ctx, key, chat, interact.Card{Text: text})
		if err == nil {
			told++
		} else if !errors.Is(err, queue.ErrInvalid) {
			return told, err
		}
	}
	return told, nil
}

// adminChats returns the direct chats with administrators, at most maxAsked.
func (d *CardHandler) adminChats(ctx context.Context) ([]chats.Chat, error) {
	places := d.Bridge().People().AdminChats()
	for _, user := range d.Admins {
		if strings.Contains(user, "*") {
			continue
		}
		conversations, err := conversation.Conversations(ctx, d.Store, user)
		if err != nil {
			return nil, err
		}
		if len(conversations) == 0 {
			continue // they have no direct chat
		}
		newest := slices.MaxFunc(conversations, func(a, b conversation.Conversation) int { return a.StartedAt.Compare(b.StartedAt) })
		chat := chats.Chat{Platform: newest.Chat.Platform, ID: newest.Chat.ID}
		if !slices.Contains(places, chat) {
			places = append(places, chat)
		}
	}
	return places[:min(len(places), maxAsked)], nil
}
