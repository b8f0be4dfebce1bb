package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

// maxFile is the limit of getFile on Telegram's own server (core.telegram.org/bots/api#getfile).
const maxFile = 20 << 20

// maxDuration bounds a duration, in seconds.
const maxDuration = 1 << 20

// unreadable lists contents that the bot cannot read, by field, with a description for the user. Other
// contents are read as text (contents.go).
var unreadable = []struct{ field, what string }{
	{"video", "a video"},
	{"sticker", "a sticker"},
	{"game", "a game"},
	{"story", "a story"},
	{"live_photo", "a live photo"},
	{"paid_media", "paid media"},
	{"rich_message", "a rich message"},
	{"invoice", "an invoice"},
	{"giveaway", "a giveaway"},
	{"passport_data", "passport data"},
}

// nonContentFields lists objects in a message that are not content: additions to it, and notices of the
// chat itself (core.telegram.org/bots/api#message). Any other object is content, possibly of an unknown
// kind.
var nonContentFields = map[string]bool{
	"boost_added": true, "business_connection_id": true, "caption_entities": true, "chat": true,
	"chat_background_set": true, "chat_owner_changed": true, "chat_owner_left": true, "chat_shared": true,
	"checklist_tasks_added": true, "checklist_tasks_done": true, "direct_message_price_changed": true,
	"direct_messages_topic": true, "entities": true, "external_reply": true, "forum_topic_closed": true,
	"forum_topic_created": true, "forum_topic_edited": true, "forum_topic_reopened": true, "from": true,
	"general_forum_topic_hidden": true, "general_forum_topic_unhidden": true, "gift": true,
	"gift_upgrade_sent": true, "giveaway_completed": true, "giveaway_created": true, "giveaway_winners": true,
	"left_chat_member": true, "left_chat_participant": true, "link_preview_options": true,
	"managed_bot_created": true, "message_auto_delete_timer_changed": true, "new_chat_member": true,
	"new_chat_members": true, "new_chat_participant": true, "new_chat_photo": true, "origin": true,
	"paid_message_price_changed": true, "pinned_message": true, "poll_option_added": true,
	"poll_option_deleted": true, "proximity_alert_triggered": true, "quote": true, "receiver_user": true,
	"refunded_payment": true, "reply_markup": true, "successful_payment": true, "suggested_post_info": true,
	"unique_gift": true, "user_shared": true, "users_shared": true, "via_bot": true, "video_chat_ended": true,
	"video_chat_participants_invited": true, "video_chat_scheduled": true, "video_chat_started": true,
	"voice_chat_ended": true, "voice_chat_participants_invited": true, "voice_chat_scheduled": true,
	"voice_chat_started": true, "web_app_data": true, "write_access_allowed": true,
}

// nonContentPrefixes begin the names of further such objects, including future ones.
var nonContentPrefixes = []string{"reply_to_", "forward_", "sender_", "guest_", "suggested_post_", "community_chat_"}

// attachments returns the files in a message of at most limit bytes, and texts about contents that cannot be read.
func (m *message) attachments(raw json.RawMessage, limit int64) (files []chats.Attachment, skipped []string) {
	add := func(f *file, name, kind string, sound ...chats.SoundKind) {
		if f == nil || f.ID == "" {
			return
		}
		a := chats.Attachment{Ref: f.ID, Name: cmp.Or(f.Name, name), Size: max(f.Size, 0), Type: cmp.Or(f.Type, kind)}
		if len(sound) > 0 {
			// A sound that is too large is reported when it is to be transcribed.
			a.Sound = chats.Sound{Kind: sound[0], Length: time.Duration(min(max(f.Duration, 0), maxDuration)) * time.Second}
		} else if a.Size > limit {
			skipped = append(skipped, fmt.Sprintf("%s (%.1f MB): Telegram hands files of at most %d MB to a bot", a.Name, float64(a.Size)/(1<<20), limit>>20))
			return
		}
		files = append(files, a)
	}
	for _, held := range append([]media{m.media}, m.innerMedia...) {
		add(largestPhoto(held.photos()), cmp.Or(held.name, "photo")+".jpg", "image/jpeg")
		// Telegram repeats an animation as a document, for older clients.
		if held.Animation != nil {
			add(held.Animation, "animation.mp4", "video/mp4")
		} else {
			add(held.Document, "document", "")
		}
		add(held.Audio, "audio.mp3", "audio/mpeg", chats.SoundFile)
		spoken := chats.SoundSpoken
		if held.Voice != nil && held.Voice.Type != "" && held.Voice.Type != "audio/ogg" {
			spoken = chats.SoundFile // clients record Opus alone: the sender has shared a file
		}
		add(held.Voice, "voice.ogg", "audio/ogg", spoken)
		add(held.VideoNote, "round-video.mp4", "video/mp4", chats.SoundSpoken)
	}
	if m.isEmpty() && len(files) == 0 && len(skipped) == 0 {
		skipped = describeUnreadable(raw)
	}
	if m.damaged && len(skipped) == 0 {
		skipped = []string{"a part of this message that I cannot read"}
	}
	return files, skipped
}

// largeFile returns the id of a file that only a self-hosted server with --local hands out; empty if there is none.
func (m *message) largeFile() string {
	if m != nil {
		for _, f := range []*file{m.Document, m.Animation, m.Audio} {
			if f != nil && f.Size > maxFile {
				return f.ID
			}
		}
	}
	return ""
}

func largestPhoto(sizes []file) *file {
	var best *file
	for i := range sizes {
		if f := &sizes[i]; best == nil || f.Width*f.Height >= best.Width*best.Height {
			best = f
		}
	}
	return best
}

// describeUnreadable describes the contents of a message that cannot be read, in one line.
func describeUnreadable(raw json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	for _, u := range unreadable {
		if isPresent(fields[u.field]) {
			return []string{u.what + ": I can't read that yet"}
		}
	}
	for field, v := range fields {
		if isContent(field, v) {
			return []string{"something of a kind that I do not know"}
		}
	}
	return nil
}

// isContent reports whether a field may be content.
func isContent(field string, v json.RawMessage) bool {
	if nonContentFields[field] || len(v) == 0 || v[0] != '{' && v[0] != '[' {
		return false
	}
	return !slices.ContainsFunc(nonContentPrefixes, func(prefix string) bool { return strings.HasPrefix(field, prefix) })
}
