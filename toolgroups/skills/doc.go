// Package skills keeps instructions that the model fetches when needed.
//
// A skill is a folder with a file SKILL.md. Its front matter describes the purpose of the skill, and
// its Markdown body has the instructions. The system prompt has one line for each skill
// ([Library.Section]); load_skill returns the body. Some skills are built in. A skill in the
// administrator's folder replaces a built-in one with the same name. That folder is scanned on each
// use, so a change takes effect with the next message.
package skills
