package interact

import (
	"context"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// reactionPressPrefix begins the ids of presses that users made with a reaction. No platform knows them, so they
// are not answered: the card shows the outcome.
const reactionPressPrefix = "reaction-"

func isReactionPress(m chats.Message) bool { return strings.HasPrefix(m.ID, reactionPressPrefix) }

// reportTimeout bounds how long a new card waits for whether reactions to it are reported.
const reportTimeout = 2 * time.Second

// reportsReactions reports whether a new card has a button that a reaction stands for, and reactions in its chat
// are reported.
func (d *Cards) reportsReactions(ctx context.Context, kept *StoredCard) bool {
	marked := func(c Choice) bool { return c.Reaction != "" }
	platform, can := d.cfg.Platforms[kept.Chat.Platform].(chats.ReactionReporter)
	if !can || !slices.ContainsFunc(slices.Concat(kept.Choices...), marked) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	return platform.ReportsReactions(ctx, kept.Chat)
}

// takesReactions reports whether a reaction to the card can count as a press: its text says so, several people see
// it or could, and its buttons are the first that it had. A reaction does not say which buttons it was meant for, as
// a press does, and stays below a card that changes.
func (c *StoredCard) takesReactions() bool {
	return c.Reactions && c.IsOpen() && !c.Ephemeral && c.Version-c.Progress == 1
}

// reactionHint says in Markdown what reactions to the card do; empty if they do nothing.
func (c *StoredCard) reactionHint() string {
	if !c.takesReactions() {
		return ""
	}
	var means []string
	for _, choice := range slices.Concat(c.Choices...) {
		switch choice.Reaction {
		case chats.FeedbackGood:
			means = append(means, "👍, ✅ or ❤ is **"+choice.Label+"**")
		case chats.FeedbackBad:
			means = append(means, "👎 or ❌ is **"+choice.Label+"**")
		}
	}
	return "Or react: " + strings.Join(means, ", ") + "."
}

// ReadReactions replaces the reactions to open cards by the presses that they stand for. They are handled like those
// of buttons, and the handler of the card checks who reacted. What withdraws a reaction presses nothing. A reaction
// while cards are still being sent may be to one of them: it stays, and so does a press of each, which has no effect
// if the reaction turns out to be to another message.
func (d *Cards) ReadReactions(ctx context.Context, messages []chats.Message) ([]chats.Message, error) {
	var read []chats.Message
	for _, m := range messages {
		presses, decided, err := d.pressesOf(ctx, m)
		if err != nil {
			return nil, err
		}
		if read = append(read, presses...); !decided {
			read = append(read, m)
		}
	}
	return read, nil
}

// pressesOf returns the presses that a reaction may stand for, and whether it is known to be to a card.
func (d *Cards) pressesOf(ctx context.Context, m chats.Message) (presses []chats.Message, decided bool, err error) {
	if m.Kind != chats.KindFeedback || m.Emoji == "" || m.User == "" || d.IsChat(m.SenderID()) {
		return nil, false, nil
	}
	for _, token := range d.openWithin(m.Chat) {
		kept, err := d.Get(ctx, token)
		if queue.IsDamaged(err) || err == nil && kept == nil {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		data := kept.dataFor(chats.Feedback(m.Text))
		sending := len(kept.IDs) == 0
		if data == "" || !sending && kept.IDs[len(kept.IDs)-1] != m.TargetID {
			continue
		}
		press := chats.Message{
			Chat: kept.Chat, Kind: chats.KindPress, User: m.User, UserName: m.UserName, Direct: m.Direct, Text: data, TargetID: m.TargetID, Time: m.Time,
			// The same for each delivery of the reaction.
			ID: reactionPressPrefix + queue.Hash(token, m.TargetID, m.User, m.Text, m.Time.UTC().Format(time.RFC3339Nano)),
		}
		if !sending {
			return []chats.Message{press}, true, nil
		}
		presses = append(presses, press)
	}
	return presses, false, nil
}

// dataFor returns the data of the button that a reaction stands for; empty if there is none.
func (c *StoredCard) dataFor(reaction chats.Feedback) string {
	if !c.takesReactions() {
		return ""
	}
	for n, choice := range slices.Concat(c.Choices...) {
		if choice.Reaction != "" && choice.Reaction == reaction {
			return c.buttonDataAt(n)
		}
	}
	return ""
}

// openWithin returns the tokens of the open cards in a chat and its threads, in a fixed order.
func (d *Cards) openWithin(chat chats.Chat) (tokens []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for token, card := range d.due {
		if card.chat.WithoutThread() == chat.WithoutThread() {
			tokens = append(tokens, token)
		}
	}
	slices.Sort(tokens)
	return tokens
}
