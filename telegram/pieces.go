package telegram

import (
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

// Clients split a text that is too long for a message. Telegram Desktop cuts at the end of a paragraph,
// a sentence or a word in the second half of a message (TextUtilities::CutPart in
// ui/text/text_entity.cpp), the Android client at the end of a word among the last 300 characters;
// without one, the message has the maximum length.

// cut returns whether the text may continue in the next message.
func (m *message) cut() chats.Cut {
	switch n := markdown.UTF16Len(m.Text); {
	case n >= maxText:
		return chats.CutWithin
	case n > maxText/2:
		return chats.CutBetween
	}
	return chats.CutNowhere
}

// pieceSeconds bounds the time between two pieces of a text.
const pieceSeconds = 3

// albumKey identifies the album of a message in a group or, without an album, the text that the
// sender's previous message may have begun.
func (m *message) albumKey() album {
	if m.MediaGroupID != "" {
		return album{m.Chat.ID, m.MediaGroupID}
	}
	return m.pieceKey(m.ID, m.Date)
}

// pieceKey identifies the message with this id and date, as a piece of a text by the sender of m.
func (m *message) pieceKey(id, date int64) album {
	by, _, _ := m.sender()
	return album{m.Chat.ID, fmt.Sprintf("text/%d/%d/%d", by, id, date)}
}

// mayContinueText reports whether the message may be a piece of a text of its sender, but not the first.
func (m *message) mayContinueText() bool {
	_, _, ok := m.sender()
	return ok && m.ID > 1 && m.Text != "" && !m.isForeign()
}

// nextPieces returns the keys that the next piece of a text may have: the next message id, with each date
// within pieceSeconds. It returns none if the text ends here. Only the first piece mentions the bot.
func (m *message) nextPieces() (list []album) {
	for date := m.Date; m.cut() != chats.CutNowhere && date <= m.Date+pieceSeconds; date++ {
		list = append(list, m.pieceKey(m.ID+1, date))
	}
	return list
}
