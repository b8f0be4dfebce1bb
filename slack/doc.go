// Package slack connects the bot to Slack.
//
// Events come over Socket Mode, or as signed HTTP requests where a signing secret is
// set. Either way an event is acknowledged only once the inbox has it on disk. The
// library's own Socket Mode client is not used: it drops unacknowledged what it does not
// know, and acknowledges over whichever socket happens to be open.
//
// A thread is a chat of its own. Whether the bot takes part in one is not stored
// anywhere: Slack knows, and is asked.
package slack
