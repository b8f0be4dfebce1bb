package telegram

import (
	"bytes"
	"encoding/json"
)

// These are the parts of the Bot API's objects that matter here, as of Bot API
// 10.3. The library's types are older than topics, and decoding no more than is
// needed means that what else may change cannot make an update unreadable.

type update struct {
	ID       int64           `json:"update_id"`
	Message  json.RawMessage `json:"message"`
	Edited   json.RawMessage `json:"edited_message"`
	Callback *callback       `json:"callback_query"`
	Member   *memberUpdate   `json:"my_chat_member"`
	Reacted  *reacted        `json:"message_reaction"`
}

type user struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
	// ReadsAll is said of the bot itself.
	ReadsAll bool `json:"can_read_all_group_messages"`
}

type chat struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"`
	Title    string `json:"title"`
	Username string `json:"username"`
	IsForum  bool   `json:"is_forum"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url"`
	User   *user  `json:"user"`
}

type file struct {
	ID     string `json:"file_id"`
	Name   string `json:"file_name"`
	Type   string `json:"mime_type"`
	Size   int64  `json:"file_size"`
	Width  int64  `json:"width"`
	Height int64  `json:"height"`
	Path   string `json:"file_path"`
	// Duration is how many seconds a sound or a video lasts.
	Duration int64 `json:"duration"`
}

type message struct {
	ID          int64    `json:"message_id"`
	ThreadID    int64    `json:"message_thread_id"`
	IsTopic     bool     `json:"is_topic_message"`
	From        *user    `json:"from"`
	SenderChat  *chat    `json:"sender_chat"`
	ViaBot      *user    `json:"via_bot"`
	Chat        chat     `json:"chat"`
	Date        int64    `json:"date"`
	EditDate    int64    `json:"edit_date"`
	AutoForward bool     `json:"is_automatic_forward"`
	ReplyTo     *replied `json:"reply_to_message"`
	pointers
	MediaGroup      string   `json:"media_group_id"`
	Text            string   `json:"text"`
	Entities        []entity `json:"entities"`
	Caption         string   `json:"caption"`
	CaptionEntities []entity `json:"caption_entities"`
	media
	MigrateTo int64 `json:"migrate_to_chat_id"`

	// told is the text of what is no text, such as a poll; inside are the files of a rich
	// message. place says that it is a location.
	told         string
	toldEntities []entity
	inside       []media
	place        bool
}

// media are the files that a message can be.
type media struct {
	Photo     []file `json:"photo"`
	Document  *file  `json:"document"`
	Audio     *file  `json:"audio"`
	Voice     *file  `json:"voice"`
	VideoNote *file  `json:"video_note"`
	Animation *file  `json:"animation"`
}

// replied is the message that another one answers.
type replied struct {
	From *user `json:"from"`
	// TopicCreated marks the first message of a topic, which every message of the
	// topic that answers nothing else seems to answer.
	TopicCreated json.RawMessage `json:"forum_topic_created"`

	whole json.RawMessage
}

// UnmarshalJSON keeps the whole message: it is read only where a user points at it.
func (r *replied) UnmarshalJSON(raw []byte) error {
	type alone replied
	r.whole = bytes.Clone(raw)
	return json.Unmarshal(raw, (*alone)(r))
}

// callback is a press of a button under one of the bot's messages. What it says of the
// message is decoded by itself, so that an odd one leaves something to answer.
type callback struct {
	ID      string          `json:"id"`
	From    user            `json:"from"`
	Message json.RawMessage `json:"message"`
	Data    string          `json:"data"`
}

// pressed is the message under which a button was pressed. Its date is 0 where the
// message is deleted or too old for bots to see: then only the chat and the id are true.
type pressed struct {
	ID       int64 `json:"message_id"`
	ThreadID int64 `json:"message_thread_id"`
	IsTopic  bool  `json:"is_topic_message"`
	Chat     chat  `json:"chat"`
	Date     int64 `json:"date"`
	// Ephemeral is the number of one that only the user who pressed sees; then ID is 0.
	Ephemeral int64 `json:"ephemeral_message_id"`
}

type memberUpdate struct {
	Chat chat `json:"chat"`
	From user `json:"from"`
	New  struct {
		Status string `json:"status"`
	} `json:"new_chat_member"`
}
