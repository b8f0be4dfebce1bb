// Package demo lets one try the bot without keys and network: a local page with a Telegram chat
// and a Slack channel side by side, both emulated, and the real bot.
//
// Without a model's key, answers come from rules, and the page says so. Beside each chat it
// shows what the model was sent: the loaded groups and what their tools cost, compared with all
// tools. The page listens only on loopback and answers only its own requests.
package demo
