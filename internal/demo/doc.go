// Package demo is the bot to be tried without keys and without network: a local page
// with a Telegram chat and a Slack channel side by side, both emulated, and the real
// bot between them.
//
// What is typed into the page goes to the emulators, from there over HTTP and
// WebSocket to the bot's own adapters, and the same way back. Only the model may be a
// stand-in: without a key, answers come from rules, and the page says so. Beside each
// chat the page shows what the model was sent: the groups that are loaded and what
// their tools cost, against what all tools would have cost.
//
// The page listens on loopback alone and answers only requests that come from itself.
package demo
