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

// share is the usage of a call that is added to one account.
type share struct {
	Account Account `json:"account"`
	Sum     Usage   `json:"sum"`
}

// shares returns the parts of a call's usage that are charged to accounts of their own.
func (m *model) shares(used Usage, tools []toolgroups.Tool, calls []agent.Call) []share {
	all := []share{{Account{KindModel, clipName(m.name)}, used}}
	if m.ledger.cfg.GroupOf == nil {
		return all
	}
	groups, sizes, whole := make(map[string]Usage), make(map[string]int64), int64(0)
	for _, t := range tools {
		size := int64(len(t.Name) + len(t.Description) + len(t.Parameters))
		sizes[m.ledger.cfg.GroupOf(t.Name)] += size
		whole += size
	}
	for group, size := range sizes {
		groups[group] = Usage{ToolTokens: used.ToolTokens * size / max(whole, 1)}
	}
	for _, call := range calls {
		group := m.ledger.cfg.GroupOf(call.EffectiveTool())
		groups[group] = groups[group].plus(Usage{Calls: 1})
	}
	for group, sum := range groups {
		if group != "" {
			all = append(all, share{Account{KindGroup, clipName(group)}, sum})
		}
	}
	return all
}

func clipName(name string) string { return name[:min(len(name), maxShareName)] }
