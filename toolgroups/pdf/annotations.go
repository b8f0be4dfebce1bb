package pdf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"

	"oneclaw/internal/wording"
)

const (
	// maxAnnotations bounds the annotations of a page that are listed, and maxFieldOptions the options of a
	// list that are looked at.
	maxAnnotations  = 5000
	maxFieldOptions = 1000
	// maxMarkedAreas bounds the areas of a comment whose text is quoted.
	maxMarkedAreas = 50
	// passwordField is the flag of a text field that shows stars (ISO 32000-1, table 228).
	passwordField = 1 << 13
)

// invisible are the flags of annotations that a page does not show.
const invisible = enums.FPDF_ANNOT_FLAG_HIDDEN | enums.FPDF_ANNOT_FLAG_NOVIEW

// annotations are the parts of a page beside its content, as lines for the model.
type annotations struct {
	fields          []*field
	comments, links []string
	omitted         int // annotations beyond maxAnnotations
}

// field is a field of a form. Boxes and radio buttons of one name are one field.
type field struct {
	label   string
	value   string
	choices []string // what its boxes stand for
	chosen  []string
	boxes   bool
}

// String returns the fields, comments and links as text, "" if there are none.
func (a annotations) String() string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s:\n- %s\n", title, strings.Join(lines, "\n- "))
		}
	}
	fields := make([]string, len(a.fields))
	for i, f := range a.fields {
		fields[i] = f.label + ": " + f.state()
	}
	section("Form fields", fields)
	section("Comments", a.comments)
	section("Links", a.links)
	if a.omitted > 0 {
		fmt.Fprintf(&b, "\n[%d more annotations are not listed.]\n", a.omitted)
	}
	return strings.TrimSpace(b.String())
}

// state returns the value of the field, or the state of its boxes.
func (f *field) state() string {
	switch {
	case !f.boxes:
		return cmp.Or(f.value, "(empty)")
	case len(f.choices) == 1 && len(f.chosen) == 1:
		return "checked"
	case len(f.choices) == 1:
		return "not checked"
	}
	return fmt.Sprintf("%s (of %s)", cmp.Or(strings.Join(f.chosen, ", "), "none chosen"), strings.Join(f.choices, ", "))
}

// readAnnotations lists the annotations of a page, and hides the fields that it lists: their values would stand
// without names in the flattened text. A damaged annotation is left out.
func (d *document) readAnnotations(page requests.Page, count int) (a annotations, err error) {
	layer, err := d.pdfium.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return a, err
	}
	byName := map[string]*field{}
	a.omitted = max(count-maxAnnotations, 0)
	for i := range min(count, maxAnnotations) {
		got, err := d.pdfium.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: page, Index: i})
		if err != nil {
			continue
		}
		x := annotation{document: d, ref: got.Annotation, text: layer.TextPage}
		x.addTo(&a, byName)
		if _, err := d.pdfium.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: x.ref}); err != nil {
			return a, err
		}
	}
	_, err = d.pdfium.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: layer.TextPage})
	return a, err
}

// annotation is an open annotation of a page.
type annotation struct {
	*document
	ref  references.FPDF_ANNOTATION
	text references.FPDF_TEXTPAGE
}

func (x annotation) addTo(a *annotations, byName map[string]*field) {
	flags, err := x.pdfium.FPDFAnnot_GetFlags(&requests.FPDFAnnot_GetFlags{Annotation: x.ref})
	if err != nil || flags.Flags&invisible != 0 {
		return
	}
	kind, err := x.pdfium.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: x.ref})
	if err != nil {
		return
	}
	switch kind.Subtype {
	case enums.FPDF_ANNOT_SUBTYPE_POPUP: // the window of a comment, which holds nothing itself
	case enums.FPDF_ANNOT_SUBTYPE_WIDGET:
		f, err := x.field(byName)
		if err != nil {
			return
		}
		if f != nil {
			a.fields = append(a.fields, f)
		}
		_, _ = x.pdfium.FPDFAnnot_SetFlags(&requests.FPDFAnnot_SetFlags{Annotation: x.ref, Flags: flags.Flags | enums.FPDF_ANNOT_FLAG_HIDDEN})
	case enums.FPDF_ANNOT_SUBTYPE_LINK:
		if l := x.link(); l != "" && !slices.Contains(a.links, l) {
			a.links = append(a.links, l)
		}
	default:
		if c := x.comment(kind.Subtype); c != "" {
			a.comments = append(a.comments, c)
		}
	}
}

