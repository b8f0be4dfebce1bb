package telegram

import (
	"bytes"
	"encoding/json"
	"errors"
)

// The Bot API's objects as of 10.3, with only the fields that are used. The library's types are older
// than topics, and changes to other fields cannot make an update undecodable.

type update struct {
	ID            int64           `json:"update_id"`
	Message       json.RawMessage `json:"message"`
	EditedMessage json.RawMessage `json:"edited_message"`
	Callback      *callback       `json:"callback_query"`
	MyChatMember  *memberUpdate   `json:"my_chat_member"`
	Reaction      *reactionUpdate `json:"message_reaction"`
}

// decodeLoosely decodes JSON. A field of an unexpected type is left out, and damaged is set.
func decodeLoosely(raw []byte, into any) (damaged bool, err error) {
	err = json.Unmarshal(raw, into)
	if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
		return true, nil
	}
	return false, err
}

type user struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
	// ReadsAll is set only for the bot itself.
	ReadsAll bool `json:"can_read_all_group_messages"`
}

type chat struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
	// FirstName and LastName are those of the user of a private chat.
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
	IsForum   bool   `json:"is_forum"`
	// IsDirectMessages is set for the direct messages of a channel.
	IsDirectMessages bool `json:"is_direct_messages"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url"`
	User   *user  `json:"user"`
	// Language is that of a block of code, UnixTime the moment of a date.
	Language string `json:"language"`
	UnixTime int64  `json:"unix_time"`
}

type file struct {
	ID     string `json:"file_id"`
	Name   string `json:"file_name"`
	Type   string `json:"mime_type"`
	Size   int64  `json:"file_size"`
	Width  int64  `json:"width"`
	Height int64  `json:"height"`
	Path   string `json:"file_path"`
	// Duration is the duration of a sound or a video, in seconds.
	Duration int64 `json:"duration"`
}

type message struct {
	ID          int64           `json:"message_id"`
	ThreadID    int64           `json:"message_thread_id"`
	IsTopic     bool            `json:"is_topic_message"`
	DirectTopic *directTopic    `json:"direct_messages_topic"`
	From        *user           `json:"from"`
	SenderChat  *chat           `json:"sender_chat"`
	ViaBot      *user           `json:"via_bot"`
	Chat        chat            `json:"chat"`
	Date        int64           `json:"date"`
	EditDate    int64           `json:"edit_date"`
	AutoForward bool            `json:"is_automatic_forward"`
	ReplyTo     *repliedMessage `json:"reply_to_message"`
	references
	MediaGroupID    string   `json:"media_group_id"`
	Text            string   `json:"text"`
	Entities        []entity `json:"entities"`
	Caption         string   `json:"caption"`
	CaptionEntities []entity `json:"caption_entities"`
	media
	MigrateTo int64 `json:"migrate_to_chat_id"`

	// contentText is the text of other contents, such as a poll. innerMedia are the files in a rich
	// message. isLocation is set for a location.
	contentText     string
	contentEntities []entity
	innerMedia      []media
	// inner are the texts inside contents whose entities contentEntities does not have.
	inner      []innerText
	isLocation bool
	isNamed    bool // it has texts that the sender did not write, or may not have: of a contact, a place, or what others added to it
	damaged    bool // a field has an unexpected type, and is left out
	// items are the texts of the tasks of a checklist or the options of a poll, by their ids.
	items map[string]string
}

// media are the files of a message.
type media struct {
	Photo     []file `json:"photo"`
	Document  *file  `json:"document"`
	Audio     *file  `json:"audio"`
	Voice     *file  `json:"voice"`
	VideoNote *file  `json:"video_note"`
	Animation *file  `json:"animation"`
	LivePhoto *struct {
		Photo []file `json:"photo"`
	} `json:"live_photo"`
	// Video and Sticker cannot be seen.
	Video   json.RawMessage `json:"video"`
	Sticker json.RawMessage `json:"sticker"`

	name string // of its picture, without an ending
}

// isEmpty reports whether there are no files.
func (m *media) isEmpty() bool {
	return len(m.photos()) == 0 && m.Document == nil && m.Audio == nil && m.Voice == nil && m.VideoNote == nil && m.Animation == nil && m.LivePhoto == nil && m.Video == nil && m.Sticker == nil
}

// photos returns the sizes of a picture. Telegram repeats that of a live photo as a photo for older clients, except
// in what is replied to in another chat.
func (m *media) photos() []file {
	if len(m.Photo) == 0 && m.LivePhoto != nil {
		return m.LivePhoto.Photo
	}
	return m.Photo
}

// repliedMessage is a message that another one replies to.
type repliedMessage struct {
	From *user `json:"from"`
	// TopicCreated marks the first message of a topic. Every message in the topic without another reply
	// seems to reply to it.
	TopicCreated json.RawMessage `json:"forum_topic_created"`

	raw json.RawMessage
}

// UnmarshalJSON also keeps the whole message undecoded. It is decoded only if it is quoted.
func (r *repliedMessage) UnmarshalJSON(raw []byte) error {
	type alone repliedMessage
	r.raw = bytes.Clone(raw)
	return json.Unmarshal(raw, (*alone)(r))
}

// callback is a press of a button below one of the bot's messages. Its message is decoded separately,
// so that unexpected data there does not prevent an answer.
type callback struct {
	ID      string          `json:"id"`
	From    user            `json:"from"`
	Message json.RawMessage `json:"message"`
	Data    string          `json:"data"`
}

// pressedMessage is a message of the bot whose button was pressed, or that was edited. Its date is 0 if the
// message is deleted or too old for bots to see. Then only the chat and the id are valid.
type pressedMessage struct {
	ID          int64        `json:"message_id"`
	ThreadID    int64        `json:"message_thread_id"`
	IsTopic     bool         `json:"is_topic_message"`
	DirectTopic *directTopic `json:"direct_messages_topic"`
	Chat        chat         `json:"chat"`
	Date        int64        `json:"date"`
	// Ephemeral is the number of an ephemeral message, whose ID is 0.
	Ephemeral int64 `json:"ephemeral_message_id"`
}

type memberUpdate struct {
	Chat chat   `json:"chat"`
	From user   `json:"from"`
	Old  member `json:"old_chat_member"`
	New  member `json:"new_chat_member"`
}

// member is what the bot is in a chat. The other fields are those of a restricted one.
type member struct {
	Status   string `json:"status"`
	IsMember bool   `json:"is_member"`
	CanSend  bool   `json:"can_send_messages"`
}

// isIn reports whether the bot is in the chat.
func (m member) isIn() bool {
	switch m.Status {
	case "", "left", "kicked":
		return false
	case "restricted":
		return m.IsMember
	}
	return true
}

// canWrite reports whether the bot may write there.
func (m member) canWrite() bool {
	switch m.Status {
	case "left", "kicked":
		return false
	case "restricted":
		return m.IsMember && m.CanSend
	}
	return true
}
