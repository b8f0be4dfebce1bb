// Package budget keeps account of what models use, by user, chat, day and month, and
// refuses calls for which no budget is left.
//
// [Ledger.Model] reserves what a call may come to, and puts the real usage in its place
// after the call. A reservation that is not settled, because the program was killed in
// the middle of the call, ends by itself. A call is let through as long as what is spent
// and reserved has not reached the limit: calls at the same time exceed it by one
// reservation at most.
//
// What a call changes is written in one step, each account on the version that was read:
// of several processes with one store none decides on old accounts. What nothing bounds is written
// as charges first, and added to the accounts within a second or so, each once whatever happens.
package budget
