package learning

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"oneclaw/agent"
	"oneclaw/internal/record"
	"oneclaw/toolgroups"
)

// Version is the version of the files that this program reads and writes.
const Version = 1

// Directions of lines in a file of cases. The last line has [record.End].
const (
	directionBegin = "begin"
	directionCase  = "case"
)

// MaxLine bounds a case in bytes. Exports leave out larger ones.
const MaxLine = 16 << 20

// Case is a conversation up to an answer with feedback.
type Case struct {
	// Asked is the time of the question, Ended of the answer.
	Asked, Ended time.Time
	Seen         Seen
	Outcome      Outcome
}

// Seen is what the model saw.
type Seen struct {
	// ID is the id of the case, the same in every export of one store.
	ID string `json:"id"`
	// Person and Chat are pseudonyms of the requester and the chat.
	Person string `json:"person"`
	Chat   string `json:"chat"`
	Direct bool   `json:"direct,omitempty"`
	// Messages are the conversation at that time, as in its log; the last is the question.
	Messages []agent.Message `json:"messages"`
	// Incomplete reports whether earlier messages were neither shown nor summarised.
	Incomplete bool `json:"incomplete,omitempty"`
	// Groups are the loaded tool groups.
	Groups []string `json:"groups,omitempty"`
}

// Outcome is what followed the question.
type Outcome struct {
	// Messages are the model's replies with tool results, and messages that users wrote meanwhile.
	// The last is the answer.
	Messages []agent.Message `json:"messages"`
	// Good and Bad count the users' feedback.
	Good int `json:"good,omitempty"`
	Bad  int `json:"bad,omitempty"`
	// Model is the model of the last reply, Routing the routing of tools, if recorded.
	Model   string `json:"model,omitempty"`
	Routing string `json:"routing,omitempty"`
	Used    Usage  `json:"used"`
}

// Usage is the usage of replies.
type Usage struct {
	Rounds int `json:"rounds"`
	Input  int `json:"input"`
	// Cached and Written are parts of Input.
	Cached  int `json:"cached,omitempty"`
	Written int `json:"written,omitempty"`
	Output  int `json:"output"`
	// USD is the cost in dollars, without the Unpriced replies, whose model has no known price.
	USD      float64 `json:"usd,omitempty"`
	Unpriced int     `json:"unpriced,omitempty"`
}

// Add adds the usage of other replies.
func (u *Usage) Add(v Usage) {
	u.Rounds, u.Input, u.Cached = u.Rounds+v.Rounds, u.Input+v.Input, u.Cached+v.Cached
	u.Written, u.Output, u.USD = u.Written+v.Written, u.Output+v.Output, u.USD+v.USD
	u.Unpriced += v.Unpriced
}

// Counts is the summary of an export.
type Counts struct {
	Cases int `json:"cases"`
	// OptedOut counts cases left out because a user has opted out, NotNotified because their chat
	// was not notified of exports when they were rated, Unusable because the conversation is damaged, gone
	// or too large.
	OptedOut    int `json:"refused,omitempty"`
	NotNotified int `json:"untold,omitempty"`
	Unusable    int `json:"unfit,omitempty"`
}

// String formats the counts for the beginning of a sentence.
func (c Counts) String() string {
	return fmt.Sprintf("%d cases (left out: %d because a person said no, %d whose chat was not told, %d that cannot be exported)", c.Cases, c.OptedOut, c.NotNotified, c.Unusable)
}

// line is a line of a file: as in a recording, with more fields in the first and last.
type line struct {
	record.Line

	Version int     `json:"version,omitempty"`
	Counts  *Counts `json:"counts,omitempty"`
}

// Writer writes a file of cases.
type Writer struct{ w *bufio.Writer }

// NewWriter begins a file.
func NewWriter(w io.Writer, now time.Time) (*Writer, error) {
	out := &Writer{bufio.NewWriter(w)}
	_, err := out.writeLine(line{Line: record.Line{Time: now.UTC(), Direction: directionBegin}, Version: Version})
	return out, err
}

func (w *Writer) writeLine(l line) (bool, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return false, fmt.Errorf("encode a line: %w", err)
	}
	if len(data) >= MaxLine {
		return false, nil
	}
	_, err = w.w.Write(append(data, '\n'))
	return true, err
}

// WriteCase adds a case. It returns false for a case larger than [MaxLine], which is left out.
func (w *Writer) WriteCase(c Case) (bool, error) {
	seen, err := toolgroups.EncodeJSON(c.Seen)
	if err != nil {
		return false, fmt.Errorf("encode a case: %w", err)
	}
	outcome, err := toolgroups.EncodeJSON(c.Outcome)
	if err != nil {
		return false, fmt.Errorf("encode a case: %w", err)
	}
	return w.writeLine(line{Line: record.Line{
		Time: c.Asked.UTC(), EndedAt: c.Ended.UTC(), Direction: directionCase, Service: record.ModelService, Request: seen, Response: outcome,
	}})
}

