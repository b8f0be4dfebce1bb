// Package skills keeps instructions that the model fetches when needed.
//
// A skill is a folder with a file SKILL.md: a front matter that says what the skill is for, and
// a Markdown body that says how it is done. The system prompt has one line for each
// ([Library.Section]); load_skill returns the body. Some skills are built in; a folder of the
// administrator adds others and may replace them by name. That folder is scanned each time, so a
// change takes effect with the next message.
package skills
