package interact

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"oneclaw/agent"
	"oneclaw/bridge/provenance"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/guard"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// addressCall is a call of a reply whose addresses a person has to be asked about.
type addressCall struct {
	call    toolgroups.Call
	tool    toolgroups.Tool
	mail    bool
	why     string
	hash    string // as in [receipts.Approval.ShownHash]
	address provenance.Address
}

// input returns what the model was shown before a call.
func (g *Gate) input(call toolgroups.Call, shown agent.Input) *provenance.Input {
	return &provenance.Input{Input: shown, User: call.User, Tool: g.cfg.Tool}
}

// judgeAddresses returns why a call has to ask before it fetches its addresses; nil if it may fetch them. Both have a
// cost unless a person sees the card. A refusal is the reason for which it may not, whoever asks.
func (g *Gate) judgeAddresses(j *queue.Run, in *provenance.Input, call toolgroups.Call, tool toolgroups.Tool) (asks *addressCall, cost agent.Spent, refusal string) {
	if !tool.Fetches {
		return nil, cost, ""
	}
	_, spent := in.Spending.Of(call.ID)
	_, fromHook := g.hookHosts(j) // whose hosts may refuse any of them
	for _, a := range provenance.AddressesOf(tool, string(call.Arguments)) {
		verdict, refusal := g.judge(j, in, a, spent.Plus(cost))
		if refusal != "" {
			return nil, cost, refusal
		}
		if cost = cost.Plus(verdict.Cost); verdict.Asks {
			cost = cost.Plus(agent.Spent{Opened: 1, Composed: 1})
		}
		if verdict.Asks && (asks == nil || asks.mail) { // what the model composed weighs more
			asks = &addressCall{call: call, tool: tool, mail: verdict.Mail, why: verdict.Why, hash: agent.Hash(tool.Name, string(call.Arguments)), address: a}
		}
		if asks != nil && !asks.mail && !fromHook {
			break // the card shows the others, and each takes a walk over the conversation
		}
	}
	return asks, cost, ""
}

// keepsComposed reports whether a call would keep an address that would ask, for later turns or in a person's account,
// where it would count as written down.
func (g *Gate) keepsComposed(in *provenance.Input, call toolgroups.Call, tool toolgroups.Tool) bool {
	if !tool.Outlives && (!tool.Personal || tool.Effect == toolgroups.ReadOnly) {
		return false
	}
	return slices.ContainsFunc(provenance.AddressesKept(string(call.Arguments)), func(a provenance.Address) bool {
		if a.HostIn(g.cfg.Hosts) {
			return false
		}
		v := in.Judge(a, agent.Spent{})
		// What was composed of a few plain words would be counted no more when it is opened.
		return v.Cost.Composed > 0 || v.Asks
	})
}

// hookHosts returns the hosts that a turn of a webhook reaches: those that its instructions name, and the operator's. ok
// is false in other turns.
func (g *Gate) hookHosts(j *queue.Run) (hosts []string, ok bool) {
	task := turn.TaskOf(j)
	if task == nil || task.Hook == "" {
		return nil, false
	}
	return slices.Concat(task.Hosts, g.cfg.Hosts), true
}

// judge judges one address.
func (g *Gate) judge(j *queue.Run, in *provenance.Input, a provenance.Address, spent agent.Spent) (v provenance.Verdict, refusal string) {
	if hosts, ok := g.hookHosts(j); ok {
		if !a.HostIn(hosts) {
			return v, "the instructions of this webhook do not name the host " + cmp.Or(a.Hostname(), "of "+a.String())
		}
		return v, ""
	}
	if a.HostIn(g.cfg.Hosts) {
		return v, ""
	}
	return in.Judge(a, spent), ""
}

// maxScriptAddresses bounds the addresses that a run of a script opens while the conversation holds words of
// others, who could learn from the choice among them.
const maxScriptAddresses = 10

// limit returns the function that adds to the context of a call's tool what it may fetch.
func (g *Gate) limit(j *queue.Run, in *provenance.Input, call string) func(context.Context) context.Context {
	check := g.checkAddress(j, in, call)
	hosts, fromHook := g.hookHosts(j)
	return func(ctx context.Context) context.Context {
		if fromHook { // also where a page of such a host leads
			ctx = guard.WithHosts(ctx, func(host string) bool { return provenance.HostMatches(host, hosts) })
		}
		return toolgroups.WithAddressCheck(ctx, check)
	}
}