// Close ends the file.
func (w *Writer) Close(counts Counts, now time.Time) error {
	if _, err := w.writeLine(line{Line: record.Line{Time: now.UTC(), Direction: record.End}, Counts: &counts}); err != nil {
		return err
	}
	return w.w.Flush()
}

// ErrTruncated is returned for a file without its last line.
var ErrTruncated = errors.New("the file is cut off: it has no last line")

// ReadCases yields the cases of a file, up to the first error.
func ReadCases(r io.Reader) iter.Seq2[Case, error] {
	return func(yield func(Case, error) bool) {
		if _, err := read(r, func(c Case) bool { return yield(c, nil) }); err != nil {
			yield(Case{}, err)
		}
	}
}

// CopyCases copies a file of cases, and returns the counts of its last line. It returns an error for
// a file that is invalid or incomplete, of which it may have copied a part.
func CopyCases(w io.Writer, r io.Reader) (Counts, error) {
	return read(io.TeeReader(r, w), func(Case) bool { return true })
}

// read calls each with each case of a file until it returns false.
func read(r io.Reader, each func(Case) bool) (counts Counts, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, MaxLine+1)
	number, cases, ended := 0, 0, false
	for lines.Scan() {
		if number++; ended {
			return counts, fmt.Errorf("line %d: unexpected data after the last line", number)
		}
		c, last, err := readLine(lines.Bytes(), number, cases)
		if err != nil {
			return counts, err
		}
		if last != nil {
			counts, ended = *last, true
		} else if number > 1 {
			if cases++; !each(c) {
				return counts, nil
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return counts, fmt.Errorf("line %d is longer than %d MiB", number+1, MaxLine>>20)
	case err != nil:
		return counts, fmt.Errorf("read the cases: %w", err)
	case !ended:
		return counts, ErrTruncated
	}
	return counts, nil
}

// readLine decodes a line. It returns the zero case for the first line, and the counts of the last.
func readLine(data []byte, number, cases int) (c Case, last *Counts, err error) {
	var l line
	if number == 1 {
		return c, nil, readHeader(data, &l)
	}
	err = decodeStrict(data, &l)
	switch {
	case err != nil && !json.Valid(data):
		err = ErrTruncated
	case err != nil:
	case l.Version != 0 || l.Direction != directionCase && l.Direction != record.End:
		err = fmt.Errorf("%q is no direction of a case", l.Direction)
	case l.Direction == directionCase:
		c, err = l.decodeCase()
	case l.Counts == nil || l.Counts.Cases != cases:
		err = fmt.Errorf("the file has %d cases, and was written with another number", cases)
	default:
		last = l.Counts
	}
	if err != nil {
		err = fmt.Errorf("line %d: %w", number, err)
	}
	return c, last, err
}

// readHeader decodes the header line.
func readHeader(data []byte, l *line) error {
	var head struct{ Version int }
	switch {
	case json.Unmarshal(data, &head) != nil || head.Version == 0:
		return errors.New("the file holds no cases: oneclaw export eval writes such files")
	case head.Version != Version:
		return fmt.Errorf("the file is of version %d, this oneclaw reads version %d: export it again", head.Version, Version)
	}
	if err := decodeStrict(data, l); err != nil || l.Direction != directionBegin {
		return errors.Join(errors.New("line 1 does not begin a file of cases"), err)
	}
	return nil
}

// decodeCase decodes the case of a line.
func (l *line) decodeCase() (Case, error) {
	c := Case{Asked: l.Time, Ended: l.EndedAt}
	if err := errors.Join(decodeStrict(l.Request, &c.Seen), decodeStrict(l.Response, &c.Outcome)); err != nil {
		return c, err
	}
	return c, c.check()
}

// decodeStrict decodes JSON without unknown fields or trailing data.
func decodeStrict(data []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the value")
	}
	return nil
}

// check refuses a case that cannot be played.
func (c Case) check() error {
	asked, answered := c.Seen.Messages, c.Outcome.Messages
	switch {
	case c.Seen.ID == "":
		return errors.New("a case without an id")
	case len(asked) == 0 || asked[len(asked)-1].Role != agent.RoleUser:
		return errors.New("a case without a question")
	case len(answered) == 0 || !answered[len(answered)-1].Final:
		return errors.New("a case without an answer")
	}
	for _, messages := range [][]agent.Message{asked, answered} {
		for i := range messages {
			switch messages[i].Role {
			case agent.RoleUser, agent.RoleAssistant, agent.RoleTool, agent.RoleSummary:
			default:
				return fmt.Errorf("%q is no role of a message", messages[i].Role)
			}
		}
	}
	return nil
}

// Question returns the text of the question.
func (c Case) Question() string { return c.Seen.Messages[len(c.Seen.Messages)-1].Text }

// Answer returns the text of the answer.
func (c Case) Answer() string { return c.Outcome.Messages[len(c.Outcome.Messages)-1].Text }
