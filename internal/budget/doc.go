// Package budget keeps account of what models use, by user, chat, day and month, and
// refuses calls for which no budget is left.
//
// [Ledger.Model] wraps the model of a turn. Before each call it reserves what the call
// may come to, and it is refused where an account has reached its limit; after the call
// the real usage takes the place of the reservation. A reservation that nobody settles,
// because the program was killed in the middle of the call, ends by itself.
//
// A call is let through as long as what is spent and reserved has not reached the limit.
// So calls at the same time exceed it by one reservation at most, and the last call of a
// day is not refused because it might be the one too many.
//
// Each account of a day or month is a record of its own. What a call changes is written
// in one step, each record on the version that was read: of several processes with one
// store none decides on old accounts.
package budget
