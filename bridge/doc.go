// Package bridge connects the platforms and the agent. It takes each message that a platform delivers,
// checks that its sender may talk to the bot, stores it as a job, answers the jobs of a chat one after
// another and those of different chats concurrently, and delivers the answers.
//
// A message is accepted only when its job is on disk; only then may the platform confirm it. From then
// on the job is carried to its end, across crashes and restarts: if it had not begun, it is run; if it
// had, its turn continues where the log ends; if it was answered, unsent parts are sent. A part whose
// sending was cut off, so that it is unknown whether it arrived, is sent once more and marked as a
// possible repeat.
//
// The parts of an answer are its texts, followed by the files that tools made for it. A file that
// cannot be sent is replaced by a line that says why.
package bridge