// errNoField is returned for a widget that no line stands for, such as a button or a signature.
var errNoField = errors.New("no field with a value")

// field returns the field of a widget, nil if its other widgets were seen before.
func (x annotation) field(byName map[string]*field) (*field, error) {
	kind, err := x.pdfium.FPDFAnnot_GetFormFieldType(&requests.FPDFAnnot_GetFormFieldType{FormHandle: x.form, Annotation: x.ref})
	if err != nil {
		return nil, err
	}
	var known bool
	name := x.fieldName()
	f := byName[name]
	if known = f != nil; !known {
		f = &field{label: x.fieldLabel(name)}
	}
	switch kind.FormFieldType {
	case enums.FPDF_FORMFIELD_TYPE_CHECKBOX, enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON:
		f.boxes = true
		err = x.addBox(f)
	case enums.FPDF_FORMFIELD_TYPE_TEXTFIELD:
		f.value, err = x.fieldValue()
		if flags, flagErr := x.pdfium.FPDFAnnot_GetFormFieldFlags(&requests.FPDFAnnot_GetFormFieldFlags{
			FormHandle: x.form, Annotation: x.ref,
		}); f.value != "" && (flagErr != nil || flags.Flags&passwordField != 0) {
			f.value = "(hidden: it is a password)"
		}
	case enums.FPDF_FORMFIELD_TYPE_COMBOBOX, enums.FPDF_FORMFIELD_TYPE_LISTBOX:
		if f.value = x.selectedOptions(); f.value == "" {
			f.value, err = x.fieldValue() // one that was typed in
		}
	default:
		return nil, errNoField
	}
	if known || err != nil {
		return nil, err
	}
	byName[name] = f
	return f, nil
}

func (x annotation) fieldName() string {
	got, err := x.pdfium.FPDFAnnot_GetFormFieldName(&requests.FPDFAnnot_GetFormFieldName{FormHandle: x.form, Annotation: x.ref})
	if err != nil {
		return ""
	}
	return got.FormFieldName
}

// fieldLabel returns the name of a field, with the text that a viewer shows for it.
func (x annotation) fieldLabel(name string) string {
	label := cmp.Or(oneLine(name), "(no name)")
	got, err := x.pdfium.FPDFAnnot_GetFormFieldAlternateName(&requests.FPDFAnnot_GetFormFieldAlternateName{FormHandle: x.form, Annotation: x.ref})
	if err != nil {
		return label
	}
	if shown := oneLine(got.FormFieldAlternateName); shown != "" && shown != label {
		label += " (" + shown + ")"
	}
	return label
}

func (x annotation) fieldValue() (string, error) {
	got, err := x.pdfium.FPDFAnnot_GetFormFieldValue(&requests.FPDFAnnot_GetFormFieldValue{FormHandle: x.form, Annotation: x.ref})
	if err != nil {
		return "", err
	}
	return indent(got.FormFieldValue), nil
}

// addBox adds the state of a check box or radio button to its field.
func (x annotation) addBox(f *field) error {
	checked, err := x.pdfium.FPDFAnnot_IsChecked(&requests.FPDFAnnot_IsChecked{FormHandle: x.form, Annotation: x.ref})
	if err != nil {
		return err
	}
	choice := fmt.Sprintf("choice %d", len(f.choices)+1)
	if got, err := x.pdfium.FPDFAnnot_GetFormFieldExportValue(&requests.FPDFAnnot_GetFormFieldExportValue{
		FormHandle: x.form, Annotation: x.ref,
	}); err == nil {
		choice = cmp.Or(oneLine(got.Value), choice)
	}
	if !slices.Contains(f.choices, choice) {
		f.choices = append(f.choices, choice)
	}
	if checked.IsChecked && !slices.Contains(f.chosen, choice) {
		f.chosen = append(f.chosen, choice)
	}
	return nil
}

