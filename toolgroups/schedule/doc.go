// Package schedule is the group of tools that run the agent at given times, and the
// clock behind it.
//
// Tasks are kept in a storage.KV under their owner, with an index sorted by the time
// at which each is due. [Schedule.Run] sleeps until the first is. A run is claimed by a
// conditional write of its task, so that of several processes one has it; what is
// claimed stands in the task until it has been handed over under a key of its own, so
// that a crash in between neither loses nor doubles it.
//
// What was missed, because nothing was running or the clock has jumped: a one-time
// task is made up for whenever that is noticed. Of any other task the latest missed run is
// made up for if it is less than a day old; older ones are skipped and stand so in its
// history. A run that is made up for says when it was due.
//
// A daily or weekly task runs at most once on a local day, and one by a cron expression or
// at an interval never at a moment that is not after its last run, whatever the clocks do.
package schedule
