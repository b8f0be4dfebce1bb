// Package demo runs the bot without keys and network: a local page shows a Telegram chat and a Slack
// channel side by side, both emulated, with the real bot in them.
//
// Without a model's key, answers come from rules, and the page says so. Next to each chat the page
// shows what is sent to the model: the loaded groups and the cost of their tools, compared with all
// tools. The page listens only on loopback and answers only its own requests.
package demo
