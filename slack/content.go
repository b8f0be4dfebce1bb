package slack

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"oneclaw/bridge/chats"
	"oneclaw/slack/blocks"
)

const (
	// maxContent bounds what is read of a message besides its text, in characters: as much as Slack takes.
	maxContent = hardLimit
	// maxQuotedContent leaves room for a note within [chats.MaxQuotedText].
	maxQuotedContent = chats.MaxQuotedText - 200
	// maxAttachments bounds the attachments that are read. Slack takes 100.
	maxAttachments = 100
	// distinctive is the number of letters from which a line is known in a text with other spaces.
	distinctive = 12
)

// content returns what a message says besides its text, in mrkdwn: in its blocks, and in attachments that
// are a part of it, as a pasted table or an alert is. It leaves out what the text says as well.
func (m *message) content(limit int) string {
	text, _ := m.read(limit)
	return text
}

// read returns the content, and whether that or the text may have words that people do not type.
func (m *message) read(limit int) (content string, others bool) {
	said := newSaid(m.Text)
	r := blocks.NewReader(limit)
	texts := r.Read(m.Blocks)
	others = len(texts) == 0 && namesEmoji(m.Text) // otherwise the blocks say which emoji are Slack's own
	for _, text := range append(texts, attachedTexts(r, m.Attachments, m.BotID != "")...) {
		said.add(text)
	}
	said.add(r.Rest())
	return strings.Join(said.more, "\n"), others || r.HasOthers()
}

// namesEmoji reports whether a text has what may be the name of an emoji, which any member of the workspace may have
// chosen.
func namesEmoji(text string) bool { return emojiPattern.MatchString(text) }

// emojiPattern matches the name of an emoji, with a letter: a time is none.
var emojiPattern = regexp.MustCompile(`:[\p{L}\p{N}_+'-]*\p{L}[\p{L}\p{N}_+'-]*:`)

// wordedAttachment is an attachment with all of its texts.
type wordedAttachment struct {
	attachment
	Pretext string `json:"pretext"`
	Title   string `json:"title"`
	Fields  []struct {
		Title string `json:"title"`
		Value string `json:"value"`
	} `json:"fields"`
	Footer   string          `json:"footer"`
	ImageURL string          `json:"image_url"`
	Actions  json.RawMessage `json:"actions"`
}

// hasWordsOfOthers reports whether an attachment that is a part of the message has words that people do not attach
// themselves, as they do blocks with a table.
func (m *message) hasWordsOfOthers() bool {
	return slices.ContainsFunc(attachmentsIn(m.Attachments), func(one json.RawMessage) bool {
		var a wordedAttachment
		if _, err := decodeLoosely(one, &a); err != nil || a.isMessage() || a.isPreview() {
			return false
		}
		fallback := a.Fallback
		if fallback == noPreview {
			fallback = ""
		}
		words := []string{a.Pretext, a.AuthorName, a.Title, a.Text, a.Footer, fallback}
		for _, f := range a.Fields {
			words = append(words, f.Title, f.Value)
		}
		return strings.TrimSpace(strings.Join(words, "")) != "" || len(a.Actions) > 0
	})
}

// attachedTexts returns the texts of the attachments that are a part of the message. Others are messages, or
// previews of links, whose text is another author's; of a person's message so are pictures.
func attachedTexts(r *blocks.Reader, raw json.RawMessage, byProgram bool) (texts []string) {
	all := attachmentsIn(raw)
	for i, one := range all {
		if i == maxAttachments {
			return append(texts, blocks.Note("more attachments"))
		}
		var a wordedAttachment
		damaged, err := decodeLoosely(one, &a)
		if a.isMessage() || a.isPreview() {
			continue
		}
		var parts []string
		for _, text := range []string{a.Pretext, a.AuthorName, a.Title, a.Text} {
			parts = append(parts, r.Take(text))
		}
		for _, f := range a.Fields {
			if strings.TrimSpace(f.Title+f.Value) != "" {
				parts = append(parts, r.Take(strings.Trim(f.Title+": "+f.Value, " :")))
			}
		}
		parts = append(parts, r.Read(a.Blocks)...)
		parts = append(parts, r.Read(a.Actions)...)
		if a.ImageURL != "" && byProgram {
			parts = append(parts, blocks.Note("a picture"))
		}
		parts = append(parts, r.Take(a.Footer))
		text := strings.Join(dropEmpty(parts), "\n")
		switch {
		case text == "" && a.ImageURL != "":
		case text == "" && a.Fallback != noPreview && a.Fallback != "":
			text = r.Take(a.Fallback)
		case text == "" && a.Fallback == noPreview, damaged, err != nil:
			text = strings.TrimSpace(text + "\n" + blocks.Note("a part of an attachment that I cannot read"))
		}
		texts = append(texts, text)
	}
	return dropEmpty(texts)
}

func dropEmpty(list []string) (kept []string) {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// said is a text in mrkdwn, and what other parts of the same message add to it: Slack and programs repeat
// texts, so that each client can show one of them.
type said struct {
	raw, words, letters string
	more                []string
}

func newSaid(text string) *said {
	s := &said{}
	s.learn(text)
	return s
}

func (s *said) learn(text string) {
	words := wordsOf(text)
	s.raw += "\n" + text
	s.words += words + " "
	s.letters += strings.ReplaceAll(words, " ", "")
}

// add adds a text unless each of its lines was said.
func (s *said) add(text string) {
	for line := range strings.Lines(text) {
		if !s.has(line) {
			s.more = append(s.more, text)
			s.learn(text)
			return
		}
	}
}

func (s *said) has(line string) bool {
	words := wordsOf(line)
	letters := strings.ReplaceAll(words, " ", "")
	switch {
	case letters == "":
		return strings.Contains(s.raw, strings.TrimSpace(line))
	case strings.Contains(" "+s.words, " "+words+" "):
		return true
	}
	return len(letters) >= distinctive && strings.Contains(s.letters, letters)
}

// namePattern matches what is written differently in a text and in blocks: mentions, dates and emoji.
var namePattern = regexp.MustCompile(`<[@#!][^<>]*>|:[\w+'-]+:`)

// listMark matches the number or the bullet of an item.
var listMark = regexp.MustCompile(`(?m)^[\s>]*(?:\d+\.|[•◦▪-])\s`)

// wordsOf returns the words of a text, without marks between them.
func wordsOf(text string) string {
	text = unescape(namePattern.ReplaceAllString(listMark.ReplaceAllString(text, " "), " "))
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}
