package platformtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oneclaw/bridge/chats"
)

// Press implements [Presser].
func (m *memory) Press(in Place, by, message, data string) {
	chat, err := chats.ParseChat(string(in))
	if err != nil {
		m.t.Fatal(err)
	}
	m.change(func() {
		i := slices.IndexFunc(m.view.Messages, func(s Shown) bool { return s.Place == in && s.ID == message })
		if i < 0 {
			return
		}
		there := slices.ContainsFunc(slices.Concat(m.view.Messages[i].Buttons...), func(b chats.Button) bool { return b.Data == data })
		if !there && m.bug == "drops presses without a button" {
			return
		}
		m.ids++
		m.updates = append(m.updates, chats.Message{
			Chat: chat, ID: fmt.Sprint(m.ids), Kind: chats.KindPress, User: by, UserName: by, Text: data, TargetID: message,
			Direct: in == Place("memory:dm-"+by),
		})
	})
}

// buttons are those that a part shows.
func (a *adapter) buttons(part chats.Part) [][]chats.Button {
	switch {
	case len(part.Buttons) == 0, a.has("shows no buttons"):
		return nil
	case a.has("shows one row"):
		return [][]chats.Button{slices.Concat(part.Buttons...)}
	}
	if a.has("loses the address of a button") {
		return [][]chats.Button{yesNo()}
	}
	return part.Buttons
}

func (a *adapter) Edit(_ context.Context, to chats.Address, id string, part chats.Part) error {
	switch a.m.bug {
	case "edits nothing":
		return nil
	case "edits by posting":
		a.m.show(to, part.Text, part.Buttons)
		return nil
	}
	failure := &chats.SendError{Outcome: chats.Refused, Err: errors.New("no such message")}
	found := false
	a.m.change(func() {
		for i := range a.m.view.Messages {
			s := &a.m.view.Messages[i]
			if s.ID != id || s.Place != Place(to.Chat.String()) {
				continue
			}
			if found = !a.has("edits once") || s.Text != part.Text; !found {
				continue
			}
			s.Text = part.Text
			if !a.has("keeps buttons in edits") {
				s.Buttons = a.buttons(part)
			}
		}
	})
	if !found {
		return failure
	}
	return nil
}

func (a *adapter) AnswerPress(_ context.Context, press chats.Message, text string) error {
	if a.has("posts answers to presses") {
		a.m.show(chats.Address{Chat: press.Chat}, text, nil)
		return nil
	}
	toast := Toast{To: press.User, Text: text}
	if a.has("answers presses once") && slices.Contains(a.m.view.Toasts, toast) {
		return errors.New("answered before")
	}
	if text != "" || a.has("shows empty answers") {
		a.m.change(func() { a.m.view.Toasts = append(a.m.view.Toasts, toast) })
	}
	return nil
}
