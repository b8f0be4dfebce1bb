package admin

import (
	"context"

	"oneclaw/internal/admin/frame"
)

// Setting is a setting in effect.
type Setting struct {
	Name string
	// Value contains no secrets. Source is where the value was set.
	Value, Source string
	// Changed reports whether the value differs from the default.
	Changed bool
}

// Program has the program's settings and errors.
type Program struct {
	// Settings returns the settings in effect.
	Settings func(ctx context.Context) ([]Setting, error)
	// Errors are the stored errors; nil if errors are not stored.
	Errors *ErrorStore
}

func (p *page) settings(ctx context.Context, _ frame.Request) (frame.Page, error) {
	all, err := p.Program.Settings(ctx)
	if err != nil {
		return frame.Page{}, err
	}
	columns := frame.Columns("Setting", "Value", "From")
	set := &frame.Table{Name: "set", Caption: "Changed settings", Columns: columns, Empty: "All have their defaults."}
	defaults := &frame.Table{Name: "defaults", Caption: "Settings with their defaults", Columns: columns, Empty: "None."}
	for _, s := range all {
		t := defaults
		if s.Changed {
			t = set
		}
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(s.Name), frame.Text(s.Value), frame.Text(s.Source)})
	}
	return frame.Page{
		Lead:     "What this process runs with. Secrets are masked.",
		Sections: []frame.Section{{Title: "Set", Table: set}, {Title: "Defaults", Table: defaults}},
	}, nil
}
