package pdf

import (
	"errors"
	"fmt"
	"image"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"

	"oneclaw/internal/wording"
)

// pointsPerInch converts sizes in a PDF, which are in points.
const pointsPerInch = 72

// maxAttachedFiles bounds the names of attached files in a result.
const maxAttachedFiles = 100

// document is an open PDF. It belongs to one instance of PDFium and is closed with it.
type document struct {
	pdfium    pdfium.Pdfium
	ref       references.FPDF_DOCUMENT
	form      references.FPDF_FORMHANDLE
	pageCount int
	xfa       bool // a form that PDFium cannot show
}

// openDocument opens a PDF. data must stay unchanged until the instance is closed.
func openDocument(instance pdfium.Pdfium, data []byte) (*document, error) {
	opened, err := instance.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		return nil, err
	}
	pages, err := instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return nil, err
	}
	// PDFium draws the fields of a form, and knows their state, only in an environment for filling them in,
	// whose callbacks matter to programs with a window.
	form, err := instance.FPDFDOC_InitFormFillEnvironment(&requests.FPDFDOC_InitFormFillEnvironment{
		Document: opened.Document,
		FormFillInfo: structs.FPDF_FORMFILLINFO{
			FFI_Invalidate:         func(references.FPDF_PAGE, float64, float64, float64, float64) {},
			FFI_SetCursor:          func(enums.FXCT) {},
			FFI_SetTimer:           func(int, func(int)) int { return 0 },
			FFI_KillTimer:          func(int) {},
			FFI_GetLocalTime:       func() structs.FPDF_SYSTEMTIME { return structs.FPDF_SYSTEMTIME{} },
			FFI_GetPage:            func(references.FPDF_DOCUMENT, int) *references.FPDF_PAGE { return nil },
			FFI_GetRotation:        func(references.FPDF_PAGE) enums.FPDF_PAGE_ROTATION { return enums.FPDF_PAGE_ROTATION_NONE },
			FFI_ExecuteNamedAction: func(string) {},
		},
	})
	if err != nil {
		return nil, err
	}
	kind, err := instance.FPDF_GetFormType(&requests.FPDF_GetFormType{Document: opened.Document})
	if err != nil {
		return nil, err
	}
	return &document{
		pdfium: instance, ref: opened.Document, form: form.FormHandle, pageCount: pages.PageCount,
		xfa: kind.FormType == enums.FPDF_FORMTYPE_XFA_FULL,
	}, nil
}

// attachedFiles returns the names of the attached files, with commas between them.
func (d *document) attachedFiles() string {
	count, err := d.pdfium.FPDFDoc_GetAttachmentCount(&requests.FPDFDoc_GetAttachmentCount{Document: d.ref})
	if err != nil {
		return ""
	}
	var names []string
	for i := range min(count.AttachmentCount, maxAttachedFiles) {
		file, err := d.pdfium.FPDFDoc_GetAttachment(&requests.FPDFDoc_GetAttachment{Document: d.ref, Index: i})
		if err != nil {
			continue
		}
		if name, err := d.pdfium.FPDFAttachment_GetName(&requests.FPDFAttachment_GetName{Attachment: file.Attachment}); err == nil {
			names = append(names, oneLine(name.Name))
		}
	}
	if more := count.AttachmentCount - maxAttachedFiles; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// noProperties is the error of go-pdfium, without a value to compare with, for a document that has no properties
// at all, such as those of many programs that write bills.
const noProperties = "Could not get metadata"

// metaText returns a property of the document, "" if missing.
func (d *document) metaText(tag string) (string, error) {
	got, err := d.pdfium.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: d.ref, Tag: tag})
	if err != nil && err.Error() == noProperties {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return got.Value, nil
}

// withPage loads a page, counted from 1, and unloads it after f.
func (d *document) withPage(page int, f func(requests.Page) error) (err error) {
	loaded, err := d.pdfium.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: d.ref, Index: page - 1})
	if err != nil {
		return err
	}
	p := requests.Page{ByReference: &loaded.Page}
	defer func() {
		_, leaveErr := d.pdfium.FORM_OnBeforeClosePage(&requests.FORM_OnBeforeClosePage{Page: p, FormHandle: d.form})
		_, closeErr := d.pdfium.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
		err = errors.Join(err, leaveErr, closeErr)
	}()
	if _, err := d.pdfium.FORM_OnAfterLoadPage(&requests.FORM_OnAfterLoadPage{Page: p, FormHandle: d.form}); err != nil {
		return err
	}
	return f(p)
}

