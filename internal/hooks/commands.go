package hooks

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/provenance"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	// maxTask bounds the task of a hook, in characters.
	maxTask = 4000
	// defaultTask is the task of a hook without one.
	defaultTask = "Tell the chat in one or two sentences what has happened. If it is nothing that a person would want to know, tell nothing."
	// maxShown bounds a task in the list, in characters.
	maxShown = 80
)

const usage = "`/hook new NAME WHAT TO DO` makes a webhook for this chat, `/hook remove NAME` takes one away, `/hook` lists them. " +
	"What to do is what I am asked with each delivery, such as: tell me in one line which check has failed."

// Commands returns the chat commands for webhooks.
func (h *Hooks) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "hook", Description: "Webhooks of this chat: other programs can give me tasks"},
		Run:         h.runCommand,
	}}
}

func (h *Hooks) runCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(call.Args), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case h.cfg.PublicURL == "" && word == "new":
		return "Webhooks need a public address for me. My operator has to set `public_url` (`ONECLAW_PUBLIC_URL`).", nil
	case !call.Direct && call.Role < toolgroups.RoleAdmin:
		return "Sorry, in a shared chat /hook is for my administrators.", nil
	case word == "" || word == "list":
		return h.list(ctx, call)
	case word == "new":
		return h.create(ctx, call, rest)
	case word == "remove":
		return h.remove(ctx, call, rest)
	}
	return usage, nil
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,31}$`)

func (h *Hooks) create(ctx context.Context, call bridge.CommandCall, args string) (string, error) {
	name, task := args, ""
	if i := strings.IndexFunc(args, func(r rune) bool { return r == ' ' || r == '\n' }); i >= 0 {
		name, task = args[:i], strings.TrimSpace(args[i:])
	}
	if !namePattern.MatchString(name) {
		return "A webhook needs a name of letters, digits and hyphens, at most 32. " + usage, nil
	}
	if n := utf8.RuneCountInString(task); n > maxTask {
		return fmt.Sprintf("The instructions have %d characters; at most %d are allowed.", n, maxTask), nil
	}
	all, err := h.ownedBy(ctx, call.Owner)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(one hook) bool { return one.Name == name }) {
		return fmt.Sprintf("There is a webhook **%s** already. `/hook remove %s` removes it.", name, name), nil
	}
	if len(all) >= h.cfg.MaxHooks {
		return fmt.Sprintf("There are %d webhooks, which is the limit. Remove one that you no longer need.", len(all)), nil
	}
	if task == "" {
		task = defaultTask
	}
	one := hook{
		ID: newID(), Name: name, Task: task, Owner: call.Owner, Chat: call.Chat, User: call.User, Direct: call.Direct,
		Created: h.cfg.Now(), PageUntil: h.cfg.Now().Add(pageAge), rev: storage.Absent,
	}
	token := newID()
	one.PageTokenHash, one.Secret = hashOf(token), h.sealer.Seal(keyOf(one.ID), []byte(newSecret()))
	if err := call.Author.Record(ctx, "hook new", name); err != nil {
		return "", err
	}
	if err := h.write(ctx, one); err != nil {
		return "", err
	}
	text := fmt.Sprintf("The webhook **%s** is ready.\n\n- Address: %s\n- Secret: %s shows it once, within 15 minutes.", name, h.address(one.ID), h.address(one.ID)+"/secret/"+token)
	if !call.Direct {
		text += " Everyone here can open that page; only the first one sees the secret."
	}
	return text + fmt.Sprintf("\n\nWith each delivery I do this, in your name: “%s”%s\n\n`/hook remove %s` removes it.", plainText(task), h.mayOpen(task), name), nil
}

// mayOpen returns a sentence that names the hosts that the runs of a task may open without a question, if there are any.
func (h *Hooks) mayOpen(task string) string {
	var hosts []string
	for _, host := range provenance.Hosts(task) {
		hosts = append(hosts, wording.InlineCode(wording.RevealHost(host)))
	}
	if len(h.cfg.ApprovalHosts) > 0 {
		listed := "the hosts of my operator's `approval_hosts`"
		if len(hosts) > 0 {
			listed = "and " + listed
		}
		hosts = append(hosts, listed)
	}
	if len(hosts) == 0 {
		return ""
	}
	return " It may open " + strings.Join(hosts, ", ") + "."
}

func (h *Hooks) address(id string) string { return h.cfg.PublicURL + Path + id }

// plainText returns the beginning of a text on one line, without Markdown.
func plainText(text string) string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("\\`*_[]<>~|&!#", r) {
			return -1
		}
		return r
	}, text)
	return wording.Clip(strings.Join(strings.Fields(text), " "), maxShown)
}

func (h *Hooks) list(ctx context.Context, call bridge.CommandCall) (string, error) {
	all, err := h.ownedBy(ctx, call.Owner)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "There are no webhooks here. " + usage, nil
	}
	var text strings.Builder
	text.WriteString("Webhooks:\n\n")
	for _, one := range all {
		fmt.Fprintf(&text, "- **%s**: “%s”%s Made by `%s` on %s.", one.Name, plainText(one.Task), h.mayOpen(one.Task), one.User, one.Created.UTC().Format("2 January 2006"))
		if one.Deliveries > 0 {
			fmt.Fprintf(&text, " %d taken, the last on %s: %s.", one.Deliveries, one.LastDelivery.UTC().Format("2 January 15:04 (MST)"), one.Outcome)
		} else {
			text.WriteString(" Nothing has come yet.")
		}
		fmt.Fprintf(&text, " %s\n", h.address(one.ID))
	}
	text.WriteString("\n" + usage)
	return text.String(), nil
}

func (h *Hooks) remove(ctx context.Context, call bridge.CommandCall, name string) (string, error) {
	all, err := h.ownedBy(ctx, call.Owner)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(one hook) bool { return one.Name == name || one.ID == name })
	if i < 0 {
		return "There is no such webhook here. /hook lists them.", nil
	}
	if err := call.Author.Record(ctx, "hook remove", all[i].Name); err != nil {
		return "", err
	}
	if err := h.delete(ctx, all[i].ID); err != nil {
		return "", err
	}
	return fmt.Sprintf("The webhook **%s** is removed. Posts to its address are now refused.", all[i].Name), nil
}
