package telegram

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oneclaw/internal/markdown"
)

// contents are the parts of a message, other than text and files, that are read as text.
type contents struct {
	Rich *struct {
		Blocks []richBlock `json:"blocks"`
	} `json:"rich_message"`
	Location *location `json:"location"`
	Venue    *venue    `json:"venue"`
	Contact  *struct {
		user
		Phone string `json:"phone_number"`
		VCard string `json:"vcard"`
	} `json:"contact"`
	Poll *struct {
		Question            string     `json:"question"`
		QuestionEntities    []entity   `json:"question_entities"`
		Description         string     `json:"description"`
		DescriptionEntities []entity   `json:"description_entities"`
		Media               *pollMedia `json:"media"`
		Options             []struct {
			ID       string     `json:"persistent_id"`
			Text     string     `json:"text"`
			Entities []entity   `json:"text_entities"`
			Media    *pollMedia `json:"media"`
			Voters   int        `json:"voter_count"`
			// Who has added it, if not the author of the poll.
			ByUser *user `json:"added_by_user"`
			ByChat *chat `json:"added_by_chat"`
		} `json:"options"`
		Voters              int        `json:"total_voter_count"`
		Closed              bool       `json:"is_closed"`
		Explanation         string     `json:"explanation"`
		ExplanationEntities []entity   `json:"explanation_entities"`
		ExplanationMedia    *pollMedia `json:"explanation_media"`
	} `json:"poll"`
	Checklist *struct {
		Title         string   `json:"title"`
		TitleEntities []entity `json:"title_entities"`
		OthersMayAdd  bool     `json:"others_can_add_tasks"`
		Tasks         []struct {
			ID             int64    `json:"id"`
			Text           string   `json:"text"`
			Entities       []entity `json:"text_entities"`
			CompletionDate int64    `json:"completion_date"`
		} `json:"tasks"`
	} `json:"checklist"`
	Dice *struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	} `json:"dice"`
}

// innerText is a text inside contents, such as the question of a poll.
type innerText struct {
	text     string
	entities []entity
}

// pollMedia is what a poll shows beside its question, its explanation or one of its options
// (core.telegram.org/bots/api#pollmedia).
type pollMedia struct {
	media
	Link *struct {
		URL string `json:"url"`
	} `json:"link"`
	Location *location `json:"location"`
	Venue    *venue    `json:"venue"`
}

// isPlace reports whether it is a place, whose name and address the author of the poll did not write.
func (p *pollMedia) isPlace() bool { return p != nil && p.Venue != nil }

type venue struct {
	Location location `json:"location"`
	Title    string   `json:"title"`
	Address  string   `json:"address"`
}

func (v *venue) text() string {
	return fmt.Sprintf("[place: %s, %s (%v)]", oneLine(v.Title), oneLine(v.Address), &v.Location)
}

type location struct {
	Latitude   float64 `json:"latitude"`
	Longitude  float64 `json:"longitude"`
	Accuracy   float64 `json:"horizontal_accuracy"`
	LivePeriod int64   `json:"live_period"`
}

func (l *location) String() string {
	return strconv.FormatFloat(l.Latitude, 'f', -1, 64) + ", " + strconv.FormatFloat(l.Longitude, 'f', -1, 64)
}

