package openai

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	pdfName           = regexp.MustCompile(`(?i)[\w./-]+\.pdf\b`)
	pageWanted        = regexp.MustCompile(`(?i)\bpage\s+(\d{1,5})\b`)
	pageCountAsked    = regexp.MustCompile(`(?i)\b(how many|number of|count( the)?)\s+pages\b|\bpage count\b|\bhow long is (it|the)\b`)
	searchPattern     = regexp.MustCompile(`(?i)\b(?:find|search for|look for|(?:does|do) (?:it|the document|the pdf) (?:mention|say anything about)|where does it (?:mention|say)|what does it say about)\s+["'“]?(.+?)["'”]?(?:\s+in\s+(?:it|there|the\s+\w+|this\s+\w+|that\s+\w+))?\s*[?.!]*$`)
	propertiesPattern = regexp.MustCompile(`(?i)\b(title|author|who wrote (it|this|that)|properties|when was it (made|written|created))\b`)
	aboutIt           = regexp.MustCompile(`(?i)\b(pdf|document|paper|summari[sz]e|summary|tl;?dr|sum it up|read it|what (is|'s) (it|this) about|what does it say|first sentences)\b`)
	asPicture         = regexp.MustCompile(`(?i)\b(pictures?|images?|png|screenshot|photo|render)\b`)
	showing           = regexp.MustCompile(`(?i)\b(show|see|display|look at)\b`)
	saying            = regexp.MustCompile(`(?i)\b(says?|text|read|contents?|mentions?|about)\b`)
	pdfField          = regexp.MustCompile(`(?m)^(Title|Author|Created): *(\S.*?)(?:T\d\d:\S+)?$`) // a day without its time
	pageCount         = regexp.MustCompile(`(?m)^Pages: (?:.* of )?(\d+)$`)
)

// aboutPDF reports whether a message is about a PDF: one was sent with it, it names one, or it asks
// something that only an earlier document can answer.
func (t *turn) aboutPDF() bool {
	if newestPDF(t.sentFiles) != "" || t.hasWord("pdf", "pdfs") {
		return true
	}
	asks := aboutIt.MatchString(t.said) || pageWanted.MatchString(t.said) || pageCountAsked.MatchString(t.said) ||
		searchPattern.MatchString(t.said) || propertiesPattern.MatchString(t.said)
	return asks && (newestPDF(t.files) != "" || t.hasWord("document")) && !address.MatchString(t.said)
}

// namedFile returns the file that the message names, with its path if it is one of the conversation.
func (t *turn) namedFile(kind *regexp.Regexp) string {
	named := kind.FindString(t.said)
	for _, v := range slices.Backward(t.files) {
		if named != "" && path.Base(v) == path.Base(named) {
			return v
		}
	}
	return named
}

// newestPDF returns the newest PDF in a list of files.
func newestPDF(files []string) string {
	for _, file := range slices.Backward(files) {
		if strings.EqualFold(path.Ext(file), ".pdf") {
			return file
		}
	}
	return ""
}

// readPDF answers from a PDF, or shows a page of it. An unexpected result is an error, whose text is shown to the user.
func (t *turn) readPDF() string {
	doc := cmp.Or(t.namedFile(pdfName), newestPDF(t.files))
	if doc == "" {
		return "Send me the PDF, and I will look into it."
	}
	t.load("pdf", "pdf_info")
	name, args, page := "**"+path.Base(doc)+"**", map[string]any{"path": doc}, ""
	if m := pageWanted.FindStringSubmatch(t.said); m != nil {
		page = m[1]
	}
	if page != "" && (asPicture.MatchString(t.said) || showing.MatchString(t.said) && !saying.MatchString(t.said)) {
		args["page"] = readNumber(page)
		shown := "page " + page + " of " + name
		return t.do("", "pdf_render_page", args, "Saved: ", "make a picture of "+shown, "Here is "+shown+".")
	}
	calls := []ToolCall{call("pdf_info", args)}
	onlyInfo := pageCountAsked.MatchString(t.said) || propertiesPattern.MatchString(t.said)
	if page != "" {
		args["pages"] = page
	}
	if !onlyInfo {
		calls = append(calls, call("pdf_extract_text", args))
	}
	results := t.useAll(calls...)
	count := pageCount.FindStringSubmatch(results[0])
	switch {
	case count == nil:
		return fmt.Sprintf("I could not look into %s: %s", name, firstLine(results[0]))
	case onlyInfo:
		return describePDF(name, count[1], results[0], t.said)
	}
	return t.answerPDF(doc, page, count[1], results[0], results[1])
}

// answerPDF answers from the text of a PDF, or of a page of it.
func (t *turn) answerPDF(doc, page, count, info, text string) string {
	name, pages := "**"+path.Base(doc)+"**", partsOf(text)
	i := slices.IndexFunc(pages, func(p passage) bool { return p.where == "page "+page })
	sought := searchPattern.FindStringSubmatch(t.said)
	switch {
	case page != "" && i >= 0:
		return fmt.Sprintf("Page %s of %s says:\n\n%s", page, name, shorten(pages[i].text, 1500))
	case page != "":
		return fmt.Sprintf("I could not read page %s of %s, which has %s pages: %s", page, name, count, firstLine(text))
	case len(pages) == 0 || pages[0].where == "":
		return fmt.Sprintf("%s has %s pages, but I could not read any text in it: %s", name, count, rewordForUser(text[strings.LastIndexByte(text, '\n')+1:]))
	case sought != nil:
		return listMatches(text, name, sought[1])
	case t.asksForSummary():
		var body strings.Builder
		for _, p := range pages {
			body.WriteString(p.text + "\n\n")
		}
		return describePDF(name, count, info, "") + "\n\n" + t.inShort(body.String())
	}
	return t.answerOrNot(path.Base(doc), text)
}

// describePDF formats the result of pdf_info: the number of pages, and also title, author and date
// unless the user asked for the number alone.
func describePDF(name, count, info, said string) string {
	if pageCountAsked.MatchString(said) {
		return fmt.Sprintf("%s has %s %s.", name, count, plural(count, "page"))
	}
	facts := []string{fmt.Sprintf("%s has %s %s", name, count, plural(count, "page"))}
	for _, m := range pdfField.FindAllStringSubmatch(info, -1) {
		facts = append(facts, strings.ToLower(m[1])+": "+strings.TrimSpace(m[2]))
	}
	return strings.Join(facts, "; ") + "."
}

func plural(count, word string) string {
	if count == "1" {
		return word
	}
	return word + "s"
}

// listMatches lists the first five sentences that contain the given words, with their page numbers.
func listMatches(text, name, words string) string {
	var found []string
	for _, p := range passagesOf(text) {
		if strings.Contains(strings.ToLower(p.text), strings.ToLower(strings.TrimSpace(words))) {
			found = append(found, fmt.Sprintf("- %s: %s", p.where, shorten(p.text, 300)))
		}
	}
	if len(found) == 0 {
		return fmt.Sprintf("I did not find “%s” in %s.", words, name)
	}
	out := fmt.Sprintf("“%s” occurs in %d %s of %s:\n%s", words, len(found), plural(fmt.Sprint(len(found)), "sentence"), name, strings.Join(found[:min(5, len(found))], "\n"))
	if len(found) > 5 {
		out += fmt.Sprintf("\nand %d more.", len(found)-5)
	}
	return out
}
