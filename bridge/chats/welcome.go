package chats

// Welcome is shown to a user who opens the chat with the bot.
type Welcome struct {
	// Prompts are suggested questions, Sections texts about the bot.
	Prompts  []Prompt
	Sections []Section
}

// Prompt is a suggested question. A title is at most 40 characters of plain text.
type Prompt struct{ Title, Message string }

// Section is a text in Markdown with a title of plain text.
type Section struct{ Title, Text string }
