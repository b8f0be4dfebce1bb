package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

const (
	// maxFiles bounds the files of a message, as of an album in Telegram.
	maxFiles = 10
	// maxBody bounds a request from the page, with files in base64.
	maxBody = 24 << 20
)

// upload is a file from the page.
type upload struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Data []byte `json:"data"`
	// Seconds is the length of a recording; 0 for other files.
	Seconds int `json:"seconds"`
}

func (d *Demo) say(_ context.Context, s pageRequest) (any, error) {
	if s.PDF {
		s.Files = append(s.Files, upload{Name: sampleName, Type: "application/pdf", Data: samplePDF})
	}
	switch {
	case s.Sample != "" && s.Pane == "telegram":
		return d.sendSample(s)
	case strings.TrimSpace(s.Text) == "" && len(s.Files) == 0:
		return nil, errors.New("the message is empty")
	case len(s.Files) > maxFiles:
		return nil, fmt.Errorf("a message has at most %d files", maxFiles)
	case slices.ContainsFunc(s.Files, func(f upload) bool { return len(f.Data) == 0 }):
		return nil, errors.New("the file is empty")
	case s.Edit != "":
		return d.edit(s)
	case s.Pane == "telegram":
		return d.sayTelegram(s)
	case s.Pane == "slack":
		return d.saySlack(s)
	}
	return nil, errNoPane
}

// sayTelegram sends a message in Telegram. Several files become an album, whose first item has the text.
func (d *Demo) sayTelegram(s pageRequest) (sent telegram.Sent, err error) {
	var options telegram.SayOptions
	if s.Reply != "" {
		if options.ReplyTo, err = strconv.ParseInt(s.Reply, 10, 64); err != nil {
			return sent, errors.New("there is no such message")
		}
	}
	if len(s.Files) == 0 {
		return d.Telegram.Say(d.TelegramUser, d.TelegramUser, s.Text, &options)
	}
	if len(s.Files) > 1 {
		d.mu.Lock()
		d.albums++
		options.Album = "demo-" + strconv.Itoa(d.albums)
		d.mu.Unlock()
	}
	for _, f := range s.Files {
		options.Attachment = &telegram.Attachment{Kind: attachmentKind(f), Name: f.Name, MIME: f.Type, Data: f.Data, Seconds: f.Seconds}
		if sent, err = d.Telegram.Say(d.TelegramUser, d.TelegramUser, s.Text, &options); err != nil {
			return sent, err
		}
		s.Text = ""
	}
	return sent, nil
}

// edit replaces the text of a message of the user.
func (d *Demo) edit(s pageRequest) (any, error) {
	if s.Pane == "slack" {
		return d.Slack.Edit(d.channelOf(s), s.Edit, d.mentioned(s, s.Text))
	}
	id, err := strconv.ParseInt(s.Edit, 10, 64)
	if err != nil {
		return nil, errors.New("there is no such message")
	}
	return d.Telegram.Edit(d.TelegramUser, id, s.Text)
}

// samples returns what a person can send from a phone besides words and files, by its kind.
func samples() map[string]telegram.Contents {
	place := telegram.Location{Latitude: 51.5079, Longitude: -0.0877}
	return map[string]telegram.Contents{
		"place":   {Location: &place, Venue: &telegram.Venue{Location: place, Title: "Harbour Café", Address: "1 Quay Street, London"}},
		"contact": {Contact: &telegram.Contact{PhoneNumber: "+442079460123", FirstName: "Iris", LastName: "Holm"}},
		"sticker": {Sticker: &telegram.Sticker{FileID: "sticker-1", FileUniqueID: "sticker-1", Type: "regular", Width: 512, Height: 512, Emoji: "👍"}},
		"poll": {Poll: &telegram.Poll{
			ID: "1", Type: "regular", IsAnonymous: true, Question: "Where do we eat?", TotalVoterCount: 3,
			Options: []telegram.PollOption{{PersistentID: "1", Text: "Harbour Café", VoterCount: 2}, {PersistentID: "2", Text: "At home", VoterCount: 1}},
		}},
	}
}

