// Package bridge connects the platforms and the agent. It takes each message that a platform delivers,
// checks that its sender may talk to the bot, stores it as a job, answers the jobs of a chat one after
// another and those of different chats concurrently, and delivers the answers.
//
// A message is accepted only when its job is on disk; only then may the platform confirm it. From then
// on the job is completed even across crashes and restarts. A job that had not begun is run, a turn
// that had begun continues where its log ends, and unsent parts of an answer are sent. If a send was
// cut off and its outcome is unknown, the part is sent once more and marked as a possible
// duplicate.
//
// The parts of an answer are its texts, followed by the files that tools made for it. A file that
// cannot be sent is replaced by a line that says why.
package bridge
