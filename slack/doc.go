// Package slack connects the bot to Slack.
//
// Events come over Socket Mode, or as signed HTTP requests if a signing secret is set. Either way an
// event is acknowledged only once the inbox has it on disk. The library's own Socket Mode client is not
// used: it drops unknown events without an acknowledgement, and acknowledges over whichever socket is
// open.
//
// A thread is a separate chat. Slack is asked whether the bot participates in one, and the answer is
// cached for a day.
package slack
