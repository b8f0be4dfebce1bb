package office

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"oneclaw/internal/readable"
)

// maxHTML bounds an HTML page, in bytes: it is read into memory.
const maxHTML = 10 << 20

// readText reads anything but archives: CSV, HTML and plain text.
func readText(file *io.SectionReader, head []byte, extension string, out *emitter) (Format, error) {
	kind := http.DetectContentType(head)
	if (strings.HasPrefix(kind, "image/") && !bytes.HasPrefix(head, []byte("BM"))) || strings.HasPrefix(kind, "video/") || strings.HasPrefix(kind, "audio/") {
		return Format{}, Refusal("is no document but " + kind)
	}
	isHTML := strings.HasPrefix(kind, "text/html") || extension == ".html" || extension == ".htm" || extension == ".xhtml"
	from, guess, err := decodeText(file, head, isHTML)
	if err != nil {
		return Format{}, err
	}
	format, err := readDecoded(file.Size(), from, extension, isHTML, out)
	if guess != "" {
		format.Name += fmt.Sprintf(" (encoding guessed: %s)", guess)
	}
	return format, err
}

// readDecoded reads a text in UTF-8. size is that of the file.
func readDecoded(size int64, from io.Reader, extension string, isHTML bool, out *emitter) (Format, error) {
	from, err := normalizeLines(from)
	switch {
	case err != nil:
		return textFormat, err
	case extension == ".csv", extension == ".tsv", extension == ".tab":
		return csvFormat, readCSV(from, extension, out)
	case isHTML:
		if size > maxHTML {
			return htmlFormat, Refusal(fmt.Sprintf("is larger than the limit of %d MiB for HTML. Take out the part that is wanted", maxHTML>>20))
		}
		text, err := readable.Convert(from)
		if err != nil {
			return htmlFormat, Refusal("cannot be read as HTML: " + err.Error())
		}
		return htmlFormat, addMarkdown(text, out)
	}
	return textFormat, readLines(from, out)
}

// normalizeLines ends the lines of a text with a line feed where only carriage returns do, as in what Excel calls the
// format of the Macintosh.
func normalizeLines(from io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(from, maxHead)
	head, err := in.Peek(maxHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0 {
		return transform.NewReader(in, runes.Map(func(r rune) rune {
			if r == '\r' {
				return '\n'
			}
			return r
		})), nil
	}
	return in, nil
}

// decodeText converts a text to UTF-8. It refuses binary data. The encoding is the one that a byte order
// mark or an HTML page declares, or else UTF-8 or a guess, whose name it returns.
func decodeText(file *io.SectionReader, head []byte, isHTML bool) (text io.Reader, guess string, err error) {
	wide := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	if !wide && (bytes.IndexByte(head, 0) >= 0 || countControls(head)*20 > len(head)) {
		return nil, "", Refusal("is no document that can be read: it is in a binary format. DOCX, XLSX, PPTX, ODT, ODS, EPUB, RTF, CSV, HTML and text are read")
	}
	e, name, _ := charset.DetermineEncoding(head, "") // windows-1252 if nothing is declared
	if declared := isHTML && name != "utf-8" && name != "windows-1252"; wide || declared {
		return transform.NewReader(file, e.NewDecoder()), "", nil
	}
	wrong, err := firstWrong(io.NewSectionReader(file, 0, file.Size()))
	if wrong < 0 || err != nil {
		return file, "", err
	}
	sample := make([]byte, maxSample)
	n, err := file.ReadAt(sample, max(wrong-maxBefore, 0))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	guess, e = readable.DetectEncoding(sample[:n])
	return transform.NewReader(file, e.NewDecoder()), guess, nil
}

// The text from which an encoding is guessed, and the part of it before the first character that is not UTF-8,
// in bytes.
const (
	maxSample = 64 << 10
	maxBefore = 1 << 10
)

// firstWrong returns where a text stops being UTF-8, or -1. Bytes that are wrong only after others have formed
// characters beyond ASCII are damage.
func firstWrong(file io.Reader) (int64, error) {
	in := bufio.NewReaderSize(file, 64<<10)
	for at := int64(0); ; {
		r, size, err := in.ReadRune()
		switch {
		case errors.Is(err, io.EOF):
			return -1, nil
		case err != nil:
			return -1, err
		case r == utf8.RuneError && size == 1:
			return at, nil
		case r > unicode.MaxASCII:
			return -1, nil
		}
		at += int64(size)
	}
}

// countControls counts control characters, except tab, newline, carriage return, form feed and escape.
func countControls(head []byte) (n int) {
	for _, c := range head {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b' {
			n++
		}
	}
	return n
}