// checkAddress returns the function that decides on the addresses that a script of a call fetches.
func (g *Gate) checkAddress(j *queue.Run, in *provenance.Input, call string) func(address string, others bool) error {
	var opened atomic.Int64
	_, holds := in.HoldsOthers()
	reading := *in
	reading.ScriptRead = true
	return func(address string, others bool) error {
		if opened.Add(1) > maxScriptAddresses && (others || holds) {
			return toolgroups.Errorf(toolgroups.CodeDenied, "A script opens at most %d addresses while it or the conversation holds words of others. Fetch the others with webfetch.", maxScriptAddresses)
		}
		in := in
		if others {
			in = &reading
		}
		a, ok := provenance.Parse(address)
		if !ok {
			return nil // the request will say what is wrong with it
		}
		return in.Spending.Charge(call, func(spent agent.Spent) (agent.Spent, error) {
			verdict, refusal := g.judge(j, in, a, spent)
			switch {
			case refusal != "":
				return spent, toolgroups.Errorf(toolgroups.CodeDenied, "Not fetched: %s.", refusal)
			case verdict.Asks:
				return spent, toolgroups.Errorf(toolgroups.CodeDenied,
					"A script cannot fetch this address, because the conversation holds words of others, or the script has read some, and neither the conversation nor, before them, the code names it, or because too many were opened. Fetch it with webfetch, which asks the user.")
			}
			return verdict.Cost, nil
		})
	}
}

// isShownWithOthers reports whether the card of an earlier call of the reply shows a request as well, and then sets it
// as that of the request.
func (g *Gate) isShownWithOthers(ctx context.Context, j *queue.Run, position string, asked *receipts.Approval) (bool, error) {
	for _, a := range turn.WorkOf(j).Approvals {
		if !strings.HasPrefix(a.Call, position+"/") || a.Question {
			continue
		}
		kept, err := g.cfg.Cards.Get(ctx, a.CardToken)
		if err != nil {
			return false, err
		}
		if kept == nil {
			continue
		}
		r, err := decodeRequest(kept.Card)
		if err != nil {
			return false, err
		}
		if slices.Contains(r.Hashes, asked.ShownHash) {
			asked.CardToken = a.CardToken
			return true, nil
		}
	}
	return false, nil
}

// sameReply returns the calls of the reply of a call that ask about their addresses for the same reason, as many as
// a person can check at once: one card asks about all of them.
func (g *Gate) sameReply(j *queue.Run, in *provenance.Input, first *addressCall) []*addressCall {
	all := []*addressCall{first}
	for _, c := range in.Reply() {
		tool, ok := g.cfg.Tool(c.EffectiveTool())
		if !ok || !tool.Fetches {
			continue
		}
		call := toolgroups.Call{ID: c.ID, Name: tool.Name, Arguments: json.RawMessage(c.EffectiveArguments()), Scope: first.call.Scope}
		if !tool.ChecksArguments {
			valid, fault := toolgroups.ValidateArguments(tool, call.Arguments)
			if fault != nil {
				continue
			}
			call.Arguments = valid
		}
		if policy := g.cfg.Policy(call, tool); policy.Rule != Allow || policy.ByName {
			continue
		}
		if own, _ := in.Spending.Of(c.ID); own != (agent.Spent{}) {
			continue // it was allowed
		}
		asks, _, _ := g.judgeAddresses(j, in, call, tool)
		if asks != nil && asks.why == first.why && !slices.ContainsFunc(all, func(o *addressCall) bool { return o.hash == asks.hash }) {
			all = append(all, asks)
		}
	}
	slices.SortFunc(all, func(x, y *addressCall) int { return strings.Compare(x.hash, y.hash) })
	var together []*addressCall
	size := 0
	for _, one := range all {
		size += utf8.RuneCount(one.call.Arguments)
		if size > maxArguments && slices.Contains(together, first) {
			break
		}
		if size > maxArguments {
			together, size = nil, utf8.RuneCount(one.call.Arguments)
		}
		together = append(together, one)
	}
	return together
}

// addressArguments formats the calls of a card completely and exactly, as Markdown. It returns false if
// they are too long.
func addressArguments(all []*addressCall) (string, bool) {
	var text strings.Builder
	for _, one := range all {
		arguments, whole := formatCall(one.tool, one.call.Arguments)
		if !whole {
			return "", false
		}
		if len(all) > 1 {
			text.WriteString("**" + wording.InlineCode(one.tool.Name) + "**\n\n")
		}
		text.WriteString(arguments + "\n\n")
	}
	return strings.TrimSpace(text.String()), true
}

// lastingAddress returns the lasting approval that would cover what an address card asks about: the pages
// in the folder of the address, or exactly this call; for links of mails all of them.
func (g *Gate) lastingAddress(j *queue.Run, asks *addressCall) *LastingApproval {
	tool, log := asks.tool, asks.call.Session
	if !isAttended(j, asks.call) {
		return nil
	}
	if asks.mail {
		return g.newLasting(log, j, asks.call, tool, "links of mails that I read here", "mail")
	}
	if folder, ok := asks.address.Folder(); ok && len(provenance.AddressesOf(tool, string(asks.call.Arguments))) == 1 && tool.Effect == toolgroups.ReadOnly {
		return g.newLasting(log, j, asks.call, tool, "pages directly in "+wording.InlineCode(folder)+" (they may redirect elsewhere)", folder)
	}
	return g.newLasting(log, j, asks.call, tool, "", "")
}
