// Package budget tracks model usage, by user, chat, day and month, and refuses calls without
// budget.
//
// [Ledger.Model] reserves the possible cost of a call, and replaces it by the real usage
// afterwards. A reservation that is not settled, because the program was killed during the call,
// expires. A call is admitted while the spent and reserved amounts are below the limit:
// concurrent calls exceed it by at most one reservation.
//
// [Ledger.Prepay] is for expensive calls that are never repeated, such as those that make pictures: it
// charges the expected usage before the call, so that a killed call is paid.
//
// A call's changes are one write, conditional on the versions that were read: even if several
// processes share the store, none decides on old accounts. Unlimited usage is first written as
// charges, and added to the accounts within about a second, each exactly once.
package budget
