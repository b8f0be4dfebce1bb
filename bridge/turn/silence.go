package turn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/provenance"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// textNothingToSay replaces the silence of a webhook's run, which is always shown.
const textNothingToSay = "I have looked at this delivery and have nothing to say about it."

// maxNamed bounds the calls that a line names.
const maxNamed = 5

// breakSilence returns the answer of a task. A task that may be silent stays so if it used only what was
// fixed and shown when it was made; otherwise its answer says what it used.
func (t *Runner) breakSilence(ctx context.Context, j *queue.Run, h *conversation.History, answer string) string {
	task := TaskOf(j)
	if task == nil || strings.TrimSpace(answer) != receipts.Silence || IsBackground(j) {
		return answer
	}
	if task.Hook != "" {
		return textNothingToSay
	}
	if !task.Quiet {
		return answer
	}
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		t.cfg.Log.Error("the calls of a silent run cannot be found, so it is not silent", "job", j.Key(), "err", err)
		return "I have nothing to tell, but cannot say what I used to find out."
	}
	used := t.unnamedUses(task, turn)
	if len(used) == 0 {
		return answer
	}
	more := ""
	if len(used) > maxNamed {
		more = ", and more"
	}
	return "There is nothing to tell, but I used more than the line of this schedule names: " + strings.Join(used[:min(len(used), maxNamed)], ", ") + more + "."
}

// unnamedUses describes the calls of a turn that ran and that its task does not name.
func (t *Runner) unnamedUses(task *receipts.Task, turn []agent.Message) (used []string) {
	ran := func(from int, call agent.Call) bool {
		for _, m := range turn[from+1:] {
			switch {
			case m.Role == agent.RoleAssistant:
				return false
			case m.CallID == call.ID && (m.Role == agent.RoleStarted || m.Role == agent.RoleTool && !m.NotRun):
				return true
			}
		}
		return false
	}
	for i, m := range turn {
		for _, call := range m.Calls {
			if !ran(i, call) {
				continue
			}
			tool, known := t.cfg.Tools().Tool(call.EffectiveTool())
			if !known {
				tool = toolgroups.Tool{Name: call.EffectiveTool()}
			}
			if toolgroups.Reserved(tool.Name) || tool.Name == toolgroups.LoadToolGroup || t.isNamed(task, tool, call) {
				continue
			}
			words := []string{wording.EscapeRevealed(toolgroups.DescribeCall(tool, json.RawMessage(call.EffectiveArguments()), t.cfg.Redact))}
			for _, a := range provenance.AddressesOf(tool, call.EffectiveArguments()) {
				words = append(words, "("+wording.InlineCode(wording.RevealHost(a.Hostname()))+")")
			}
			if line := strings.Join(words, " "); !slices.Contains(used, line) {
				used = append(used, line)
			}
		}
	}
	return used
}

// isNamed reports whether a task may make a call and then be silent: its tool or group is named, or it only
// reads, and either addresses at hosts that are named or nothing but the program's own words.
func (t *Runner) isNamed(task *receipts.Task, tool toolgroups.Tool, call agent.Call) bool {
	group, _ := t.cfg.Tools().GroupOf(tool.Name)
	if slices.Contains(task.Uses, tool.Name) || group != "" && slices.Contains(task.Uses, group) {
		return true
	}
	switch {
	case tool.Effect != toolgroups.ReadOnly, tool.External:
		return false
	case !tool.Fetches: // an address in an argument that it does not have says nothing of what it reads
		return tool.Origin == toolgroups.OriginOwn
	}
	addresses := provenance.AddressesOf(tool, call.EffectiveArguments())
	return len(addresses) > 0 && !slices.ContainsFunc(addresses, func(a provenance.Address) bool { return !a.HostIn(task.Hosts) })
}