// text returns at most limit characters of a page's text, and the number of all its characters. The text
// includes what was typed onto the page, and ends with the fields of forms, comments and links.
func (d *document) text(page, limit int) (text string, total int, err error) {
	var beside annotations
	flattened := false
	read := func(p requests.Page) (err error) {
		if !flattened {
			if beside, flattened, err = d.flatten(p); flattened || err != nil {
				return err
			}
		}
		text, total, err = d.contentText(p, limit)
		return err
	}
	if err = d.withPage(page, read); flattened && err == nil {
		err = d.withPage(page, read) // a page shows what was added once it is loaded again
	}
	text, total = appendAnnotations(text, total, limit, beside)
	return text, total, err
}

// flatten lists the annotations of a page, and makes those that are not fields of a form a part of its content,
// of which alone PDFium returns the text. It reports whether there are any.
func (d *document) flatten(page requests.Page) (beside annotations, found bool, err error) {
	count, err := d.pdfium.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil || count.Count <= 0 {
		return beside, false, err
	}
	if beside, err = d.readAnnotations(page, count.Count); err != nil {
		return beside, false, err
	}
	if err := d.generateAppearances(page); err != nil {
		return beside, false, err
	}
	_, err = d.pdfium.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: page, Usage: requests.FPDFPage_FlattenUsageNormalDisplay})
	return beside, true, err
}

// generateAppearances has PDFium make the appearances that the fields of a form lack, which it does only
// when it draws them. Nothing of the page is within the picture, so that this takes no time.
func (d *document) generateAppearances(page requests.Page) error {
	bitmap, err := d.pdfium.FPDFBitmap_Create(&requests.FPDFBitmap_Create{Width: 1, Height: 1})
	if err != nil {
		return err
	}
	_, err = d.pdfium.FPDF_RenderPageBitmap(&requests.FPDF_RenderPageBitmap{
		Bitmap: bitmap.Bitmap, Page: page, StartX: 2, SizeX: 1, SizeY: 1, Flags: enums.FPDF_RENDER_FLAG_ANNOT,
	})
	_, closeErr := d.pdfium.FPDFBitmap_Destroy(&requests.FPDFBitmap_Destroy{Bitmap: bitmap.Bitmap})
	return errors.Join(err, closeErr)
}

// contentText is text for the content of a loaded page. If most of its lines hold one character, PDFium took the
// page for a vertical one, and contentText reads it again as one of horizontal lines.
func (d *document) contentText(page requests.Page, limit int) (text string, total int, err error) {
	if text, total, err = d.layerText(page, limit); err != nil || !isShattered(text) {
		return text, total, err
	}
	if err := d.addRuler(page); err != nil {
		return "", 0, err
	}
	ruled, ruledTotal, err := d.layerText(page, limit+rulerLength)
	if err != nil {
		return "", 0, err
	}
	if strings.Count(ruled, "\n") > strings.Count(text, "\n")/2 {
		return text, total, nil
	}
	if ruledTotal -= rulerLength; ruledTotal <= limit {
		ruled = strings.TrimSuffix(ruled, rulerText)
	}
	ruled, _ = wording.SplitAt(ruled, limit)
	return strings.TrimSpace(ruled), ruledTotal, nil
}

// isShattered reports whether many lines of a text hold a single character.
func isShattered(text string) bool {
	lines, single := 0, 0
	for line := range strings.Lines(text) {
		lines++
		if utf8.RuneCountInString(strings.TrimSpace(line)) == 1 {
			single++
		}
	}
	return single >= 4 && single*3 >= lines
}

// rulerText is the text that addRuler adds, and rulerLength its number of characters with those of its line break.
const (
	rulerText   = "x"
	rulerLength = len("\r\n" + rulerText)
)

// addRuler adds a flat letter as wide as the page, after its content. PDFium takes a page whose text fills
// its height better than its width for a vertical one: a few lines of which one stands at the other margin are
// enough. Only objects of one character, such as those of Qt, follow the page.
func (d *document) addRuler(page requests.Page) error {
	width, err := d.pdfium.FPDF_GetPageWidth(&requests.FPDF_GetPageWidth{Page: page})
	if err != nil {
		return err
	}
	ruler, err := d.pdfium.FPDFPageObj_NewTextObj(&requests.FPDFPageObj_NewTextObj{Document: d.ref, Font: "Helvetica", FontSize: 1})
	if err != nil {
		return err
	}
	if _, err := d.pdfium.FPDFText_SetText(&requests.FPDFText_SetText{PageObject: ruler.PageObject, Text: rulerText}); err != nil {
		return err
	}
	_, err = d.pdfium.FPDFPageObj_Transform(&requests.FPDFPageObj_Transform{
		PageObject: ruler.PageObject, Transform: structs.FPDF_FS_MATRIX{A: float32(2 * width.Width), D: 5},
	})
	if err != nil {
		return err
	}
	_, err = d.pdfium.FPDFPage_InsertObject(&requests.FPDFPage_InsertObject{Page: page, PageObject: ruler.PageObject})
	return err
}

