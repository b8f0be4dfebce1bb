package budget

import (
	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// The kinds of accounts that nothing bounds: what each model used, and of each tool group how
// often its tools were called and about how many tokens it took in requests.
const (
	KindModel Kind = "model"
	KindGroup Kind = "group"
)

// maxShareName bounds the name of a model or a group in a key, in bytes.
const maxShareName = 200

// share is a part of what a call used that has an account of its own.
type share struct {
	account Account
	sum     Sum
}

// shares are what a call is charged to beside the accounts of its payer.
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
