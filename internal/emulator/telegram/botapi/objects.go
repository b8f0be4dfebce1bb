// Package botapi has the JSON objects of the Bot API.
package botapi

import (
	"encoding/json"
	"strings"
)

// User is a person or a bot.
type User struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name,omitempty"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

// Entity is a formatted or special part of a text. Offset and Length count UTF-16 code units.
type Entity struct {
	Type          string `json:"type"`
	Offset        int    `json:"offset"`
	Length        int    `json:"length"`
	URL           string `json:"url,omitempty"`
	User          *User  `json:"user,omitempty"`
	Language      string `json:"language,omitempty"`
	CustomEmojiID string `json:"custom_emoji_id,omitempty"`
	UnixTime      int64  `json:"unix_time,omitempty"`
	DateFormat    string `json:"date_time_format,omitempty"`
}

// Button is a button of an inline keyboard.
type Button struct {
	Text         string `json:"text"`
	CallbackData string `json:"callback_data,omitempty"`
	URL          string `json:"url,omitempty"`
	Style        string `json:"style,omitempty"`
}

// Chat is a chat (core.telegram.org/bots/api#chat).
type Chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
	// IsDirectMessages is set for the direct messages of a channel.
	IsDirectMessages bool `json:"is_direct_messages,omitempty"`
}

// DirectMessagesTopic is the topic of one person in the direct messages of a channel.
type DirectMessagesTopic struct {
	TopicID int64 `json:"topic_id"`
	User    *User `json:"user,omitempty"`
}

// File is a file of any kind.
type File struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	FileName     string `json:"file_name,omitempty"`
	MimeType     string `json:"mime_type,omitempty"`
	FileSize     int    `json:"file_size,omitempty"`
	Width        int    `json:"width,omitempty"`
	Height       int    `json:"height,omitempty"`
	Duration     *int   `json:"duration,omitempty"`
	// Length is the width and height of a video message, which has no name and no type.
	Length   int    `json:"length,omitempty"`
	FilePath string `json:"file_path,omitempty"`
}

// Keyboard is an inline keyboard. Its buttons are stored as received.
type Keyboard struct {
	InlineKeyboard [][]json.RawMessage `json:"inline_keyboard"`
}

// Message is a message (core.telegram.org/bots/api#message).
type Message struct {
	MessageID           int64                `json:"message_id"`
	MessageThreadID     int64                `json:"message_thread_id,omitempty"`
	DirectMessagesTopic *DirectMessagesTopic `json:"direct_messages_topic,omitempty"`
	SenderChat          *Chat                `json:"sender_chat,omitempty"`
	From                *User                `json:"from,omitempty"`
	Chat                Chat                 `json:"chat"`
	Date                int64                `json:"date"`
	EditDate            int64                `json:"edit_date,omitempty"`
	IsTopicMessage      bool                 `json:"is_topic_message,omitempty"`
	ReplyToMessage      *Message             `json:"reply_to_message,omitempty"`
	References
	*Contents
	MediaGroupID       string    `json:"media_group_id,omitempty"`
	Text               string    `json:"text,omitempty"`
	Entities           []Entity  `json:"entities,omitempty"`
	Caption            string    `json:"caption,omitempty"`
	CaptionEntities    []Entity  `json:"caption_entities,omitempty"`
	Document           *File     `json:"document,omitempty"`
	Voice              *File     `json:"voice,omitempty"`
	Audio              *File     `json:"audio,omitempty"`
	VideoNote          *File     `json:"video_note,omitempty"`
	Photo              []File    `json:"photo,omitempty"`
	ReplyMarkup        *Keyboard `json:"reply_markup,omitempty"`
	MigrateToChatID    int64     `json:"migrate_to_chat_id,omitempty"`
	MigrateFromChatID  int64     `json:"migrate_from_chat_id,omitempty"`
	ReceiverUser       *User     `json:"receiver_user,omitempty"`
	EphemeralMessageID int64     `json:"ephemeral_message_id,omitempty"`
}

// CallbackQuery is a button press.
type CallbackQuery struct {
	ID           string   `json:"id"`
	From         User     `json:"from"`
	Message      *Message `json:"message,omitempty"`
	ChatInstance string   `json:"chat_instance"`
	Data         string   `json:"data"`
}

// Member is a member of a chat.
type Member struct {
	Status    string `json:"status"`
	User      User   `json:"user"`
	UntilDate *int   `json:"until_date,omitempty"`
	// IsAnonymous is set for the owner and administrators.
	IsAnonymous *bool `json:"is_anonymous,omitempty"`
	// CanChangeInfo and CanInviteUsers are set for administrators and restricted members.
	CanChangeInfo  *bool `json:"can_change_info,omitempty"`
	CanInviteUsers *bool `json:"can_invite_users,omitempty"`
	*AdministratorRights
	*RestrictedRights
}

// AdministratorRights are the rights of an administrator.
type AdministratorRights struct {
	CanBeEdited            bool `json:"can_be_edited"`
	CanManageChat          bool `json:"can_manage_chat"`
	CanDeleteMessages      bool `json:"can_delete_messages"`
	CanManageVideoChats    bool `json:"can_manage_video_chats"`
	CanRestrictMembers     bool `json:"can_restrict_members"`
	CanPromoteMembers      bool `json:"can_promote_members"`
	CanPostStories         bool `json:"can_post_stories"`
	CanEditStories         bool `json:"can_edit_stories"`
	CanDeleteStories       bool `json:"can_delete_stories"`
	CanSendWelcomeMessages bool `json:"can_send_welcome_messages"`
}

