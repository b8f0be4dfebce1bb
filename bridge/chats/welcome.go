package chats

// Welcome is what is shown to a user who opens their chat with the bot.
type Welcome struct {
	// Prompts are what they may want to ask first, and Sections what there is to know.
	Prompts  []Prompt
	Sections []Section
}

// Prompt is something to ask. A title is at most 40 characters of plain text.
type Prompt struct{ Title, Message string }

// Section is a text in Markdown under a title of plain text.
type Section struct{ Title, Text string }
