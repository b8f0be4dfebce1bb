// Package learning lets operators learn from use: it writes the conversations that people
// judged with 👍 or 👎 as cases, without names and secrets and only where people know of it and
// have not said no; it reads such files; and it says what a conversation would have cost.
package learning