// readContents reads the contents of a message other than text. Unexpected data does not affect the
// rest of the message, and is reported as unreadable.
func (m *message) readContents(raw json.RawMessage) {
	var c contents
	damaged, err := decodeLoosely(raw, &c)
	if err != nil {
		return
	}
	m.damaged = m.damaged || damaged
	var w richWriter
	switch {
	case c.Rich != nil:
		w.writeBlocks(c.Rich.Blocks, 0)
	case c.Venue != nil: // A message with a venue also has a location, for older clients.
		m.isNamed = true
		w.write(c.Venue.text())
	case c.Location != nil:
		m.isLocation = true
		w.write(c.Location.text(m.Date))
	case c.Contact != nil:
		m.isNamed = true
		w.write(fmt.Sprintf("[contact: %s, %s]\n%s", c.Contact.name(), oneLine(c.Contact.Phone), oneLine(c.Contact.VCard)))
	case c.Poll != nil:
		m.readPoll(&w, &c)
	case c.Checklist != nil:
		// An edit comes from the author, but holds what others have added, also before they no longer may.
		m.isNamed = c.Checklist.OthersMayAdd || m.EditDate > 0
		w.write("[checklist: " + oneLine(m.markUp(c.Checklist.Title, c.Checklist.TitleEntities)) + "]")
		for _, t := range c.Checklist.Tasks {
			text := oneLine(m.markUp(t.Text, t.Entities))
			m.addItem(strconv.FormatInt(t.ID, 10), text)
			w.newLine()
			w.write(checkbox(t.CompletionDate > 0) + text)
		}
	case c.Dice != nil:
		w.write(fmt.Sprintf("[dice: %s shows %d]", oneLine(c.Dice.Emoji), c.Dice.Value))
	}
	m.contentText, m.contentEntities, m.innerMedia = w.text.String(), w.entities, w.files
}

// readPoll writes a poll. The names of its pictures say where they belong.
func (m *message) readPoll(w *richWriter, c *contents) {
	p := c.Poll
	m.isNamed = p.Media.isPlace() || p.ExplanationMedia.isPlace()
	state := "poll"
	if p.Closed {
		state = "closed poll"
	}
	w.write(fmt.Sprintf("[%s: %s]", state, oneLine(m.markUp(p.Question, p.QuestionEntities))))
	w.writePollMedia(p.Media, "question")
	w.write("\n" + m.markUp(p.Description, p.DescriptionEntities))
	for i, o := range p.Options {
		m.isNamed = m.isNamed || o.ByUser != nil || o.ByChat != nil
		text := oneLine(m.markUp(o.Text, o.Entities))
		m.addItem(o.ID, text)
		w.newLine()
		w.write("- " + text)
		if p.Voters > 0 {
			w.write(fmt.Sprintf(" (%d of %d votes)", o.Voters, p.Voters))
		}
		m.isNamed = m.isNamed || o.Media.isPlace()
		w.writePollMedia(o.Media, fmt.Sprintf("option-%d", i+1))
	}
	if p.Explanation != "" || p.ExplanationMedia != nil {
		w.newLine()
		w.write("[explanation: " + oneLine(m.markUp(p.Explanation, p.ExplanationEntities)) + "]")
		w.writePollMedia(p.ExplanationMedia, "explanation")
	}
}

// writePollMedia adds the files in a part of a poll under a name, and writes what it shows.
func (w *richWriter) writePollMedia(shown *pollMedia, name string) {
	if shown == nil {
		return
	}
	switch {
	case shown.Venue != nil:
		w.write(" " + shown.Venue.text())
	case shown.Location != nil:
		w.write(" " + shown.Location.text(0))
	case shown.Link != nil:
		w.write(" " + oneLine(shown.Link.URL))
	case shown.Video != nil, shown.Sticker != nil, shown.LivePhoto != nil && largestPhoto(shown.photos()) == nil:
		w.write(" [a video or a sticker, which I cannot see]")
	default:
		shown.name = name
		w.write(" [file: " + name + "]")
		w.files = append(w.files, shown.media)
	}
}

// markUp returns a text inside the contents with its formatting.
func (m *message) markUp(text string, entities []entity) string {
	m.inner = append(m.inner, innerText{text, entities})
	return markUp(text, entities)
}

// addItem records an item to which a reply can point.
func (m *message) addItem(id, text string) {
	if m.items == nil {
		m.items = map[string]string{}
	}
	m.items[id] = text
}

