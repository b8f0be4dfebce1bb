package office

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	// maxEntries bounds the files in an archive.
	maxEntries = 10_000
	// maxUnpacked bounds the unpacked bytes of an archive.
	maxUnpacked = 256 << 20
)

// zipDocument is a document in a ZIP archive.
type zipDocument struct {
	files     map[string]*zip.File
	out       *emitter
	bytesLeft int64
	defects   map[string]bool // the files of which it was said that they are not read
}

// readZip reads a document in a ZIP archive.
func readZip(file io.ReaderAt, size int64, out *emitter) (Format, error) {
	archive, err := zip.NewReader(file, size)
	if err != nil {
		return Format{}, err
	}
	if n := len(archive.File); n > maxEntries {
		return Format{}, Refusal(fmt.Sprintf("holds %d files, more than the limit of %d, and is not read", n, maxEntries))
	}
	p := &zipDocument{files: make(map[string]*zip.File), out: out, bytesLeft: maxUnpacked, defects: map[string]bool{}}
	for _, f := range archive.File {
		if key := partName(f.Name); p.files[key] == nil {
			p.files[key] = f
		}
	}
	switch {
	case p.has("_rels/.rels"):
		return p.readOffice()
	case p.has("META-INF/container.xml"):
		return epubFormat, p.readEPUB()
	case p.has("content.xml"):
		return p.readODF()
	case p.has("Index/Document.iwa"), p.has("Index.zip"):
		return Format{}, Refusal("is a document of Apple's Pages, Numbers or Keynote, which is not read. Ask for it as DOCX, XLSX, PPTX or PDF")
	}
	return Format{}, Refusal("is an archive of files and not a document. Unpack it first")
}

// partName normalizes a name: programs differ in case and slashes.
func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/"))
}

func (p *zipDocument) has(name string) bool { return p.files[partName(name)] != nil }

// scan reads a file of the archive as XML.
func (p *zipDocument) scan(name string, read func(*scanner) error) error {
	return p.open(name, func(from io.Reader) error { return read(newScanner(from)) })
}

// scanOptional is scan for an optional file. What is wrong with it does not end the reading.
func (p *zipDocument) scanOptional(name string, read func(*scanner) error) error {
	if !p.has(name) {
		return nil
	}
	return p.tolerate(name, p.scan(name, read))
}

// tolerate returns the error at which a file was not read further only if nothing else can be read either.
// Otherwise it has the document say that the file is not read: one bad part never takes the whole.
func (p *zipDocument) tolerate(name string, err error) error {
	if err == nil || p.out.err != nil || p.bytesLeft < 0 || errors.Is(err, errPassword) {
		return err
	}
	if key := partName(name); !p.defects[key] {
		p.defects[key] = true
		p.out.addDefect(name, err)
	}
	return nil
}

// open unpacks a file of the archive.
func (p *zipDocument) open(name string, read func(io.Reader) error) error {
	f := p.files[partName(name)]
	if f == nil {
		return fmt.Errorf("%.100q is missing", name)
	}
	if f.Flags&1 != 0 {
		return errPassword
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	return read(&limitedUnpacker{from: from, left: &p.bytesLeft})
}

// limitedUnpacker bounds the unpacked bytes.
type limitedUnpacker struct {
	from io.Reader
	left *int64
}

// Read fails beyond the limit.
func (u *limitedUnpacker) Read(b []byte) (int, error) {
	n, err := u.from.Read(b)
	if *u.left -= int64(n); *u.left < 0 {
		return 0, Refusal(fmt.Sprintf("unpacks to more than the limit of %d MiB, and is not read further", maxUnpacked>>20))
	}
	return n, err
}

// relation is a reference from one file to another.
type relation struct {
	kind, target string
	external     bool
}

// readRelations returns the references of a file, by id.
func (p *zipDocument) readRelations(of string) (map[string]relation, error) {
	found := map[string]relation{}
	dir, base := path.Split(of)
	err := p.scanOptional(dir+"_rels/"+base+".rels", func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			return s.eachChild(func(el xml.StartElement) error {
				r := relation{kind: path.Base(attr(el, "Type")), target: attr(el, "Target"), external: attr(el, "TargetMode") == "External"}
				if !r.external && !strings.HasPrefix(r.target, "/") {
					r.target = dir + r.target
				}
				found[attr(el, "Id")] = r
				return nil
			})
		})
	})
	return found, err
}

// relatedFile returns the first file of a kind to which another file refers, by id, or "".
func relatedFile(relations map[string]relation, kind string) string {
	for _, id := range slices.Sorted(maps.Keys(relations)) {
		if r := relations[id]; r.kind == kind && !r.external {
			return r.target
		}
	}
	return ""
}

// readOffice reads a document of Microsoft Office. Macros are in files that are not opened.
func (p *zipDocument) readOffice() (format Format, err error) {
	relations, err := p.readRelations("")
	if err != nil {
		return Format{}, err
	}
	main := relatedFile(relations, "officeDocument")
	if strings.HasSuffix(main, ".bin") {
		return Format{}, Refusal("is a binary workbook (.xlsb), which is not read. Ask for it as XLSX or CSV")
	}
	err = p.scan(main, func(s *scanner) error {
		return s.eachChild(func(root xml.StartElement) error {
			switch root.Name.Local {
			case "document":
				format = wordFormat
				return p.readWord(main, s)
			case "workbook":
				format = bookFormat
				return p.readBook(main, s)
			case "presentation":
				format = slidesFormat
				return p.readSlides(main, s)
			}
			return Refusal("holds no document that can be read. Ask for it as DOCX, XLSX, PPTX or PDF")
		})
	})
	return format, err
}