// layerText is contentText, as PDFium reads it.
func (d *document) layerText(page requests.Page, limit int) (text string, total int, err error) {
	layer, err := d.pdfium.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: page})
	if err != nil {
		return "", 0, err
	}
	defer func() {
		_, closeErr := d.pdfium.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: layer.TextPage})
		err = errors.Join(err, closeErr)
	}()
	chars, err := d.pdfium.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: layer.TextPage})
	if err != nil || chars.Count <= 0 {
		return "", 0, err
	}
	got, err := d.pdfium.FPDFText_GetText(&requests.FPDFText_GetText{
		TextPage: layer.TextPage, Count: min(chars.Count, limit),
	})
	if err != nil {
		return "", 0, err
	}
	return cleanText(got.Text), chars.Count, nil
}

// cleanText converts text from PDFium: it normalizes line breaks, replaces PDFium's marks for hyphens,
// and removes control characters.
func cleanText(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\x02', r == '\ufffe':
			return '-'
		case r < ' ' && r != '\n' && r != '\t', r == '\x7f':
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// pixelSize returns the size of a page in pixels, and the resolution used. That is lower than dpi if
// the picture would otherwise have more than limit pixels.
func pixelSize(width, height float64, dpi, limit int) (w, h, used int) {
	width, height = max(width, 1), max(height, 1)
	factor := float64(dpi) / pointsPerInch
	if area := width * height * factor * factor; area > float64(limit) {
		factor *= math.Sqrt(float64(limit) / area)
	}
	// A page may be as narrow as a line.
	w = min(max(int(width*factor), 1), limit)
	h = min(max(int(height*factor), 1), max(limit/w, 1))
	return w, h, int(math.Round(factor * pointsPerInch))
}

// render draws a page on white, in the memory of the instance.
func (d *document) render(page, dpi, limit int) (pic *image.RGBA, used int, err error) {
	size, err := d.pdfium.FPDF_GetPageSizeByIndex(&requests.FPDF_GetPageSizeByIndex{Document: d.ref, Index: page - 1})
	if err != nil {
		return nil, 0, err
	}
	w, h, used := pixelSize(size.Width, size.Height, dpi, limit)
	bitmap, err := d.pdfium.FPDFBitmap_Create(&requests.FPDFBitmap_Create{Width: w, Height: h})
	if err != nil {
		return nil, 0, err
	}
	_, err = d.pdfium.FPDFBitmap_FillRect(&requests.FPDFBitmap_FillRect{
		Bitmap: bitmap.Bitmap, Width: w, Height: h, Color: 0xFFFFFFFF,
	})
	if err != nil {
		return nil, 0, err
	}
	err = d.withPage(page, func(p requests.Page) error {
		_, err := d.pdfium.FPDF_RenderPageBitmap(&requests.FPDF_RenderPageBitmap{
			Bitmap: bitmap.Bitmap, Page: p, SizeX: w, SizeY: h,
			Flags: enums.FPDF_RENDER_FLAG_ANNOT | enums.FPDF_RENDER_FLAG_REVERSE_BYTE_ORDER,
		})
		if err != nil {
			return err
		}
		_, err = d.pdfium.FPDF_FFLDraw(&requests.FPDF_FFLDraw{
			FormHandle: d.form, Bitmap: bitmap.Bitmap, Page: p, SizeX: w, SizeY: h,
			Flags: enums.FPDF_RENDER_FLAG_ANNOT | enums.FPDF_RENDER_FLAG_REVERSE_BYTE_ORDER,
		})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	buffer, err := d.pdfium.FPDFBitmap_GetBuffer(&requests.FPDFBitmap_GetBuffer{Bitmap: bitmap.Bitmap})
	if err != nil {
		return nil, 0, err
	}
	return opaqueImage(buffer.Buffer, w, h), used, nil
}

// opaqueImage makes an image from pixels whose alpha byte is undefined. It modifies pix.
func opaqueImage(pix []byte, w, h int) *image.RGBA {
	for i := 3; i < len(pix); i += 4 {
		pix[i] = 0xFF
	}
	return &image.RGBA{Pix: pix, Stride: len(pix) / h, Rect: image.Rect(0, 0, w, h)}
}
