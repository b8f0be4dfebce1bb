// Package learning lets operators learn from use: it exports conversations with 👍 or 👎 feedback
// as cases, without names and secrets, and only if the users know of it and have not opted out;
// it reads such files; and it estimates what a conversation would have cost.
package learning
