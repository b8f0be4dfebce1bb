package core

import (
	"context"
	"strings"
	"time"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Layouts of get_current_time.
const (
	isoLayout   = "2006-01-02T15:04:05.000-07:00"
	humanLayout = "Monday, January 2, 2006 at 3:04:05 PM MST"
)

type timeArgs struct {
	Timezone string `json:"timezone"`
	Format   string `json:"format"`
}

func (t *tools) currentTime(_ context.Context, _ toolgroups.Call, in timeArgs) (toolgroups.Result, error) {
	location := t.location
	if name := strings.TrimSpace(in.Timezone); name != "" {
		named, err := time.LoadLocation(name)
		if err != nil {
			return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution,
				"Unknown time zone '%s'. Use an IANA name such as Europe/Berlin.", files.Line(name))
		}
		location = named
	}
	layout := isoLayout
	if in.Format == "human_readable" {
		layout = humanLayout
	}
	return toolgroups.Result{Text: t.now().In(location).Format(layout)}, nil
}
