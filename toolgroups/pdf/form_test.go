package pdf_test

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/toolgroups/pdf"
)

const helvetica = "/Font << /Helv << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"

// addForm puts annotations, each with its own text of keys, on the only page, as fields of a form.
func (p *paper) addForm(more string, annotations ...string) {
	first := p.firstObject() + len(p.objects)
	for i := range annotations {
		p.annotations += fmt.Sprintf("%d 0 R ", first+i)
	}
	p.objects = append(p.objects, annotations...)
	p.catalog += "/AcroForm << /Fields [" + p.annotations + "] /DA (/Helv 12 Tf 0 g) /DR << " + helvetica + " >> " + more + " >>"
}

// box is a check box or radio button whose appearance for the state /On is a filled square.
func (p *paper) box(keys string) string {
	n := p.firstObject() + len(p.objects)
	p.objects = append(p.objects,
		stream("/Type /XObject /Subtype /Form /BBox [0 0 20 20]", "0 g 2 2 16 16 re f"),
		stream("/Type /XObject /Subtype /Form /BBox [0 0 20 20]", ""))
	return fmt.Sprintf("<< /Type /Annot /Subtype /Widget /F 4 /FT /Btn /AP << /N << /On %d 0 R /Off %d 0 R >> >> %s >>", n, n+1, keys)
}

func widget(keys string) string {
	return "<< /Type /Annot /Subtype /Widget /F 4 /DA (/Helv 12 Tf 0 g) " + keys + " >>"
}

func filledForm() paper {
	p := paper{pages: []string{line("A form")}}
	checked := p.box("/T (newsletter) /V /On /AS /On /Rect [100 600 120 620]")
	open := p.box("/T (terms) /V /Off /AS /Off /Rect [100 570 120 590]")
	radio := p.box("/T (plan) /Ff 49152 /V /On /AS /On /Rect [100 540 120 560]")
	p.addForm("/NeedAppearances true", checked, open, radio,
		widget("/FT /Tx /T (person.name) /TU (Full name) /V (Ada Lovelace) /Rect [100 630 300 650]"),
		widget("/FT /Tx /Ff 4096 /T (notes) /V (first\\nterms: checked) /Rect [100 460 300 500]"),
		widget("/FT /Tx /Ff 8192 /T (pin) /V (4711) /Rect [100 430 300 450]"),
		widget("/FT /Tx /T (empty) /Rect [100 400 300 420]"),
		widget("/FT /Ch /Ff 131072 /T (country) /Opt [[(fr) (France)] [(de) (Germany)]] /V (de) /Rect [100 510 300 530]"),
		widget("/FT /Ch /Ff 393216 /T (city) /Opt [(Rome)] /V (Atlantis) /Rect [100 370 300 390]"),
		widget("/FT /Ch /Ff 2097152 /T (languages) /Opt [(Go) (C) (Rust)] /V [(Go) (Rust)] /Rect [100 300 300 360]"),
		widget("/FT /Tx /T (secret) /V (nobody sees this) /F 2 /Rect [100 270 300 290]"))
	return p
}

