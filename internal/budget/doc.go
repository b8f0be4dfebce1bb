// Package budget counts what people use of paid services, by user, chat, day and month, and refuses
// calls without budget.
//
// What it promises to a person: each call counts once, for the person on whose behalf it was made,
// whatever is killed, taken over or away meanwhile; and a call is made only while what is spent and what
// running calls may cost are below each limit. So the calls of a process exceed a limit by less than the
// possible cost of one. Replicas do not see each other's running calls, and exceed it by these, too.
//
// Everything that is paid for:
//
//   - The replies of a turn, also of a task, and summaries: the charge is in the write that stores the
//     message ([TurnCharges]). A reply that is lost before that is not charged: the model is asked again.
//   - What has no message (a broken stream, /stop, a model that another replaced, a transcription, a
//     search): the charge is written before the call returns.
//   - Pictures and speech, which are not made again after a crash: the charge is written before the call,
//     and corrected after it ([Ledger.Prepay]).
//
// A charge is inserted under a key of its own: to insert it again is a conflict, so a write of unknown
// outcome can be repeated. A second later charges are added to the sums of the accounts, in the write that
// deletes them. A limit reads the sums, the charges that are not added yet, and those in memory that the
// store may not have; reservations are in memory, too.
package budget
