package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

const (
	// announcedKind is the kind of the cards that announce what calls have left behind.
	announcedKind = "announced"
	// maxAnnounced bounds the announcements on one card; more get another card.
	maxAnnounced = 15
	// maxTitle bounds what a line about silent runs shows of their title, in characters.
	maxTitle = 100
)

const (
	announcementOver    = "It is too late to undo this."
	announcementGone    = "The tool that did this is gone, so I cannot undo it."
	announcementChanged = "It has changed since. Undo the newer change first."
)

// announcer shows below the answers of turns what their calls have left behind, with buttons that undo it.
type announcer struct {
	turns *turn.Runner
	cards *interact.Cards
	tools func() *toolgroups.Registry
	now   func() time.Time
	zone  func() *time.Location
}

// announcedLine is an announcement on a card.
type announcedLine struct {
	Tool  string          `json:"tool"`
	Text  string          `json:"text"`
	Undo  json.RawMessage `json:"undo,omitempty"`
	Label string          `json:"label,omitempty"`
	Until time.Time       `json:"until,omitzero"`
	// Undone says in words that it is undone.
	Undone string `json:"undone,omitempty"`
	// Title, Runs and LastRun are set on the card of the day's silent runs: of what, how many, and the last
	// job that was counted.
	Title   string `json:"title,omitempty"`
	Runs    int    `json:"runs,omitempty"`
	LastRun string `json:"last,omitempty"`
}

