package jobs

import "oneclaw/bridge/chats"

// The kinds of jobs that no platform delivers.
const (
	// KindTask is a task whose time has come; see Submit of the bridge.
	KindTask chats.Kind = "task"
	// KindLoad is a tool group that somebody loads with a button. It waits for its turn
	// like a message, because it changes the conversation.
	KindLoad chats.Kind = "load"
	// KindMove is the move of a chat to a new id. Its job waits until no turn runs at
	// either end; no message is answered there before it is done, and what waits goes along.
	KindMove chats.Kind = "move"
	// KindCard is a card to be sent, KindRefresh one whose message shows an older version.
	KindCard    chats.Kind = "card"
	KindRefresh chats.Kind = "card-refresh"
	// KindExpire is what older programs left of a card whose time was over.
	KindExpire chats.Kind = "card-expire"
)
