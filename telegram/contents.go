package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"oneclaw/internal/markdown"
)

// contents are the parts of a message other than text and files, which are read as text.
type contents struct {
	Rich *struct {
		Blocks []richBlock `json:"blocks"`
	} `json:"rich_message"`
	Location *location `json:"location"`
	Venue    *struct {
		Location location `json:"location"`
		Title    string   `json:"title"`
		Address  string   `json:"address"`
	} `json:"venue"`
	Contact *struct {
		user
		Phone string `json:"phone_number"`
		Card  string `json:"vcard"`
	} `json:"contact"`
	Poll *struct {
		Question    string `json:"question"`
		Description string `json:"description"`
		Options     []struct {
			Text   string `json:"text"`
			Voters int    `json:"voter_count"`
		} `json:"options"`
		Voters int  `json:"total_voter_count"`
		Closed bool `json:"is_closed"`
	} `json:"poll"`
	Checklist *struct {
		Title string `json:"title"`
		Tasks []struct {
			Text string `json:"text"`
			Done int64  `json:"completion_date"`
		} `json:"tasks"`
	} `json:"checklist"`
	Dice *struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	} `json:"dice"`
}

type location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Accuracy  float64 `json:"horizontal_accuracy"`
	Live      int64   `json:"live_period"`
}

func (l *location) String() string {
	return strconv.FormatFloat(l.Latitude, 'f', -1, 64) + ", " + strconv.FormatFloat(l.Longitude, 'f', -1, 64)
}

// readContents reads the contents of a message besides text. Unexpected data does not affect the rest
// of the message, and is reported as unreadable.
func (m *message) readContents(raw json.RawMessage) {
	var c contents
	if json.Unmarshal(raw, &c) != nil {
		return
	}
	var w richWriter
	switch {
	case c.Rich != nil:
		w.blocks(c.Rich.Blocks, 0)
		m.inside = w.files
	case c.Venue != nil: // A venue has a location beside it, for older clients.
		w.write(fmt.Sprintf("[place: %s, %s (%v)]", tidy(c.Venue.Title), tidy(c.Venue.Address), &c.Venue.Location))
	case c.Location != nil:
		m.place = true
		w.write(c.Location.text())
	case c.Contact != nil:
		w.write(fmt.Sprintf("[contact: %s, %s]\n%s", c.Contact.name(), tidy(c.Contact.Phone), c.Contact.Card))
	case c.Poll != nil:
		p := c.Poll
		state := "poll"
		if p.Closed {
			state = "closed poll"
		}
		w.write(fmt.Sprintf("[%s: %s]\n%s", state, tidy(p.Question), p.Description))
		for _, o := range p.Options {
			w.line()
			w.write("- " + tidy(o.Text))
			if p.Voters > 0 {
				w.write(fmt.Sprintf(" (%d of %d votes)", o.Voters, p.Voters))
			}
		}
	case c.Checklist != nil:
		w.write("[checklist: " + tidy(c.Checklist.Title) + "]")
		for _, t := range c.Checklist.Tasks {
			w.line()
			w.write(checkbox(t.Done > 0) + tidy(t.Text))
		}
	case c.Dice != nil:
		w.write(fmt.Sprintf("[dice: %s shows %d]", tidy(c.Dice.Emoji), c.Dice.Value))
	}
	m.told, m.toldEntities = w.text.String(), w.entities
}

func (l *location) text() string {
	kind, accuracy := "location", ""
	if l.Live > 0 {
		kind = "live location"
	}
	if l.Accuracy > 0 {
		accuracy = fmt.Sprintf(", to within %.0f m", l.Accuracy)
	}
	return "[" + kind + ": " + l.String() + accuracy + "]"
}

func checkbox(done bool) string {
	if done {
		return "- [x] "
	}
	return "- [ ] "
}

// richBlock is a block of a rich message (core.telegram.org/bots/api#richblock). Unknown kinds are read
// by the fields that they share with others.
type richBlock struct {
	Type       string          `json:"type"`
	Text       json.RawMessage `json:"text"`
	Size       int             `json:"size"`
	Language   string          `json:"language"`
	Expression string          `json:"expression"`
	Summary    json.RawMessage `json:"summary"`
	Blocks     []richBlock     `json:"blocks"`
	Items      []struct {
		Label    string      `json:"label"`
		Blocks   []richBlock `json:"blocks"`
		Checkbox bool        `json:"has_checkbox"`
		Checked  bool        `json:"is_checked"`
	} `json:"items"`
	Cells [][]struct {
		Text json.RawMessage `json:"text"`
	} `json:"cells"`
	Location *location       `json:"location"`
	Buttons  []richButton    `json:"buttons"`
	Credit   json.RawMessage `json:"credit"`
	Caption  json.RawMessage `json:"caption"` // a rich text, or an object with one
	media
	VoiceNote *file `json:"voice_note"`
}

// richButton is a button, of which only an address is kept.
type richButton struct {
	Text json.RawMessage `json:"text"`
	URL  string          `json:"url"`
}

// maxRichDepth bounds the nesting; Telegram allows 16 levels.
const maxRichDepth = 32

