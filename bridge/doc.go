// Package bridge stands between the platforms and the agent. It takes each message
// that a platform delivers, checks that its sender may talk to the bot, puts it on
// disk as a job, has the jobs of a chat answered one after another and those of
// different chats side by side, and delivers the answers.
//
// A message is accepted only when its job is on disk; only then may the platform be
// told that it was received. From then on the job is carried to its end, across
// crashes and restarts: not begun, it is run; begun, its turn goes on where the log
// stops; answered, what has not been sent is sent. A part whose sending was cut off,
// so that it is unknown whether it arrived, is sent once more and marked as a
// possible repeat.
//
// The parts of an answer are its texts and, behind them, the files that tools made for
// it. A file that cannot be sent is replaced by a line that says why.
package bridge
