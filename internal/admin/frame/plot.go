package frame

import (
	"math"
	"strconv"
	"time"
)

// Bars is a bar chart of values by day, the oldest first.
type Bars struct {
	// Title is what the chart shows.
	Title  string
	Labels []string
	Values []float64
	// Format formats a value.
	Format func(float64) string
}

// Steps is a waterfall chart: what happened when.
type Steps struct {
	Title string
	Rows  []Step
}

// Step is a row of a waterfall chart.
type Step struct {
	Name     string
	From, To time.Time
	// Kind is wait, model, tool or delivery.
	Kind string
	Note string
}

// The size of a plot, in its own units.
const (
	plotWidth, plotHeight = 480.0, 150.0
	plotRight             = 14.0 // room for half of the last label
	plotFoot, plotHead    = 18.0, 2.0
	stepHeight            = 24.0
	stepsWidth, stepsLeft = 720.0, 200.0
)

// Box is a bar of a plot.
type Box struct {
	X, Y, Width, Height string
	Kind                string
	// Title is its tooltip; Label is at TextX, TextY.
	Title, Label string
	TextX, TextY string
}

// Highest formats the largest value.
func (b Bars) Highest() string {
	top := 0.0
	for _, v := range b.Values {
		top = max(top, v)
	}
	return b.Format(top)
}

// Boxes returns the bars with their positions.
func (b Bars) Boxes() []Box {
	top := 0.0
	for _, v := range b.Values {
		top = max(top, v)
	}
	boxes := make([]Box, len(b.Values))
	wide := (plotWidth - plotRight) / float64(max(len(b.Values), 1))
	room := plotHeight - plotFoot - plotHead
	every := int(math.Ceil(float64(len(b.Values)) / 8))
	for i, v := range b.Values {
		high := 0.0
		if top > 0 && v > 0 {
			high = max(v/top*room, 1)
		}
		boxes[i] = Box{
			X: svgNumber(float64(i)*wide + wide*0.12), Y: svgNumber(plotHead + room - high), Width: svgNumber(wide * 0.76), Height: svgNumber(high),
			Title: b.Labels[i] + ": " + b.Format(v), TextX: svgNumber((float64(i) + 0.5) * wide), TextY: svgNumber(plotHeight - 4),
		}
		if (len(b.Values)-1-i)%every == 0 {
			boxes[i].Label = b.Labels[i]
		}
	}
	return boxes
}

// Height returns the height of the plot.
func (s Steps) Height() string { return svgNumber(float64(len(s.Rows))*stepHeight + 4) }

// timeRange returns the first beginning and the last end.
func (s Steps) timeRange() (from, to time.Time) {
	for i, one := range s.Rows {
		if i == 0 || one.From.Before(from) {
			from = one.From
		}
		if i == 0 || one.To.After(to) {
			to = one.To
		}
	}
	return from, to
}

// Boxes returns the rows with their positions.
func (s Steps) Boxes() []Box {
	from, to := s.timeRange()
	whole := max(to.Sub(from).Seconds(), 0.001)
	room := stepsWidth - stepsLeft - 8
	boxes := make([]Box, len(s.Rows))
	for i, one := range s.Rows {
		y := float64(i) * stepHeight
		x := stepsLeft + one.From.Sub(from).Seconds()/whole*room
		boxes[i] = Box{
			X: svgNumber(x), Y: svgNumber(y + 5), Width: svgNumber(max(one.To.Sub(one.From).Seconds()/whole*room, 2)), Height: svgNumber(stepHeight - 8),
			Kind: one.Kind, Label: one.Name, Title: one.Name + ": " + DurationText(one.To.Sub(one.From)), TextX: "0", TextY: svgNumber(y + 16),
		}
	}
	return boxes
}

// Table returns the same data as a table.
func (s Steps) Table() *Table {
	from, _ := s.timeRange()
	t := &Table{Name: "steps", Caption: s.Title, Columns: Columns("Step", "#After", "#Took", "What"), Collapsed: true}
	for _, one := range s.Rows {
		t.Rows = append(t.Rows, []Cell{Text(one.Name), Number(DurationText(one.From.Sub(from))), Number(DurationText(one.To.Sub(one.From))), Text(one.Note)})
	}
	return t
}

// DurationText formats a duration; a negative one is 0.
func DurationText(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(max(d, 0).Milliseconds(), 10) + " ms"
	case d < 2*time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

func svgNumber(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