// selectedOptions returns the options of a list that are selected, "" if none of them is.
func (x annotation) selectedOptions() string {
	count, err := x.pdfium.FPDFAnnot_GetOptionCount(&requests.FPDFAnnot_GetOptionCount{FormHandle: x.form, Annotation: x.ref})
	if err != nil {
		return ""
	}
	var selected []string
	for i := range min(count.OptionCount, maxFieldOptions) {
		is, err := x.pdfium.FPDFAnnot_IsOptionSelected(&requests.FPDFAnnot_IsOptionSelected{FormHandle: x.form, Annotation: x.ref, Index: i})
		if err != nil || !is.IsOptionSelected {
			continue
		}
		label, err := x.pdfium.FPDFAnnot_GetOptionLabel(&requests.FPDFAnnot_GetOptionLabel{FormHandle: x.form, Annotation: x.ref, Index: i})
		if err == nil {
			selected = append(selected, oneLine(label.OptionLabel))
		}
	}
	return strings.Join(selected, ", ")
}

// commentKinds are what a comment does to the text it marks.
var commentKinds = map[enums.FPDF_ANNOTATION_SUBTYPE]string{
	enums.FPDF_ANNOT_SUBTYPE_HIGHLIGHT:      "highlighted",
	enums.FPDF_ANNOT_SUBTYPE_UNDERLINE:      "underlined",
	enums.FPDF_ANNOT_SUBTYPE_SQUIGGLY:       "underlined",
	enums.FPDF_ANNOT_SUBTYPE_STRIKEOUT:      "struck out",
	enums.FPDF_ANNOT_SUBTYPE_REDACT:         "marked for removal",
	enums.FPDF_ANNOT_SUBTYPE_CARET:          "to be inserted",
	enums.FPDF_ANNOT_SUBTYPE_STAMP:          "stamp",
	enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT: "attached file",
}

// comment returns the line of a comment: who wrote it, the text that it marks and its words. It returns "" for
// an annotation that says nothing beyond what the page shows.
func (x annotation) comment(kind enums.FPDF_ANNOTATION_SUBTYPE) string {
	if kind == enums.FPDF_ANNOT_SUBTYPE_FREETEXT {
		return "" // its words are text of the page
	}
	words, marked := x.stringValue("Contents"), x.markedText()
	if kind == enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT {
		marked = x.attachmentName()
	}
	if words == "" && marked == "" {
		return ""
	}
	var about []string
	if author := oneLine(x.stringValue("T")); author != "" {
		about = append(about, author)
	}
	if x.hasKey("IRT") {
		about = append(about, "in reply")
	}
	what := commentKinds[kind]
	if marked != "" {
		what = strings.TrimSpace(what + fmt.Sprintf(" %q", marked))
	}
	if what != "" {
		about = append(about, what)
	}
	line := strings.Join(about, ", ")
	switch {
	case line == "":
		return indent(words)
	case words == "":
		return line
	}
	return line + ": " + indent(words)
}

// markedText returns the text of the page under the areas that an annotation marks.
func (x annotation) markedText() string {
	areas, err := x.pdfium.FPDFAnnot_CountAttachmentPoints(&requests.FPDFAnnot_CountAttachmentPoints{Annotation: x.ref})
	if err != nil {
		return ""
	}
	var parts []string
	for i := range min(areas.Count, maxMarkedAreas) {
		got, err := x.pdfium.FPDFAnnot_GetAttachmentPoints(&requests.FPDFAnnot_GetAttachmentPoints{Annotation: x.ref, Index: i})
		if err == nil {
			parts = append(parts, x.textIn(got.QuadPoints))
		}
	}
	return oneLine(strings.Join(parts, " "))
}

