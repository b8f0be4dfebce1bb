package telegram

import (
	"fmt"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
	"oneclaw/internal/markdown"
)

// Clients send a text that is too long for a message as several. Where they cut depends on
// the client: Telegram Desktop looks for the end of a paragraph, a sentence or a word in the
// second half of a message (TextUtilities::CutPart in ui/text/text_entity.cpp), that for
// Android for the end of a word among the last 300 characters; where there is none, the
// message is full.

// cut says whether the text may go on in the next message.
func (m *message) cut() chats.Cut {
	switch n := markdown.Units(m.Text); {
	case n >= maxText:
		return chats.CutWithin
	case n > maxText/2:
		return chats.CutBetween
	}
	return chats.CutNowhere
}

// pieceSeconds is how far apart two pieces of a text are.
const pieceSeconds = 3

// belongsTo names what a message of a group is part of: its album, or the text that the
// message before it of the same sender may have begun.
func (m *message) belongsTo() album {
	if m.MediaGroup != "" {
		return album{m.Chat.ID, m.MediaGroup}
	}
	return m.piece(m.ID, m.Date)
}

// piece names a message as one that continues a text of its sender.
func (m *message) piece(id, date int64) album {
	by, _, _ := m.sender()
	return album{m.Chat.ID, fmt.Sprintf("text/%d/%d/%d", by, id, date)}
}

// goesOn remembers that the rest of a text is for the bot: the message with the next id, if
// it comes at once. Only the first calls the bot.
func (d *decoder) goesOn(m *message) {
	for date := m.Date; m.cut() != chats.CutNowhere && date <= m.Date+pieceSeconds; date++ {
		d.albums.known.Put(m.piece(m.ID+1, date), true, cache.Forever)
	}
}
