// Package telegram connects the bot to Telegram.
//
// It polls the Bot API for updates and confirms them only once the inbox has them
// on disk: the offset moves after Accept, never before. An update that cannot be
// decoded is logged and skipped by itself, so that it cannot block those behind it.
// Presses of buttons go the same way as messages. A press that cannot be one of the
// bot's own buttons is answered here and goes no further.
//
// The poll loop never gives up: it waits out outages and other programs that poll with
// the same token, and [Platform.Health] says what it waits for. A watchdog makes the
// connections anew when the machine has slept, and every poll that fails does, too.
//
// Answers are sent as Telegram's HTML, and as plain text where Telegram refuses the
// HTML. What a model writes mentions nobody. The client library carries the requests,
// but its errors contain the bot's token: they are taken apart at the one place where
// they enter, and nothing else in this package sees them.
//
// There is no rate limit until Telegram asks for one. Then its chat, and no other,
// keeps still for as long as it was asked to and slower for some minutes; only where
// several chats are refused within seconds, all go slower. Nothing is sent during a
// penalty, and signs of work are left out while messages wait.
//
// Files go out as photos where Telegram takes them as such, else as documents, by
// the same rules as texts.
package telegram