// richWriter converts a rich message to the Markdown that models read, with the entities of mentions
// and links.
type richWriter struct {
	text     strings.Builder
	units    int // UTF-16 code units of text
	entities []entity
	files    []media
	// prefix begins each line, first the next line instead; begun says that the line has its prefix.
	prefix, first string
	begun         bool
}

func (w *richWriter) add(s string) {
	w.text.WriteString(s)
	w.units += markdown.Units(s)
}

// write adds a text, with the prefix of its lines.
func (w *richWriter) write(s string) {
	for i, part := range strings.Split(s, "\n") {
		if i > 0 {
			w.add("\n")
			w.begun = false
		}
		if part == "" {
			continue
		}
		if !w.begun {
			w.begin()
		}
		w.add(part)
	}
}

func (w *richWriter) begin() {
	w.add(cmp.Or(w.first, w.prefix))
	w.begun, w.first = true, ""
}

// line begins a new line, unless one has just begun.
func (w *richWriter) line() {
	if w.begun {
		w.write("\n")
	}
}

// within writes something whose first line begins with first, and all further ones with rest.
func (w *richWriter) within(first, rest string, write func()) {
	w.line()
	outer := w.prefix
	w.first = cmp.Or(w.first, outer) + first
	w.prefix += rest
	write()
	if w.first != "" { // there was nothing to write
		w.begin()
	}
	w.line()
	w.prefix = outer
}

func (w *richWriter) blocks(all []richBlock, depth int) {
	if depth > maxRichDepth {
		return
	}
	for i := range all {
		w.line()
		w.block(&all[i], depth)
	}
}

func (w *richWriter) block(b *richBlock, depth int) {
	body := func() {
		w.inline(b.Text, depth)
		w.line()
		w.blocks(b.Blocks, depth+1)
	}
	switch b.Type {
	case "heading":
		w.write(strings.Repeat("#", min(max(b.Size, 1), 6)) + " ")
		body()
	case "pre":
		w.write("```" + tidy(b.Language) + "\n")
		body()
		w.line()
		w.write("```")
	case "blockquote", "expandable_blockquote", "pullquote":
		w.within("> ", "> ", body)
	case "divider":
		w.write("---")
	case "map":
		if b.Location != nil {
			w.write("[map: " + b.Location.String() + "]")
		}
	case "video":
		w.write("[video, which I cannot see]")
	default:
		w.inline(b.Summary, depth)
		w.line()
		w.write(b.Expression)
		body()
	}
	for _, item := range b.Items {
		label := cmp.Or(tidy(item.Label), "-") + " "
		if item.Checkbox {
			label = checkbox(item.Checked)
		}
		w.within(label, strings.Repeat(" ", len(label)), func() { w.blocks(item.Blocks, depth+1) })
	}
	for _, row := range b.Cells {
		w.line()
		w.write("|")
		for _, cell := range row {
			w.write(" ")
			w.inline(cell.Text, depth)
			w.write(" |")
		}
	}
	for _, button := range b.Buttons {
		w.line()
		w.button(button, depth)
	}
	for _, below := range []json.RawMessage{b.Caption, b.Credit} {
		w.line()
		w.inline(below, depth)
	}
	if b.Voice == nil {
		b.Voice = b.VoiceNote
	}
	w.files = append(w.files, b.media)
}

func (w *richWriter) button(b richButton, depth int) {
	w.write("[")
	w.linked(b.URL, func() { w.inline(b.Text, depth) })
	w.write("]")
}

// linked writes a text, with its address if it has one.
func (w *richWriter) linked(address string, write func()) {
	from := w.units
	write()
	if address != "" && w.units > from {
		w.entities = append(w.entities, entity{Type: "text_link", Offset: from, Length: w.units - from, URL: address})
	}
}

// inline writes a rich text: a string, a list of rich texts, or an object around one
// (core.telegram.org/bots/api#richtext).
func (w *richWriter) inline(raw json.RawMessage, depth int) {
	if len(raw) == 0 || depth > maxRichDepth {
		return
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // part of a message that was decoded already
		w.write(s)
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, one := range list {
			w.inline(one, depth+1)
		}
	case '{':
		var t struct {
			Type        string          `json:"type"`
			Text        json.RawMessage `json:"text"`
			Credit      json.RawMessage `json:"credit"` // of a caption
			Alternative string          `json:"alternative_text"`
			Expression  string          `json:"expression"`
			URL         string          `json:"url"`
			User        *user           `json:"user"`
			Button      richButton      `json:"button"`
		}
		if json.Unmarshal(raw, &t) != nil {
			return
		}
		w.write(t.Alternative + t.Expression)
		if t.Type == "button" {
			w.button(t.Button, depth+1)
		}
		from := w.units
		w.linked(t.URL, func() { w.inline(t.Text, depth+1) })
		if t.Type == "mention" || t.Type == "text_mention" {
			w.entities = append(w.entities, entity{Type: t.Type, Offset: from, Length: w.units - from, User: t.User})
		}
		if present(t.Credit) {
			w.write(" ")
			w.inline(t.Credit, depth+1)
		}
	}
}

// isEmpty reports whether no part of a message can be read as text.
func (m *message) isEmpty() bool {
	return m.Text == "" && strings.TrimFunc(m.told, unicode.IsSpace) == ""
}
