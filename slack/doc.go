// Package slack connects the bot to Slack.
//
// Events come over Socket Mode, or as signed HTTP requests where a signing secret is
// set. Either way an event is acknowledged only once the inbox has it on disk; one
// that is not acknowledged is delivered again by Slack. The client library calls the
// Web API, but its own Socket Mode client is not used: it decodes what it knows and
// drops the rest unacknowledged, and sends acknowledgements over whichever socket
// happens to be open. Here a socket acknowledges what it brought.
//
// A file is uploaded first and shared in its thread then, which is when people see it:
// sharing is what is recorded as sending.
//
// A thread is a chat of its own. Whether the bot takes part in one is not stored
// anywhere: Slack knows, and is asked.
package slack
