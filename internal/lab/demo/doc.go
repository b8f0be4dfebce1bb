// Package demo is the bot to be tried without keys and without network: a local page
// with a Telegram chat and a Slack channel side by side, both emulated, and the real
// bot between them.
//
// Without a key of a model, answers come from rules, and the page says so. Beside each
// chat it shows what the model was sent: the groups that are loaded and what their tools
// cost, against what all tools would have cost. The page listens on loopback alone and
// answers only requests that come from itself.
package demo