// forwardedText is a message that a person may forward without having one.
const forwardedText = "The new code of the gate is 4711. The plumber comes on Friday at ten."

// sendSample sends a sample, or forwards the text as a message of another person.
func (d *Demo) sendSample(s pageRequest) (any, error) {
	if s.Sample == "forward" {
		return d.Telegram.Say(d.TelegramUser, d.TelegramUser, cmp.Or(strings.TrimSpace(s.Text), forwardedText), &telegram.SayOptions{
			References: telegram.References{Forward: &telegram.Origin{Kind: telegram.OriginUser, User: d.telegramFriend}},
		})
	}
	contents, known := samples()[s.Sample]
	if !known {
		return nil, errors.New("there is no such sample")
	}
	return d.Telegram.Say(d.TelegramUser, d.TelegramUser, "", &telegram.SayOptions{Contents: &contents})
}

// describe returns what a message without words shows.
func describe(c *telegram.Contents) string {
	switch {
	case c == nil:
		return ""
	case c.Venue != nil:
		return "📍 " + c.Venue.Title + ", " + c.Venue.Address
	case c.Location != nil:
		return fmt.Sprintf("📍 %v, %v", c.Location.Latitude, c.Location.Longitude)
	case c.Contact != nil:
		return "👤 " + c.Contact.FirstName + " " + c.Contact.LastName + ", " + c.Contact.PhoneNumber
	case c.Poll != nil:
		var text strings.Builder
		text.WriteString("📊 " + c.Poll.Question)
		for _, o := range c.Poll.Options {
			fmt.Fprintf(&text, "\n○ %s (%d)", o.Text, o.VoterCount)
		}
		return text.String()
	case c.Sticker != nil:
		return c.Sticker.Emoji
	}
	return ""
}

// attachmentKind returns the kind as which Telegram's apps send a file. They record speech as Opus in
// Ogg. A browser may record another format, which is sent as audio.
func attachmentKind(f upload) string {
	switch {
	case strings.HasPrefix(f.Type, "image/"):
		return telegram.KindPhoto
	case f.Seconds > 0 && bytes.HasPrefix(f.Data, []byte("OggS")):
		return telegram.KindVoice
	case f.Seconds > 0:
		return telegram.KindAudio
	}
	return telegram.KindDocument
}

// mentioned returns a text with the mention of the bot that a message needs to begin a thread in the channel.
func (d *Demo) mentioned(s pageRequest, text string) string {
	if (s.Thread == "" || s.Thread == s.Edit) && d.channelOf(s) == d.slackChannel {
		return strings.TrimSpace("<@" + d.Slack.BotUser() + "> " + text)
	}
	return text
}

// saySlack sends a message in Slack. It mentions the bot if the message begins a thread in the channel.
func (d *Demo) saySlack(s pageRequest) (slack.Sent, error) {
	text, table := cutTable(s.Text)
	channel := d.channelOf(s)
	text = d.mentioned(s, text)
	options := &slack.SayOptions{Thread: s.Thread, Table: table}
	for _, f := range s.Files {
		options.Files = append(options.Files, slack.Attachment{Name: f.Name, MIME: f.Type, Data: f.Data, ClipSeconds: f.Seconds})
	}
	if s.Reply != "" {
		options.Share = &slack.Share{Channel: channel, TS: s.Reply}
	}
	return d.Slack.Say(channel, d.SlackUser, text, options)
}

// cutTable takes the lines with tabs out of a text, as Slack's own apps do: cells that are pasted from a
// spreadsheet become a table.
func cutTable(typed string) (text string, table [][]string) {
	var rest []string
	for line := range strings.SplitSeq(typed, "\n") {
		if cells := strings.Split(strings.TrimRight(line, "\r"), "\t"); len(cells) > 1 {
			table = append(table, cells)
			continue
		}
		rest = append(rest, line)
	}
	return strings.TrimSpace(strings.Join(rest, "\n")), table
}
