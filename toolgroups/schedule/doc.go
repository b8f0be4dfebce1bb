// Package schedule has the tools for scheduled tasks, which run the agent at given times, and
// the loop that starts them.
//
// Tasks are stored in a storage.KV under their owner, with an index sorted by due time.
// [Schedule.Run] sleeps until the first task is due. A process claims a run by a conditional write of
// its task, so that no other process submits it. The claim stays in the task until the run has been
// submitted under its own key, so that a crash in between neither loses nor repeats the run.
//
// Runs are missed if no process was running or the clock has jumped. A one-time task then runs as
// soon as the miss is noticed. For other tasks, the latest missed run is made up for if it is less
// than a day old; older ones are skipped and recorded as skipped in the history. A late run says
// when it was due.
//
// A daily or weekly task runs at most once per local day, and a cron or interval task never at a
// moment that is not after its last run, whatever the clocks do.
package schedule
