// Package slack connects the bot to Slack.
//
// Events come over Socket Mode, or as signed HTTP requests if a signing secret is set. Either way an
// event is acknowledged only once the inbox has it on disk, or the store has a record that it is still
// to be fetched. The library's own Socket Mode client is not used: it drops unknown events without an
// acknowledgement, and acknowledges over whichever socket is open.
//
// A thread is a separate chat. The package asks Slack whether the bot participates in one, and caches a
// yes for a day, a no for a minute.
package slack
