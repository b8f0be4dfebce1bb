package pdf

import (
	"errors"
	"image"
	"math"
	"strings"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// pointsPerInch converts sizes in a PDF, which are in points.
const pointsPerInch = 72

// document is an open PDF. It belongs to one instance of PDFium and is closed with it.
type document struct {
	pdfium    pdfium.Pdfium
	ref       references.FPDF_DOCUMENT
	pageCount int
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
	return &document{pdfium: instance, ref: opened.Document, pageCount: pages.PageCount}, nil
}

// metaText returns a property of the document, "" if missing.
func (d *document) metaText(tag string) (string, error) {
	got, err := d.pdfium.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: d.ref, Tag: tag})
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
	defer func() {
		_, closeErr := d.pdfium.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page})
		err = errors.Join(err, closeErr)
	}()
	return f(requests.Page{ByReference: &loaded.Page})
}

// text returns at most limit characters of a page's text, and the number of all its characters. The text
// includes what was filled into forms and typed onto the page.
func (d *document) text(page, limit int) (text string, total int, err error) {
	flattened := false
	read := func(p requests.Page) (err error) {
		if !flattened {
			if flattened, err = d.flatten(p); flattened || err != nil {
				return err
			}
		}
		text, total, err = d.contentText(p, limit)
		return err
	}
	if err = d.withPage(page, read); flattened && err == nil {
		err = d.withPage(page, read) // a page shows what was added once it is loaded again
	}
	return text, total, err
}

// flatten makes the form fields and other annotations of a page a part of its content, of which alone
// PDFium returns the text. It reports whether there are any.
func (d *document) flatten(page requests.Page) (bool, error) {
	annotations, err := d.pdfium.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: page})
	if err != nil || annotations.Count <= 0 {
		return false, err
	}
	if err := d.generateAppearances(page); err != nil {
		return false, err
	}
	_, err = d.pdfium.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: page, Usage: requests.FPDFPage_FlattenUsageNormalDisplay})
	return true, err
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

// contentText is text for the content of a loaded page.
func (d *document) contentText(page requests.Page, limit int) (text string, total int, err error) {
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