func TestTheFieldsOfAFormAreListedWithTheirState(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	d.put(t, "form.pdf", filledForm().bytes())
	got := d.must(t, "pdf_extract_text", `{"path":"form.pdf"}`).Text
	want := `File: form.pdf
Pages: 1 of 1

--- Page 1 ---
A form

Form fields:
- newsletter: checked
- terms: not checked
- plan: checked
- person.name (Full name): Ada Lovelace
- notes: first
  terms: checked
- pin: (hidden: it is a password)
- empty: (empty)
- country: Germany
- city: Atlantis
- languages: Go, Rust
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestButtonsOfOneNameAreOneChoice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ flags, state, want string }{
		"radio buttons": {"49152", "/pro", "- plan: pro (of basic, pro)\n"},
		"check boxes":   {"0", "/pro", "- plan: pro (of basic, pro)\n"},
		"none":          {"49152", "/Off", "- plan: none chosen (of basic, pro)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, pdf.Config{})
			p := paper{pages: []string{line("Plan")}}
			n := p.firstObject()
			p.objects = []string{fmt.Sprintf("<< /FT /Btn /Ff %s /T (plan) /V %s /Kids [%d 0 R %d 0 R] >>", tc.flags, tc.state, n+1, n+2)}
			for i, kind := range []string{"basic", "pro"} {
				state := "/Off"
				if tc.state == "/"+kind {
					state = tc.state
				}
				p.objects = append(p.objects, fmt.Sprintf("<< /Type /Annot /Subtype /Widget /F 4 /Parent %d 0 R /AS %s /Rect [%d 600 %d 620] /AP << /N << /%s %d 0 R >> >> >>",
					n, state, 100+30*i, 120+30*i, kind, n+3))
				p.annotations += fmt.Sprintf("%d 0 R ", n+1+i)
			}
			p.objects = append(p.objects, stream("/Type /XObject /Subtype /Form /BBox [0 0 20 20]", "0 g 2 2 16 16 re f"))
			p.catalog = fmt.Sprintf("/AcroForm << /Fields [%d 0 R] >>", n)
			d.put(t, "form.pdf", p.bytes())
			if got := d.must(t, "pdf_extract_text", `{"path":"form.pdf"}`).Text; !strings.HasSuffix(got, "\nForm fields:\n"+tc.want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// inked counts the pixels of a rectangle, in points from the bottom, that are not white.
func inked(pic image.Image, left, bottom, right, top int) int {
	count, height := 0, pic.Bounds().Dy()
	for x := left; x < right; x++ {
		for y := height - top; y < height-bottom; y++ {
			if r, g, b, _ := pic.At(x, y).RGBA(); r+g+b < 3*0x8000 {
				count++
			}
		}
	}
	return count
}

func (d *harness) draw(t *testing.T, file string) image.Image {
	t.Helper()
	res := d.must(t, "pdf_render_page", fmt.Sprintf(`{"path":%q,"page":1,"dpi":72}`, file))
	f, err := os.Open(filepath.Join(d.dir, res.Files[0].Path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	pic, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return pic
}

func TestAFilledFormIsDrawnWithItsFields(t *testing.T) {
	t.Parallel()
	forms := map[string]paper{"that asks for appearances": filledForm(), "that does not": filledForm(), "without a list of its fields": filledForm()}
	for name, p := range forms {
		switch name {
		case "that does not":
			p.catalog = strings.Replace(p.catalog, "/NeedAppearances true", "", 1)
		case "without a list of its fields":
			p.catalog = ""
		}
		forms[name] = p
	}
	for name, p := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, pdf.Config{})
			d.put(t, "form.pdf", p.bytes())
			pic := d.draw(t, "form.pdf")
			for field, bottom := range map[string]int{"newsletter": 600, "plan": 540, "country": 510, "person.name": 630, "notes": 460, "city": 370, "languages": 300} {
				if p.catalog == "" && bottom != 600 && bottom != 540 {
					continue // their font stands in the form
				}
				if inked(pic, 100, bottom, 300, bottom+20) < 20 {
					t.Errorf("%s is not drawn", field)
				}
			}
			for field, bottom := range map[string]int{"terms": 570, "secret": 270} {
				if n := inked(pic, 100, bottom, 300, bottom+20); n > 0 {
					t.Errorf("%s is drawn, with %d pixels", field, n)
				}
			}
		})
	}
}

func TestCommentsAreListedWithTheTextThatTheyMark(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	p := paper{pages: []string{"BT /F1 12 Tf 72 700 Td (The price is ten euros.) Tj 0 -14 Td (The next line) Tj ET"}}
	marked := "/Rect [72 697 500 711] /QuadPoints [138 711 225 711 138 697 225 697]"
	n := p.firstObject()
	p.objects = []string{
		"<< /Type /Annot /Subtype /Text /F 4 /Rect [10 10 30 30] /T (Bob) /Contents (Please check\nthis.) >>",
		"<< /Type /Annot /Subtype /StrikeOut /F 4 /T (Ada) " + marked + " >>",
		"<< /Type /Annot /Subtype /Highlight /F 4 /T (Ada) /Contents (too much) " + marked + " >>",
		fmt.Sprintf("<< /Type /Annot /Subtype /Text /F 4 /Rect [10 10 30 30] /T (Cy) /Contents (I agree) /IRT %d 0 R >>", n),
		"<< /Type /Annot /Subtype /FreeText /F 4 /Rect [10 50 90 70] /Contents (typed without an appearance) >>",
		"<< /Type /Annot /Subtype /Text /F 2 /Rect [10 10 30 30] /Contents (not shown) >>",
		"<< /Type /Annot /Subtype /Popup /F 4 /Rect [10 10 30 30] /Contents (a window) >>",
		"<< /Type /Annot /Subtype /Link /Rect [72 697 93 711] /A << /S /URI /URI (https://example.com/price) >> >>",
		"<< /Type /Annot /Subtype /Square /F 4 /Rect [10 10 30 30] >>",
	}
	for i := range p.objects {
		p.annotations += fmt.Sprintf("%d 0 R ", n+i)
	}
	d.put(t, "reviewed.pdf", p.bytes())
	got := d.must(t, "pdf_extract_text", `{"path":"reviewed.pdf"}`).Text
	want := `The price is ten euros.
The next line
typed without an appearance

Comments:
- Bob: Please check
  this.
- Ada, struck out "ten euros."
- Ada, highlighted "ten euros.": too much
- Cy, in reply: I agree

Links:
- "The": https://example.com/price
`
	if _, got, _ = strings.Cut(got, "--- Page 1 ---\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestALongListOfFieldsIsCutLikeText(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	p := paper{pages: []string{line("Many")}}
	var fields []string
	for i := range 2000 {
		fields = append(fields, widget(fmt.Sprintf("/FT /Tx /T (field%d) /V (%s) /Rect [0 0 1 1]", i, strings.Repeat("v", 60))))
	}
	p.addForm("", fields...)
	d.put(t, "many.pdf", p.bytes())
	got := d.must(t, "pdf_extract_text", `{"path":"many.pdf"}`).Text
	if n := len([]rune(got)); n > 31_000 || !strings.Contains(got, "field0: vvv") || !strings.Contains(got, "max_chars 5000000") {
		t.Errorf("%d characters, ends %q", n, got[max(len(got)-300, 0):])
	}
	if got = d.must(t, "pdf_extract_text", `{"path":"many.pdf","max_chars":5000000}`).Text; !strings.Contains(got, "the whole is in the file ") {
		t.Errorf("ends %q", got[max(len(got)-300, 0):])
	}
}

func TestWhatAPDFHoldsUnreadIsNamed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, pdf.Config{})
	p := text("Please wait...")
	n := p.firstObject()
	p.objects = []string{
		fmt.Sprintf("<< /Type /Filespec /F (invoice.xml) /UF (invoice.xml) /EF << /F %d 0 R >> >>", n+1),
		stream("/Type /EmbeddedFile", "<x/>"),
		stream("", "<xdp/>"),
	}
	p.catalog = fmt.Sprintf("/NeedsRendering true /Names << /EmbeddedFiles << /Names [(invoice.xml) %d 0 R] >> >> /AcroForm << /Fields [] /XFA %d 0 R >>", n, n+2)
	d.put(t, "x.pdf", p.bytes())
	if got := d.must(t, "pdf_info", `{"path":"x.pdf"}`).Text; !strings.Contains(got, "\nAttached files, which cannot be read here: invoice.xml") || !strings.Contains(got, "XFA") {
		t.Errorf("info:\n%s", got)
	}
	if got := d.must(t, "pdf_extract_text", `{"path":"x.pdf"}`).Text; !strings.Contains(got, "XFA") {
		t.Errorf("text:\n%s", got)
	}
	if got := d.must(t, "pdf_render_page", `{"path":"x.pdf","page":1}`).Text; !strings.Contains(got, "XFA") {
		t.Errorf("picture:\n%s", got)
	}
}