// announce posts the announcements of a job's turn that no card shows yet. It may be called again: which
// card shows which follows from the keys of the cards. Calls that a restart cut off are offered again only when the
// turn is over, because until then the model may make them again.
func (a *announcer) announce(ctx context.Context, j *queue.Run, over bool) error {
	all, err := a.turns.Announced(ctx, j)
	if err != nil {
		return fmt.Errorf("announce what %s has left behind: %w", j.Key(), err)
	}
	for _, one := range all {
		if one.Unknown && (over || one.Again == "") {
			if err := a.tellUnknown(ctx, j, one); err != nil {
				return err
			}
		}
	}
	// Only these stay where they are in the list: the others come into it and go with what the turn does later.
	all = slices.DeleteFunc(all, func(one turn.Announcement) bool { return one.Unknown })
	for at := 0; at < len(all); {
		key := fmt.Sprintf("%s/%s/%d", announcedKind, j.Key(), at)
		n, err := a.post(ctx, key, outbox.Address(j).Chat, j.Message.SenderID(), all[at:min(len(all), at+maxAnnounced)])
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// tellUnknown posts a card about a call of which nobody can tell whether it was done. If a restart cut it off, a button
// has it made again, unless another call of its tool was cut off too.
func (a *announcer) tellUnknown(ctx context.Context, j *queue.Run, one turn.Announcement) error {
	key := fmt.Sprintf("%s/again/%s/%d", announcedKind, j.Key(), one.Position)
	if one.Again == "" {
		_, err := a.post(ctx, key, outbox.Address(j).Chat, j.Message.SenderID(), []turn.Announcement{one})
		return err
	}
	log, err := a.turns.LogOf(ctx, j)
	if err != nil {
		return err
	}
	failed := newFailedTurn(j, log)
	failed.Again = one.Again
	card := interact.Card{Kind: failedKind, KeepCommands: true, Text: wording.EscapeRevealed(one.Text), QuotedUser: j.Message.SenderID()}
	if !one.Ambiguous {
		card.Choices = [][]interact.Choice{{{Label: "Run it again", Value: chooseAgain, Style: chats.StylePrimary}}}
	}
	if card.Data, err = json.Marshal(failed); err != nil {
		return fmt.Errorf("encode the offer to run a call again: %w", err)
	}
	_, err = a.cards.PostAnywhere(ctx, key, outbox.Address(j).Chat, card)
	return err
}

// silentDayBegins is when a day of silent runs begins, so that its line comes at no hour of the night.
const silentDayBegins = 8 * time.Hour

// countSilent counts a silent run on the card that its chat gets of the day's silent runs, with a button that
// stops what starts them. Senders that are chats have cards of their own. If a card is full, or all of it was stopped, there is
// another one. It may be called again for the newest run of a line.
func (a *announcer) countSilent(ctx context.Context, j *queue.Run) error {
	task := turn.TaskOf(j)
	if task == nil || !task.Silent || task.StopTool == "" {
		return nil
	}
	to := outbox.Address(j).Chat
	day := a.now().In(a.zone()).Add(-silentDayBegins).Format(time.DateOnly)
	line := announcedLine{
		Tool: task.StopTool, Undo: task.StopData, Label: toolgroups.LabelStop, Until: a.now().Add(interact.DefaultAge),
		Title: task.Title, Runs: 1, LastRun: j.Key(),
	}
	line.Text = silentText(line)
	card := interact.Card{Kind: announcedKind, KeepCommands: true, QuotedUser: j.Message.SenderID(), Expires: line.Until}
	lines := []announcedLine{line}
	var err error
	if card.Data, err = json.Marshal(lines); err != nil {
		return fmt.Errorf("encode silent runs: %w", err)
	}
	card.Text, card.Choices = announcedText(lines), announcedButtons(lines)
	of := to.String()
	if user := j.Message.SenderID(); a.cards.IsChat(user) {
		of += "/" + user // apart from those of people: on its card the administrators of the chat press for it
	}
	key := "silent/" + of + "/" + day
	for n := 2; n < maxSilentCards; n++ {
		token, err := a.cards.PostAnywhere(ctx, key, to, card)
		if err != nil {
			return err
		}
		kept, err := a.cards.Get(ctx, token)
		if err != nil {
			return err
		}
		key = fmt.Sprintf("silent/%s/%s/%d", of, day, n)
		if kept == nil {
			continue // it was deleted, with a person whom it quoted
		}
		counted, failed := false, error(nil)
		open, err := a.cards.Revise(ctx, token, func(card interact.Card) (result interact.Result, ok bool) {
			result, counted, failed = countOn(card, line, j.Message.SenderID())
			return result, result.Data != nil
		})
		if err = cmp.Or(err, failed); err != nil || counted && open {
			return err
		}
	}
	return nil
}

// countOn counts a run on the line of what started it, and returns what the card then shows, nothing if it was counted
// before. It returns false if the card has no room. user is the run's.
func countOn(card interact.Card, line announcedLine, user string) (interact.Result, bool, error) {
	lines, err := decodeAnnounced(card)
	if err != nil {
		return interact.Result{}, false, err
	}
	i := slices.IndexFunc(lines, func(l announcedLine) bool { return string(l.Undo) == string(line.Undo) })
	switch {
	case i < 0 && len(lines) >= maxAnnounced:
		return interact.Result{}, false, nil
	case i < 0:
		lines = append(lines, line)
	case lines[i].LastRun == line.LastRun:
		return interact.Result{}, true, nil
	default:
		lines[i].Runs, lines[i].LastRun = lines[i].Runs+1, line.LastRun
		lines[i].Text = silentText(lines[i])
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return interact.Result{}, false, fmt.Errorf("encode silent runs: %w", err)
	}
	result := interact.Result{Text: announcedText(lines), Data: data, Choices: announcedButtons(lines)}
	if user != card.QuotedUser && !slices.Contains(card.AlsoQuoted, user) {
		result.AlsoQuoted = append(slices.Clone(card.AlsoQuoted), user) // whose title it shows
	}
	return result, true, nil
}

// maxSilentCards bounds the cards that a chat gets on a day about silent runs: one is full with 15 schedules, or was
// closed.
const maxSilentCards = 12

func silentText(l announcedLine) string {
	return fmt.Sprintf("%s has had nothing to tell today, %s.", wording.Quote(l.Title, maxTitle), wording.Plural(l.Runs, "run", "runs"))
}

// post posts announcements for a user, and returns how many the card under the key shows, which may have
// been posted earlier.
func (a *announcer) post(ctx context.Context, key string, to chats.Chat, user string, some []turn.Announcement) (int, error) {
	for n := 1; n <= maxDeleted; n++ {
		card, err := a.announcedCard(user, some)
		if err != nil {
			return 0, err
		}
		token, err := a.cards.PostAnywhere(ctx, key, to, card)
		if err != nil {
			return 0, err
		}
		kept, err := a.cards.Get(ctx, token)
		if err != nil {
			return 0, err
		}
		if kept != nil {
			shown, err := decodeAnnounced(kept.Card)
			return max(1, len(shown)), err
		}
		// It was deleted, and may not have shown all of these: a line that is repeated is better than none. It was deleted
		// with a person whom it quoted, so they are quoted no more.
		some = slices.Clone(some)
		for i, one := range some {
			if len(one.Quotes) > 0 {
				some[i] = turn.Announcement{Tool: one.Tool, Announcement: toolgroups.Announcement{Text: announcementDeleted}}
			}
		}
		key = fmt.Sprintf("%s/%d", key, n)
	}
	return len(some), nil
}

// maxDeleted bounds the cards in place of one that was deleted.
const maxDeleted = 12

// announcementDeleted stands for an announcement that quoted another person, on a card that was deleted.
const announcementDeleted = "I changed something of another person. The line about it was deleted."

// announcedCard makes the card of announcements for a user.
func (a *announcer) announcedCard(user string, some []turn.Announcement) (interact.Card, error) {
	card := interact.Card{Kind: announcedKind, KeepCommands: true, QuotedUser: user}
	var lines []announcedLine
	for _, one := range some {
		line := announcedLine{Tool: one.Tool, Text: one.Text}
		if one.Undo != nil {
			line.Undo, line.Label, line.Until = one.Undo, cmp.Or(one.Label, toolgroups.LabelUndo), a.now().Add(cmp.Or(one.For, toolgroups.UndoTime))
		}
		if card.Expires.Before(line.Until) {
			card.Expires = line.Until
		}
		lines = append(lines, line)
		card.AlsoQuoted = append(card.AlsoQuoted, one.Quotes...)
	}
	var err error
	if card.Data, err = json.Marshal(lines); err != nil {
		return card, fmt.Errorf("encode announcements: %w", err)
	}
	card.Text, card.Choices = announcedText(lines), announcedButtons(lines)
	return card, nil
}

func decodeAnnounced(card interact.Card) (lines []announcedLine, err error) {
	if err = json.Unmarshal(card.Data, &lines); err != nil {
		err = fmt.Errorf("decode announcements: %w", err)
	}
	return lines, err
}

// announcedText returns the text of a card: one line for each announcement, numbered if there are several.
func announcedText(lines []announcedLine) string {
	shown := make([]string, len(lines))
	for i, line := range lines {
		if len(lines) > 1 {
			shown[i] = strconv.Itoa(i+1) + `\. `
		}
		shown[i] += wording.EscapeRevealed(wording.Clip(line.Text, toolgroups.MaxAnnouncement))
		if line.Undone != "" {
			shown[i] += " – **" + wording.EscapeRevealed(line.Undone) + "**"
		}
	}
	return strings.Join(shown, "\n\n")
}

// announcedButtons returns the buttons of the announcements that can be undone.
func announcedButtons(lines []announcedLine) [][]interact.Choice {
	rows := [][]interact.Choice{}
	for i, line := range lines {
		if line.Undo == nil || line.Undone != "" {
			continue
		}
		label := line.Label
		if len(lines) > 1 {
			label += " " + strconv.Itoa(i+1)
		}
		if n := len(rows); n == 0 || len(rows[n-1]) == announcedRow {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], interact.Choice{Label: label, Value: strconv.Itoa(i)})
	}
	return rows
}

// announcedRow is how many buttons a row has.
const announcedRow = 3

// handlePress undoes what a line says.
func (a *announcer) handlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	if press.Expired {
		return interact.Result{Text: press.Card.Text}, nil
	}
	lines, err := decodeAnnounced(press.Card)
	if err != nil {
		return interact.Result{}, err
	}
	i, err := strconv.Atoi(press.Choice)
	if err != nil || i < 0 || i >= len(lines) || lines[i].Undo == nil {
		return interact.Result{}, fmt.Errorf("the value %q of a button of an announcement is unknown", press.Choice)
	}
	line := &lines[i]
	if !a.now().Before(line.Until) {
		return interact.Result{Toast: announcementOver}, nil
	}
	tool, known := a.tools().Tool(line.Tool)
	if !known || tool.Undo == nil {
		return interact.Result{Toast: announcementGone}, nil
	}
	scope := press.Scope
	if press.ForChat {
		scope.User = press.Card.QuotedUser
	}
	err = tool.Undo(ctx, scope, line.Undo)
	refused, is := errors.AsType[*toolgroups.Error](err)
	switch {
	case is:
		return interact.Result{Toast: refused.Message}, nil
	case errors.Is(err, toolgroups.ErrChanged):
		return interact.Result{Toast: announcementChanged}, nil
	case err != nil:
		return interact.Result{}, err
	}
	if !press.Direct || tool.Role >= toolgroups.RoleAdmin {
		if err := press.Author.Record(ctx, "undo", line.Tool); err != nil {
			return interact.Result{}, err
		}
	}
	line.Undone = cmp.Or(undoneWords[line.Label], undoneWords[toolgroups.LabelUndo])
	toast := strings.ToUpper(line.Undone[:1]) + line.Undone[1:] + "."
	if !press.Direct {
		line.Undone += " by " + wording.Quote(press.UserName, interact.MaxName)
	}
	data, err := json.Marshal(lines)
	choices := announcedButtons(lines)
	result := interact.Result{Toast: toast, Text: announcedText(lines), Data: data, Choices: choices, Close: len(choices) == 0}
	if !press.Direct {
		result.AlsoQuoted = append(press.Card.AlsoQuoted, press.User)
	}
	return result, err
}

// undoneWords say that an announcement is undone, by the label of its button.
var undoneWords = map[string]string{toolgroups.LabelUndo: "undone", toolgroups.LabelCancel: "cancelled", toolgroups.LabelStop: "stopped"}
