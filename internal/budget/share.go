package budget

import (
	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// The kinds of accounts without limits: the usage of each model, and for each tool group the
// calls and estimated tokens of its tools.
const (
	KindModel Kind = "model"
	KindGroup Kind = "group"
)

// maxShareName bounds the name of a model or a group in a key, in bytes.
const maxShareName = 200

// share is a part of a call's usage that has its own account.
type share struct {
	account Account
	sum     Sum
}

// shares returns what a call is charged to besides the accounts of its payer.
func (m *model) shares(used Sum, tools []toolgroups.Tool, calls []agent.Call) []share {
	all := []share{{Account{KindModel, bounded(m.name)}, used}}
	if m.ledger.cfg.GroupOf == nil {
		return all
	}
	groups, sizes, whole := make(map[string]Sum), make(map[string]int64), int64(0)
	for _, t := range tools {
		size := int64(len(t.Name) + len(t.Description) + len(t.Parameters))
		sizes[m.ledger.cfg.GroupOf(t.Name)] += size
		whole += size
	}
	for group, size := range sizes {
		groups[group] = Sum{Tools: used.Tools * size / max(whole, 1)}
	}
	for _, call := range calls {
		group := m.ledger.cfg.GroupOf(call.Runs())
		groups[group] = groups[group].plus(Sum{Calls: 1})
	}
	for group, sum := range groups {
		if group != "" {
			all = append(all, share{Account{KindGroup, bounded(group)}, sum})
		}
	}
	return all
}

func bounded(name string) string { return name[:min(len(name), maxShareName)] }