// text describes the place. A live one, which may have moved on, is described with its time in Unix seconds,
// unless that is 0.
func (l *location) text(at int64) string {
	kind, accuracy := "location", ""
	if l.LivePeriod > 0 {
		kind = "live location"
	}
	if l.LivePeriod > 0 && at > 0 {
		kind += " at " + time.Unix(at, 0).UTC().Format("2006-01-02 15:04 UTC")
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

// richBlock is a block of a rich message (core.telegram.org/bots/api#richblock). A block of an unknown
// type is read by the fields that known types have.
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
	Cells    [][]richCell    `json:"cells"`
	Location *location       `json:"location"`
	Buttons  []richButton    `json:"buttons"`
	Credit   json.RawMessage `json:"credit"`
	Caption  json.RawMessage `json:"caption"` // a rich text, or an object with one
	media
	VoiceNote *file `json:"voice_note"`
}

// richCell is a cell of a table.
type richCell struct {
	Text    json.RawMessage `json:"text"`
	Columns int             `json:"colspan"`
	Rows    int             `json:"rowspan"`
}

// maxColumns bounds the columns that a cell spans; Telegram allows 20 in a table.
const maxColumns = 20

// richButton is a button. Only its text and its address are kept.
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
	// linePrefix begins each line; nextPrefix, if not empty, replaces it in the next line. lineBegun is
	// set once the prefix of the current line is written.
	linePrefix, nextPrefix string
	lineBegun              bool
	inCell                 bool // the text stands in a cell of a table
}

// cellText puts a text on one line of a table.
var cellText = strings.NewReplacer("|", `\|`, "\n", " ")

func (w *richWriter) add(s string) {
	w.text.WriteString(s)
	w.units += markdown.UTF16Len(s)
}

// write writes a text, with the prefix of its lines.
func (w *richWriter) write(s string) {
	for i, part := range strings.Split(s, "\n") {
		if i > 0 {
			w.add("\n")
			w.lineBegun = false
		}
		if part == "" {
			continue
		}
		if !w.lineBegun {
			w.beginLine()
		}
		w.add(part)
	}
}

func (w *richWriter) beginLine() {
	w.add(cmp.Or(w.nextPrefix, w.linePrefix))
	w.lineBegun, w.nextPrefix = true, ""
}

// newLine begins a new line, unless one has just begun.
func (w *richWriter) newLine() {
	if w.lineBegun {
		w.write("\n")
	}
}

// writeIndented calls write. The first line that it writes begins with first, all others with rest.
func (w *richWriter) writeIndented(first, rest string, write func()) {
	w.newLine()
	outer := w.linePrefix
	w.nextPrefix = cmp.Or(w.nextPrefix, outer) + first
	w.linePrefix += rest
	write()
	if w.nextPrefix != "" { // there was nothing to write
		w.beginLine()
	}
	w.newLine()
	w.linePrefix = outer
}

func (w *richWriter) writeBlocks(all []richBlock, depth int) {
	if depth > maxRichDepth {
		return
	}
	for i := range all {
		w.newLine()
		w.writeBlock(&all[i], depth)
	}
}

func (w *richWriter) writeBlock(b *richBlock, depth int) {
	body := func() {
		w.writeText(b.Text, depth)
		w.newLine()
		w.writeBlocks(b.Blocks, depth+1)
	}
	from := w.units
	switch b.Type {
	case "heading":
		w.write(strings.Repeat("#", min(max(b.Size, 1), 6)) + " ")
		body()
	case "pre":
		fence := fenceOf(string(b.Text))
		w.write(fence + oneLine(b.Language) + "\n")
		body()
		w.newLine()
		w.write(fence)
	case "blockquote", "expandable_blockquote", "pullquote":
		w.writeIndented("> ", "> ", body)
	case "divider":
		w.write("---")
	case "map":
		if b.Location != nil {
			w.write("[map: " + b.Location.String() + "]")
		}
	case "video":
		w.write("[video, which I cannot see]")
	default:
		w.writeText(b.Summary, depth)
		w.newLine()
		w.write(b.Expression)
		body()
	}
	for _, item := range b.Items {
		label := cmp.Or(oneLine(item.Label), "-") + " "
		if item.Checkbox {
			label = checkbox(item.Checked)
		}
		w.writeIndented(label, strings.Repeat(" ", len(label)), func() { w.writeBlocks(item.Blocks, depth+1) })
	}
	w.writeTable(b.Cells, depth)
	for _, button := range b.Buttons {
		w.newLine()
		w.writeButton(button, depth)
	}
	for _, below := range []json.RawMessage{b.Caption, b.Credit} {
		w.newLine()
		w.writeText(below, depth)
	}
	if b.Voice == nil {
		b.Voice = b.VoiceNote
	}
	w.files = append(w.files, b.media)
	if w.units == from && b.isEmpty() && !mayBeEmpty[b.Type] {
		w.write("[something of a kind that I do not know]")
	}
}

