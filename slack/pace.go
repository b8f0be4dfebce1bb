package slack

import "time"

// maxHold is how long a call is delayed before it fails with a request to retry: the caller's own wait
// can be interrupted.
const maxHold = 5 * time.Second

// callInterval returns the interval between calls of a method after a rate limit: one message a second
// in a channel, and the rates of the tiers for the rest (docs.slack.dev, rate limits).
func callInterval(method string) time.Duration {
	switch method {
	case postMessage:
		return time.Second
	case "users.info", "chat.postEphemeral", "chat.appendStream", "files.info", "files.getUploadURLExternal", "files.completeUploadExternal":
		return time.Minute / 100 // tier 4
	case updateMessage, "conversations.history", "conversations.replies", "users.conversations", addReaction:
		return time.Minute / 50 // tier 3
	case setStatus:
		return time.Minute / 600
	}
	return 3 * time.Second // tier 2
}