// readLines reads a text line by line. A form feed only begins a printed page, and is dropped.
func readLines(from io.Reader, out *emitter) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for number := 1; ; number++ {
		var long bytes.Buffer
		for {
			part, more, err := in.ReadLine()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if long.Write(part); !more || long.Len() > maxToken {
				break
			}
		}
		if err := out.add(Block{Text: strings.TrimRight(tidyLine(long.String()), " \t"), Tight: true}); err != nil {
			return err
		}
	}
}

// readCSV reads a CSV file with the separator that detectSeparator returns.
func readCSV(from io.Reader, extension string, out *emitter) error {
	in := bufio.NewReaderSize(from, 64<<10)
	head, err := in.Peek(maxHead)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, _ = in.Discard(3) // they were peeked at
		head = head[3:]
	}
	separator := detectSeparator(head, extension)
	if m := separatorLine.FindSubmatch(head); m != nil {
		_, _ = in.Discard(len(m[0])) // it was peeked at
		separator, _ = utf8.DecodeRune(m[1])
	}
	rows := csvReader{in: in, separator: separator}
	for {
		number, record, err := rows.read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		cells := make(map[int]string, len(record))
		for i, text := range record {
			cells[i] = text
		}
		if err := out.addRow(Block{Number: number}, cells); err != nil {
			return err
		}
	}
}

// csvReader reads the records of a CSV file. A quote that is not closed, or that stands where none may, affects its own
// line alone.
type csvReader struct {
	in        *bufio.Reader
	separator rune
	ahead     []string // lines that were read already
	rows      int      // how many have begun: records, and lines without anything, as spreadsheets count them
}

// read returns the next record with its number, or io.EOF.
func (r *csvReader) read() (number int, record []string, err error) {
	first := ""
	for strings.Trim(first, "\r\n") == "" {
		if first, err = r.readLine(); err != nil {
			return 0, nil, err
		}
		r.rows++
	}
	number = r.rows
	quotes := strings.Count(first, `"`)
	if quotes == 0 {
		return number, strings.Split(strings.TrimRight(first, "\r\n"), string(r.separator)), nil
	}
	var more []string
	var whole strings.Builder
	whole.WriteString(first)
	for quotes%2 == 1 && whole.Len() <= maxToken {
		line, err := r.readLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		more, quotes = append(more, line), quotes+strings.Count(line, `"`)
		whole.WriteString(line)
	}
	if record, err = r.parse(whole.String(), false); err == nil {
		return number, record, nil
	}
	if len(more) > 0 {
		r.ahead = append(more, r.ahead...)
	}
	record, err = r.parse(first, true)
	return number, record, err
}

// parse returns the only record of a text.
func (r *csvReader) parse(text string, lazy bool) ([]string, error) {
	rows := csv.NewReader(strings.NewReader(text))
	rows.Comma, rows.FieldsPerRecord, rows.LazyQuotes = r.separator, -1, lazy
	record, err := rows.Read()
	if err != nil {
		return nil, err
	}
	if _, err = rows.Read(); err != io.EOF {
		return nil, csv.ErrQuote // there are several
	}
	return record, nil
}

// readLine returns the next line with its end, or io.EOF.
func (r *csvReader) readLine() (string, error) {
	if len(r.ahead) > 0 {
		line := r.ahead[0]
		r.ahead = r.ahead[1:]
		return line, nil
	}
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxToken:
			return "", errLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil, err == io.EOF && len(line) > 0:
			return string(line), nil
		}
		return "", err
	}
}

// separatorLine matches a first line that tells Excel the separator. It is no row.
var separatorLine = regexp.MustCompile(`^(?i:"?sep=([^"\r\n\x{fffd}])"?\r?\n)`)

// detectSeparator returns the separator of a CSV file: the one that is in most of its first lines, outside
// quotes. Semicolons and tabs come before commas, which then are those of decimal numbers.
func detectSeparator(head []byte, extension string) rune {
	if extension != ".csv" {
		return '\t'
	}
	lines, here, quoted := map[rune]int{}, map[rune]bool{}, false
	for _, r := range string(head) + "\n" {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '\n':
			for s := range here {
				lines[s]++
			}
			clear(here)
		case strings.ContainsRune(",;\t|", r):
			here[r] = true
		}
	}
	best := ','
	for _, s := range ";\t|" {
		if lines[s] > lines[best] || s != '|' && lines[s] == lines[best] && lines[s] > 0 {
			best = s
		}
	}
	return best
}