// textIn returns the text of the page in an area.
func (x annotation) textIn(q structs.FPDF_FS_QUADPOINTSF) string {
	left, right := float64(min(q.X1, q.X2, q.X3, q.X4)), float64(max(q.X1, q.X2, q.X3, q.X4))
	bottom, top := float64(min(q.Y1, q.Y2, q.Y3, q.Y4)), float64(max(q.Y1, q.Y2, q.Y3, q.Y4))
	// The lines above and below touch the area.
	inset := (top - bottom) / 4
	got, err := x.pdfium.FPDFText_GetBoundedText(&requests.FPDFText_GetBoundedText{
		TextPage: x.text, Left: left + 0.5, Right: right - 0.5, Top: top - inset, Bottom: bottom + inset,
	})
	if err != nil {
		return ""
	}
	return got.Text
}

// link returns the line of a link to an address, "" if its text is the address or if it leads elsewhere.
func (x annotation) link() string {
	link, err := x.pdfium.FPDFAnnot_GetLink(&requests.FPDFAnnot_GetLink{Annotation: x.ref})
	if err != nil {
		return ""
	}
	action, err := x.pdfium.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: link.Link})
	if err != nil || action.Action == nil {
		return ""
	}
	got, err := x.pdfium.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: x.document.ref, Action: *action.Action})
	if err != nil || got.URIPath == nil {
		return ""
	}
	address := strings.Join(strings.Fields(strings.ToValidUTF8(cleanText(*got.URIPath), "")), " ")
	text := x.markedText()
	if text == "" {
		text = x.textOfRect()
	}
	switch {
	case address == "", text == address:
		return ""
	case text == "":
		return address
	}
	return fmt.Sprintf("%q: %s", text, address)
}

// textOfRect returns the text of the page under an annotation.
func (x annotation) textOfRect() string {
	got, err := x.pdfium.FPDFAnnot_GetRect(&requests.FPDFAnnot_GetRect{Annotation: x.ref})
	if err != nil {
		return ""
	}
	r := got.Rect
	return oneLine(x.textIn(structs.FPDF_FS_QUADPOINTSF{X1: r.Left, Y1: r.Top, X2: r.Right, Y2: r.Top, X3: r.Left, Y3: r.Bottom, X4: r.Right, Y4: r.Bottom}))
}

// attachmentName returns the name of the file that an annotation attaches.
func (x annotation) attachmentName() string {
	file, err := x.pdfium.FPDFAnnot_GetFileAttachment(&requests.FPDFAnnot_GetFileAttachment{Document: x.document.ref, Annotation: x.ref})
	if err != nil {
		return ""
	}
	name, err := x.pdfium.FPDFAttachment_GetName(&requests.FPDFAttachment_GetName{Attachment: file.Attachment})
	if err != nil {
		return ""
	}
	return oneLine(name.Name)
}

func (x annotation) hasKey(key string) bool {
	got, err := x.pdfium.FPDFAnnot_HasKey(&requests.FPDFAnnot_HasKey{Annotation: x.ref, Key: key})
	return err == nil && got.HasKey
}

func (x annotation) stringValue(key string) string {
	got, err := x.pdfium.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: x.ref, Key: key})
	if err != nil {
		return ""
	}
	return cleanText(got.Value)
}

// indent cleans a text of several lines so that none of them looks like another entry of the list.
func indent(text string) string {
	return strings.ReplaceAll(cleanText(text), "\n", "\n  ")
}

// appendAnnotations appends annotations to the text of a page, and returns at most limit characters of it, with
// the number of all characters.
func appendAnnotations(text string, total, limit int, a annotations) (string, int) {
	list := a.String()
	if list == "" {
		return text, total
	}
	if text == "" && total == 0 {
		list = "[The page itself has no text; pdf_render_page shows it.]\n\n" + list
	} else {
		list = "\n\n" + list
	}
	if total <= limit {
		head, _ := wording.SplitAt(list, max(limit-utf8.RuneCountInString(text), 0))
		text += head
	}
	return text, total + utf8.RuneCountInString(list)
}
