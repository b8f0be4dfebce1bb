package office

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// readChart returns the titles and the values that are saved with a chart of Office.
func (p *zipDocument) readChart(name string) (string, error) {
	c := chart{}
	err := p.scanOptional(name, func(s *scanner) error {
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			switch el.Name.Local {
			case "title":
				text, err := readChartText(s)
				if c.axis {
					c.axes = append(c.axes, text)
				} else {
					c.title = text
				}
				return err
			case "catAx", "valAx", "dateAx", "serAx":
				c.axis = true
				err := s.eachChild(read)
				c.axis = false
				return err
			case "ser":
				text, err := readSeries(s)
				c.series = append(c.series, text)
				return err
			}
			return s.eachChild(read)
		}
		return s.eachChild(read)
	})
	return c.String(), err
}

// chart is a chart in words.
type chart struct {
	title  string
	axes   []string
	series []string
	axis   bool // the title that follows is that of an axis
}

// String returns the chart on one line.
func (c chart) String() string {
	head := "[chart"
	if c.title != "" {
		head += ` "` + c.title + `"`
	}
	if len(c.axes) > 0 {
		head += `, axes "` + strings.Join(c.axes, `", "`) + `"`
	}
	if len(c.series) == 0 {
		return head + "]"
	}
	return head + ": " + strings.Join(c.series, "; ") + "]"
}

// readChartText returns the text of a title, which is written or that of a cell.
func readChartText(s *scanner) (string, error) {
	var words []string
	var read func(el xml.StartElement) error
	read = func(el xml.StartElement) error {
		switch el.Name.Local {
		case "p":
			text, _, err := readDrawingText(s, nil)
			words = append(words, text)
			return err
		case "v":
			text, err := s.readText()
			words = append(words, unescapeCharacters(text))
			return err
		}
		return s.eachChild(read)
	}
	err := s.eachChild(read)
	return oneLine(strings.Join(words, " ")), err
}

// maxPoints bounds the index of a point of a series.
const maxPoints = 100_000

// readSeries reads the points of a chart's series. Points without a value are left out of the file.
func readSeries(s *scanner) (string, error) {
	name, order := "", []int{}
	labels, values := map[int][]string{}, map[int][]string{}
	err := s.eachChild(func(el xml.StartElement) error {
		into := values
		switch el.Name.Local {
		case "tx":
			text, err := readChartText(s)
			name = text
			return err
		case "cat", "xVal":
			into = labels
		case "val", "yVal", "bubbleSize":
		default:
			return nil
		}
		at := 0
		var read func(el xml.StartElement) error
		read = func(el xml.StartElement) error {
			switch el.Name.Local {
			case "pt":
				n, err := strconv.Atoi(attr(el, "idx"))
				if err != nil || n < 0 || n > maxPoints {
					return nil
				}
				at = n
			case "v":
				text, err := s.readText()
				if len(values[at]) == 0 && len(labels[at]) == 0 {
					order = append(order, at)
				}
				into[at] = append(into[at], oneLine(unescapeCharacters(text)))
				return err
			}
			return s.eachChild(read)
		}
		return s.eachChild(read)
	})
	var points []string
	for _, at := range order {
		if len(values[at]) > 0 {
			points = append(points, strings.Join(append(labels[at], strings.Join(values[at], " size ")), " "))
		}
	}
	return strings.TrimPrefix(name+": ", ": ") + strings.Join(points, ", "), err
}