// RestrictedRights are the rights of a restricted member. The emulator grants none.
type RestrictedRights struct {
	IsMember              bool `json:"is_member"`
	CanSendMessages       bool `json:"can_send_messages"`
	CanSendAudios         bool `json:"can_send_audios"`
	CanSendDocuments      bool `json:"can_send_documents"`
	CanSendPhotos         bool `json:"can_send_photos"`
	CanSendVideos         bool `json:"can_send_videos"`
	CanSendVideoNotes     bool `json:"can_send_video_notes"`
	CanSendVoiceNotes     bool `json:"can_send_voice_notes"`
	CanSendPolls          bool `json:"can_send_polls"`
	CanSendOtherMessages  bool `json:"can_send_other_messages"`
	CanAddWebPagePreviews bool `json:"can_add_web_page_previews"`
	CanReactToMessages    bool `json:"can_react_to_messages"`
	CanEditTag            bool `json:"can_edit_tag"`
	CanPinMessages        bool `json:"can_pin_messages"`
	CanManageTopics       bool `json:"can_manage_topics"`
}

// ChatMemberUpdated is a change of a member's status.
type ChatMemberUpdated struct {
	Chat          Chat   `json:"chat"`
	From          User   `json:"from"`
	Date          int64  `json:"date"`
	OldChatMember Member `json:"old_chat_member"`
	NewChatMember Member `json:"new_chat_member"`
}

// Reaction is a reaction to a message.
type Reaction struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji,omitempty"`
}

// MessageReactionUpdated is a change of a user's reactions.
type MessageReactionUpdated struct {
	Chat        Chat       `json:"chat"`
	MessageID   int64      `json:"message_id"`
	User        User       `json:"user"`
	Date        int64      `json:"date"`
	OldReaction []Reaction `json:"old_reaction"`
	NewReaction []Reaction `json:"new_reaction"`
}

// References are the fields of a message that refer to other messages
// (core.telegram.org/bots/api#message).
type References struct {
	ForwardOrigin     *MessageOrigin     `json:"forward_origin,omitempty"`
	ExternalReply     *ExternalReplyInfo `json:"external_reply,omitempty"`
	Quote             *Quote             `json:"quote,omitempty"`
	ForumTopicCreated *ForumTopicCreated `json:"forum_topic_created,omitempty"`
}

// ForumTopicCreated is the service message for a new topic.
type ForumTopicCreated struct {
	Name      string `json:"name"`
	IconColor int    `json:"icon_color"`
}

// MessageOrigin is the origin of a forwarded message (core.telegram.org/bots/api#messageorigin).
type MessageOrigin struct {
	Type            string `json:"type"`
	Date            int64  `json:"date"`
	SenderUser      *User  `json:"sender_user,omitempty"`
	SenderUserName  string `json:"sender_user_name,omitempty"`
	SenderChat      *Chat  `json:"sender_chat,omitempty"`
	Chat            *Chat  `json:"chat,omitempty"`
	MessageID       int64  `json:"message_id,omitempty"`
	AuthorSignature string `json:"author_signature,omitempty"`
}

// Name returns the name of the author, or of the chat that it was written in.
func (o *MessageOrigin) Name() string {
	switch {
	case o.SenderUser != nil:
		return strings.TrimSpace(o.SenderUser.FirstName + " " + o.SenderUser.LastName)
	case o.SenderChat != nil:
		return o.SenderChat.Title
	case o.Chat != nil:
		return o.Chat.Title
	}
	return o.SenderUserName
}

// ExternalReplyInfo is a message in another chat, without its text
// (core.telegram.org/bots/api#externalreplyinfo).
type ExternalReplyInfo struct {
	Origin    MessageOrigin `json:"origin"`
	Chat      *Chat         `json:"chat,omitempty"`
	MessageID int64         `json:"message_id,omitempty"`
	Document  *File         `json:"document,omitempty"`
	Voice     *File         `json:"voice,omitempty"`
	Photo     []File        `json:"photo,omitempty"`
}

// Quote is the quoted part of a message.
type Quote struct {
	Text     string   `json:"text"`
	Entities []Entity `json:"entities,omitempty"`
	Position int      `json:"position"`
	IsManual bool     `json:"is_manual,omitempty"`
}

// FullChat is the result of getChat.
type FullChat struct {
	Chat
	AccentColorID     int               `json:"accent_color_id"`
	MaxReactionCount  int               `json:"max_reaction_count"`
	AcceptedGiftTypes AcceptedGiftTypes `json:"accepted_gift_types"`
}

// AcceptedGiftTypes are the gifts that a chat takes. Chats of the emulator take none.
type AcceptedGiftTypes struct {
	UnlimitedGifts      bool `json:"unlimited_gifts"`
	LimitedGifts        bool `json:"limited_gifts"`
	UniqueGifts         bool `json:"unique_gifts"`
	PremiumSubscription bool `json:"premium_subscription"`
	GiftsFromChannels   bool `json:"gifts_from_channels"`
}

// Bot is the result of getMe.
type Bot struct {
	User
	CanJoinGroups              bool `json:"can_join_groups"`
	CanReadAllGroupMessages    bool `json:"can_read_all_group_messages"`
	SupportsInlineQueries      bool `json:"supports_inline_queries"`
	HasMainWebApp              bool `json:"has_main_web_app"`
	HasTopicsEnabled           bool `json:"has_topics_enabled"`
	AllowsUsersToCreateTopics  bool `json:"allows_users_to_create_topics"`
	CanConnectToBusiness       bool `json:"can_connect_to_business"`
	CanManageBots              bool `json:"can_manage_bots"`
	SupportsJoinRequestQueries bool `json:"supports_join_request_queries"`
}
