package admin

import (
	"context"

	"oneclaw/internal/admin/frame"
	"oneclaw/internal/telemetry"
)

// Setting is one in effect.
type Setting struct {
	Name string
	// Value is without secrets, From where it comes from.
	Value, From string
	// Changed says that it is not its default.
	Changed bool
}

// Program is what the program was told, and what it told.
type Program struct {
	// Settings returns what is in effect.
	Settings func(ctx context.Context) ([]Setting, error)
	// Incidents returns the last warnings and errors of the log, the newest first.
	Incidents func() []telemetry.Error
}

func (p *page) settings(ctx context.Context, _ frame.Request) (frame.Page, error) {
	all, err := p.Program.Settings(ctx)
	if err != nil {
		return frame.Page{}, err
	}
	columns := frame.Columns("Setting", "Value", "From")
	set := &frame.Table{Name: "set", Caption: "Settings that somebody has set", Columns: columns, Empty: "All have their defaults."}
	defaults := &frame.Table{Name: "defaults", Caption: "Settings with their defaults", Columns: columns, Empty: "None."}
	for _, s := range all {
		t := defaults
		if s.Changed {
			t = set
		}
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(s.Name), frame.Text(s.Value), frame.Text(s.From)})
	}
	return frame.Page{
		Lead:     "What this process runs with. Secrets are masked.",
		Sections: []frame.Section{{Title: "Set", Table: set}, {Title: "Defaults", Table: defaults}},
	}, nil
}

func (p *page) incidents(context.Context, frame.Request) (frame.Page, error) {
	t := &frame.Table{Name: "incidents", Caption: "The last warnings and errors of the log, the newest first", Columns: frame.Columns("When", "Level", "What", "Details"), Empty: "Nothing since the program began."}
	for _, one := range p.Program.Incidents() {
		level := frame.Cell{Text: one.Level.String()}
		if level.Text == "ERROR" {
			level.Mood = frame.Bad
		}
		t.Rows = append(t.Rows, []frame.Cell{frame.At(one.At), level, frame.Text(one.Text), frame.Text(one.Details)})
	}
	return frame.Page{
		Lead:     "Of this process, since it began; the log has all of them. No message is in it.",
		Sections: []frame.Section{{Table: t}},
	}, nil
}
