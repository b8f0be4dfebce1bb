package personal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/memory"
)

// MemoryCard is the kind of the card of /memory.
const MemoryCard = "memory"

const (
	// memoryPage is how many notes a page shows, memoryRow how many buttons a row has.
	memoryPage = 8
	memoryRow  = 4
	// maxShownNote bounds a note on the card, in characters: the card has to fit into one message.
	maxShownNote = 200
)

// Values of the buttons: what to do, with the ID of a note, and the page.
const (
	choiceForget = "forget"
	choiceUndo   = "undo"
	choicePage   = "page"
)

const (
	memoryToastGone   = "That has just changed. Please look again."
	memoryToastFull   = "There is no room for it any more. Forget something else first."
	memoryToastMany   = "Too much was forgotten today to bring it all back. Tomorrow there is room again; /forget deletes everything."
	memoryToastDenied = "Only the person who had this saved, or an administrator, can do that."
)

// MemoryPanel shows what is remembered of a person or a shared chat, with buttons that forget a note and
// bring the last one back.
type MemoryPanel struct{ Memory *memory.Memory }

// Commands returns /memory.
func (p MemoryPanel) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "memory", Description: "What I remember, with buttons to forget it"},
		RunCard: func(ctx context.Context, call bridge.CommandCall) (interact.Card, error) {
			return p.card(ctx, call.Scope, 0)
		},
	}}
}

// card returns the card for the current state of the memory.
func (p MemoryPanel) card(ctx context.Context, scope toolgroups.Scope, page int) (interact.Card, error) {
	notes, removed, err := p.Memory.List(ctx, scope.Owner)
	if err != nil {
		return interact.Card{}, err
	}
	pages := (len(notes) + memoryPage - 1) / memoryPage
	page = min(max(page, 0), max(pages-1, 0))
	first := page * memoryPage
	shown := notes[first:min(first+memoryPage, len(notes))]
	card := interact.Card{Kind: MemoryCard, KeepCommands: true, Text: memoryText(scope, shown, first, len(notes), p.Memory)}
	if scope.Direct {
		card.QuotedUser = scope.User
	}
	value := func(what, id string) string { return fmt.Sprintf("%s %s %d", what, id, page) }
	var buttons []interact.Choice
	for i, n := range shown {
		buttons = append(buttons, interact.Choice{Label: fmt.Sprintf("✕ %d", first+i+1), Value: value(choiceForget, n.ID())})
	}
	card.Choices = slices.Collect(slices.Chunk(buttons, memoryRow))
	var turn []interact.Choice
	if page > 0 {
		turn = append(turn, interact.Choice{Label: "‹ Back", Value: fmt.Sprintf("%s - %d", choicePage, page-1)})
	}
	if page < pages-1 {
		turn = append(turn, interact.Choice{Label: "More ›", Value: fmt.Sprintf("%s - %d", choicePage, page+1)})
	}
	if len(removed) > 0 {
		card.Text += "\n\nForgotten or replaced last: " + noteText(removed[0]) + ". *Undo* brings it back; after a day it is deleted."
		turn = append(turn, interact.Choice{Label: "↩ Undo", Value: value(choiceUndo, removed[0].ID())})
	}
	if turn != nil {
		card.Choices = append(card.Choices, turn)
	}
	return card, nil
}

func noteText(n memory.Note) string {
	return wording.EscapeRevealed(wording.Quote(n.Text, maxShownNote))
}

// memoryText lists the notes of a page.
func memoryText(scope toolgroups.Scope, shown []memory.Note, first, total int, m *memory.Memory) string {
	of, whose := "about you", "Nobody else's conversations use it."
	if !scope.Direct {
		of, whose = "in this chat", "Other chats do not use it. A button forgets a fact, for the person who had it saved and for administrators."
	}
	if total == 0 {
		return "I remember nothing " + of + " yet. Tell me “remember that …” to change that."
	}
	var text strings.Builder
	fmt.Fprintf(&text, "**What I remember %s** (%d)\n\n", of, total)
	for i, n := range shown {
		fmt.Fprintf(&text, "%d\\. %s – %s\n\n", first+i+1, noteText(n), m.Day(n))
	}
	return text.String() + whose
}

// HandlePress handles the buttons of the card.
func (p MemoryPanel) HandlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	if press.Expired {
		return interact.Result{Text: press.Card.Text}, nil
	}
	words := strings.Fields(press.Choice)
	if len(words) != 3 {
		return interact.Result{}, fmt.Errorf("the value %q of a button of /memory is unknown", press.Choice)
	}
	toast, err := p.change(ctx, press, words[0], words[1])
	switch {
	case errors.Is(err, memory.ErrDenied):
		return interact.Result{Toast: memoryToastDenied}, nil
	case errors.Is(err, memory.ErrFull):
		return interact.Result{Toast: memoryToastFull}, nil
	case errors.Is(err, memory.ErrTooManyRemoved):
		return interact.Result{Toast: memoryToastMany}, nil
	case errors.Is(err, memory.ErrNotFound), errors.Is(err, toolgroups.ErrChanged):
		toast = memoryToastGone
	case err != nil:
		return interact.Result{}, err
	}
	page, _ := strconv.Atoi(words[2]) // written by card
	card, err := p.card(ctx, press.Scope, page)
	return interact.Result{Toast: toast, Text: card.Text, Choices: interact.NonNilRows(card.Choices)}, err
}

// change removes or restores a note, or does nothing to turn a page, as the value of a button says. In a
// shared chat it first checks that the user may change the note, and records an audit entry.
func (p MemoryPanel) change(ctx context.Context, press interact.Press, what, id string) (toast string, err error) {
	change, toast := p.Memory.Remove, "Forgotten."
	switch what {
	case choicePage:
		return "", nil
	case choiceUndo:
		change, toast = p.Memory.Restore, "It is back."
	}
	if !press.Direct {
		if err := p.Memory.Check(ctx, press.Scope, id); err != nil {
			return "", err
		}
		if err := press.Author.Record(ctx, what+" memory", id); err != nil {
			return "", err
		}
	}
	_, err = change(ctx, press.Scope, id)
	return toast, err
}
