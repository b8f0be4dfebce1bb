package slack

import "time"

// maxHold is how long a call is held back before its caller is told to come again later:
// who waits there can be stopped.
const maxHold = 5 * time.Second

// gapOf is how far apart Slack wants calls of a method once there were too many:
// a message each second in a channel, and the rates of the tiers for the rest
// (docs.slack.dev, rate limits).
func gapOf(method string) time.Duration {
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
