package core

import (
	"context"
	"strings"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

type timeArgs struct {
	Timezone string `json:"timezone"`
	Format   string `json:"format"`
}

func (t *tools) currentTime(ctx context.Context, call toolgroups.Call, in timeArgs) (toolgroups.Result, error) {
	zone := strings.TrimSpace(in.Timezone)
	text, ok := toolgroups.FormatTime(t.cfg.Now().In(t.cfg.Location(ctx, call.Scope)), zone, in.Format)
	if !ok {
		return toolgroups.Result{}, toolgroups.OwnErrorf(toolgroups.CodeExecution,
			"Unknown time zone '%s'. Use an IANA name such as Europe/Berlin.", files.SingleLine(zone))
	}
	return toolgroups.Result{Text: text}, nil
}
