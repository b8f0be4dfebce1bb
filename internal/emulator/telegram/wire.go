package telegram

import "encoding/json"

// User is a person or a bot.
type User struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name,omitempty"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

// Entity is a formatted or special part of a text. Offset and Length count UTF-16
// code units.
type Entity struct {
	Type          string `json:"type"`
	Offset        int    `json:"offset"`
	Length        int    `json:"length"`
	URL           string `json:"url,omitempty"`
	User          *User  `json:"user,omitempty"`
	Language      string `json:"language,omitempty"`
	CustomEmojiID string `json:"custom_emoji_id,omitempty"`
}

// Button is a button of an inline keyboard.
type Button struct {
	Text         string `json:"text"`
	CallbackData string `json:"callback_data,omitempty"`
	URL          string `json:"url,omitempty"`
	Style        string `json:"style,omitempty"`
}

type wireChat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
}

type wireFile struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	FileName     string `json:"file_name,omitempty"`
	MimeType     string `json:"mime_type,omitempty"`
	FileSize     int    `json:"file_size,omitempty"`
	Width        int    `json:"width,omitempty"`
	Height       int    `json:"height,omitempty"`
	Duration     int    `json:"duration,omitempty"`
	// Length is the width and height of a video message, which has no name and no type.
	Length   int    `json:"length,omitempty"`
	FilePath string `json:"file_path,omitempty"`
}

type wireMarkup struct {
	InlineKeyboard [][]json.RawMessage `json:"inline_keyboard"`
}

type wireMessage struct {
	MessageID      int64        `json:"message_id"`
	ThreadID       int64        `json:"message_thread_id,omitempty"`
	From           *User        `json:"from,omitempty"`
	Chat           wireChat     `json:"chat"`
	Date           int64        `json:"date"`
	EditDate       int64        `json:"edit_date,omitempty"`
	IsTopicMessage bool         `json:"is_topic_message,omitempty"`
	ReplyToMessage *wireMessage `json:"reply_to_message,omitempty"`
	wirePointers
	MediaGroupID    string      `json:"media_group_id,omitempty"`
	Text            string      `json:"text,omitempty"`
	Entities        []Entity    `json:"entities,omitempty"`
	Caption         string      `json:"caption,omitempty"`
	CaptionEntities []Entity    `json:"caption_entities,omitempty"`
	Document        *wireFile   `json:"document,omitempty"`
	Voice           *wireFile   `json:"voice,omitempty"`
	Audio           *wireFile   `json:"audio,omitempty"`
	VideoNote       *wireFile   `json:"video_note,omitempty"`
	Photo           []wireFile  `json:"photo,omitempty"`
	ReplyMarkup     *wireMarkup `json:"reply_markup,omitempty"`
	MigrateTo       int64       `json:"migrate_to_chat_id,omitempty"`
	MigrateFrom     int64       `json:"migrate_from_chat_id,omitempty"`
	ReceiverUser    *User       `json:"receiver_user,omitempty"`
	EphemeralID     int64       `json:"ephemeral_message_id,omitempty"`
}

type wireCallback struct {
	ID           string       `json:"id"`
	From         User         `json:"from"`
	Message      *wireMessage `json:"message,omitempty"`
	ChatInstance string       `json:"chat_instance"`
	Data         string       `json:"data"`
}

type wireMember struct {
	Status    string `json:"status"`
	User      User   `json:"user"`
	UntilDate *int   `json:"until_date,omitempty"`
}

type wireMemberUpdated struct {
	Chat wireChat   `json:"chat"`
	From User       `json:"from"`
	Date int64      `json:"date"`
	Old  wireMember `json:"old_chat_member"`
	New  wireMember `json:"new_chat_member"`
}

type wireReaction struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji,omitempty"`
}

type wireReactionUpdated struct {
	Chat      wireChat       `json:"chat"`
	MessageID int64          `json:"message_id"`
	User      User           `json:"user"`
	Date      int64          `json:"date"`
	Old       []wireReaction `json:"old_reaction"`
	New       []wireReaction `json:"new_reaction"`
}
