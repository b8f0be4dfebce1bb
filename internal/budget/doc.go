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
// All that happens on a day is in one log, with the whole state in between, so that it
// is read quickly after a restart. Appends expect a position: of several processes with
// one store none decides on an old state. When a day is over, its accounts are kept as a
// [Day] under a key, its log is dropped, and days older than [KeepDays] are forgotten.
package budget