// mayBeEmpty are the known types of blocks that may have nothing to read.
var mayBeEmpty = map[string]bool{
	"paragraph": true, "heading": true, "footer": true, "anchor": true, "list": true, "collage": true, "slideshow": true, "table": true, "details": true, "thinking": true,
	"map": true, "mathematical_expression": true, "": true,
}

// writeTable writes a table, whose first row is its header. A cell is empty where one before it reaches.
func (w *richWriter) writeTable(rows [][]richCell, depth int) {
	var covered []int // for each column, the row up to which a cell covers it
	for i, row := range rows {
		w.newLine()
		w.write("|")
		column := 0
		skip := func() {
			for ; column < len(covered) && covered[column] > i; column++ {
				w.write(" |")
			}
		}
		for _, cell := range row {
			skip()
			w.write(" ")
			w.inCell = true
			w.writeText(cell.Text, depth)
			w.inCell = false
			for range min(max(cell.Columns, 1), maxColumns) {
				w.write(" |")
				if column == len(covered) {
					covered = append(covered, 0)
				}
				covered[column] = i + max(cell.Rows, 1)
				column++
			}
		}
		skip()
		if i == 0 {
			w.write("\n|" + strings.Repeat("---|", column))
		}
	}
}

func (w *richWriter) writeButton(b richButton, depth int) {
	w.write("[")
	w.writeLink(b.URL, func() { w.writeText(b.Text, depth) })
	w.write("]")
}

// writeLink calls write to write the text of a link, whose address may be empty.
func (w *richWriter) writeLink(address string, write func()) {
	from := w.units
	write()
	if address != "" && w.units > from {
		w.entities = append(w.entities, entity{Type: "text_link", Offset: from, Length: w.units - from, URL: address})
	}
}

// writeText writes a rich text: a string, a list of rich texts, or an object around one
// (core.telegram.org/bots/api#richtext).
func (w *richWriter) writeText(raw json.RawMessage, depth int) {
	if len(raw) == 0 || depth > maxRichDepth {
		return
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // it is part of a message that was decoded already
		if w.inCell {
			s = cellText.Replace(s)
		}
		w.write(s)
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, one := range list {
			w.writeText(one, depth+1)
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
			UnixTime    int64           `json:"unix_time"`
		}
		if json.Unmarshal(raw, &t) != nil {
			return
		}
		w.write(t.Alternative + t.Expression)
		if t.Type == "button" {
			w.writeButton(t.Button, depth+1)
		}
		open, shut := richMarks(t.Type, t.Text)
		w.write(open)
		from := w.units
		w.writeLink(t.URL, func() { w.writeText(t.Text, depth+1) })
		if e := (entity{Type: t.Type, Offset: from, Length: w.units - from, User: t.User}); e.mayName() {
			w.entities = append(w.entities, e)
		}
		w.write(shut)
		if t.Type == "date_time" {
			w.write(momentSuffix(t.UnixTime))
		}
		if isPresent(t.Credit) {
			w.write(" ")
			w.writeText(t.Credit, depth+1)
		}
	}
}

// richMarks returns the marks around a rich text of the given type.
func richMarks(kind string, text json.RawMessage) (open, shut string) {
	switch kind {
	case "code":
		return codeMarks(string(text))
	case "superscript", "subscript":
		mark := map[string]string{"superscript": "^", "subscript": "_"}[kind]
		if bytes.ContainsAny(text, " [{") {
			return mark + "(", ")"
		}
		return mark, ""
	}
	return inlineMarks[kind], inlineMarks[kind]
}

// isEmpty reports whether a message has neither a text nor contents that are read as text. A caption
// does not count: it belongs to a file.
func (m *message) isEmpty() bool {
	return m.Text == "" && strings.TrimFunc(m.contentText, unicode.IsSpace) == ""
}
