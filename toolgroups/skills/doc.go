// Package skills keeps instructions that the model fetches when it needs them.
//
// A skill is a folder with a file SKILL.md: a front matter that says what the skill
// is for, and a Markdown body that says how it is done. The system prompt carries
// only a line for each ([Library.Section]); the body comes with a call of
// load_skill. Some skills are part of the program; a folder of the administrator's
// adds others and may replace those by name. That folder is looked at again each
// time, so that a change counts from the next message.
package skills
