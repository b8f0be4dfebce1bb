package telegram

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // formats that the service accepts as photos
	_ "image/jpeg" // "
	_ "image/png"  // "
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

// Kinds of files.
const (
	KindDocument = "document"
	KindPhoto    = "photo"
	KindVoice    = "voice"
	KindAudio    = "audio"
	// kindRound is a video message.
	kindRound = "video_note"
)

type file struct {
	id, uniqueID string
	kind         string
	name, mime   string
	path         string
	data         []byte
	size         int
	width        int
	height       int
	seconds      int
}

// maxFiles bounds the total size of the stored files, in bytes.
const maxFiles = 256 << 20

// fileStore has the files. The oldest are dropped first.
type fileStore struct {
	byID       map[string]*file
	order      []*file
	bytes      int
	lastNumber int
}

// add stores a file. A size larger than the data simulates a large file.
func (st *fileStore) add(kind, name, mime string, data []byte, size int) *file {
	st.lastNumber++
	ext := path.Ext(name)
	if kind == KindPhoto && ext == "" {
		ext = ".jpg"
	}
	f := &file{
		id:       fmt.Sprintf("BQACAgIAAxkBAAE%08dAAI", st.lastNumber),
		uniqueID: fmt.Sprintf("AgAD%08d", st.lastNumber),
		kind:     kind, name: name, mime: mime, data: data, size: max(size, len(data)),
		path: kind + "s/file_" + strconv.Itoa(st.lastNumber) + ext,
	}
	st.byID[f.id] = f
	st.order = append(st.order, f)
	st.bytes += len(data)
	for st.bytes > maxFiles && len(st.order) > 1 {
		old := st.order[0]
		st.order = st.order[1:]
		st.bytes -= len(old.data)
		delete(st.byID, old.id)
	}
	return f
}

func (f *file) apiFile() botapi.File {
	out := botapi.File{FileID: f.id, FileUniqueID: f.uniqueID, FileSize: f.size}
	switch f.kind { // the fields of each kind are from the types of the Bot API
	case KindPhoto:
		out.Width, out.Height = cmp.Or(f.width, 90), cmp.Or(f.height, 90)
	case kindRound:
		out.Length, out.Duration = 240, &f.seconds
	case KindVoice:
		out.MimeType, out.Duration = f.mime, &f.seconds
	case KindAudio:
		out.FileName, out.MimeType, out.Duration = f.name, f.mime, &f.seconds
	default:
		out.FileName, out.MimeType = f.name, f.mime
	}
	return out
}

// getFile returns the path from which a file can be downloaded. Files over 20 MB are refused unless
// LocalDir is set.
func getFile(_ context.Context, a *api, p *wire.Params) (any, *apiError) {
	id := p.Text("file_id")
	if id == "" {
		return nil, badRequest("file_id not specified") // Client.cpp
	}
	f := a.world.files.byID[id]
	switch {
	case f == nil:
		return nil, badRequest("invalid file_id") // Client.cpp
	case f.size > maxDownload && a.cfg.LocalDir == "":
		return nil, badRequest("file is too big") // Client.cpp
	}
	found := botapi.File{FileID: f.id, FileUniqueID: f.uniqueID, FileSize: f.size, FilePath: f.path}
	if a.cfg.LocalDir != "" {
		found.FilePath = filepath.Join(a.cfg.LocalDir, a.cfg.Token, f.path)
		err := errors.Join(os.MkdirAll(filepath.Dir(found.FilePath), 0o700), os.WriteFile(found.FilePath, f.data, 0o600))
		if err != nil {
			return nil, badRequest("wrong file_id or the file is temporarily unavailable") // Client.cpp
		}
	}
	return found, nil
}

// serveFile serves the downloads under /file/bot<token>/<path>.
func (a *api) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	token, name, _ := strings.Cut(rest, "/")
	if err := a.authorize(token); err != nil {
		writeError(w, err)
		return
	}
	fault, over := a.world.hub.Intercept(a.faults, w, r, "file", 0)
	if over {
		return
	}
	a.world.mu.Lock()
	var found *file
	for _, f := range a.world.files.order {
		if f.path == name {
			found = f
		}
	}
	a.world.mu.Unlock()
	if found == nil || found.size > maxDownload || a.cfg.SelfHosted || a.cfg.LocalDir != "" {
		writeError(w, errorf(404, "Not Found")) // Client.cpp
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(found.data)))
	if fault != nil && fault.Effect == CutAfter {
		_, _ = w.Write(found.data[:len(found.data)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(found.data)
}

// fileParam returns the file of a call, which is uploaded, or stored and referred to by its id.
func (a *api) fileParam(p *wire.Params, kind string) (*file, *apiError) {
	up, uploaded := p.File(kind)
	value := p.Text(kind)
	switch {
	case uploaded:
		return a.storeUpload(up, kind)
	case value == "":
		return nil, badRequest("there is no %s in the request", kind) // Client.cpp
	case strings.HasPrefix(value, "http://"), strings.HasPrefix(value, "https://"):
		return nil, badRequest("failed to get HTTP URL content") // Client.cpp
	}
	f := a.world.files.byID[value]
	if f == nil {
		return nil, badRequest("wrong remote file identifier specified: can't unserialize it. Wrong last symbol") // td, FileManager.cpp
	}
	if f.kind != kind {
		return nil, badRequest("type of file mismatch") // assumed
	}
	return f, nil
}

// parseFileName parses the name of a file as the service does: quoted, with backslashes, or up to the next semicolon, and
// then percent-decoded (tdlib/td, tdnet HttpReader.cpp). Until 2021 a quoted name ended at an escaped quote
// or a semicolon (td 48aecf883), as it does here, because a self-hosted server may be that old.
func parseFileName(disposition string) string {
	_, name, quoted := strings.Cut(disposition, `filename="`)
	if !quoted {
		_, name, _ = strings.Cut(disposition, "filename=")
	}
	name = strings.TrimSpace(name)
	if end := strings.IndexAny(name, `";\`); end >= 0 {
		name = name[:end]
	}
	if decoded, err := url.PathUnescape(name); err == nil {
		return decoded
	}
	return name
}

// maxUpload returns the size limit of an upload (core.telegram.org/bots/api#using-a-local-bot-api-server).
func (a *api) maxUpload() int {
	if a.cfg.LocalDir != "" {
		return 2000 << 20
	}
	return maxUpload
}

func (a *api) storeUpload(up wire.Upload, kind string) (*file, *apiError) {
	switch {
	case len(up.Data) == 0:
		return nil, badRequest("file must be non-empty") // td, FileManager.cpp
	case len(up.Data) > a.maxUpload(), kind == KindPhoto && len(up.Data) > maxPhoto:
		return nil, errorf(413, "Request Entity Too Large") // HttpReader.cpp
	}
	width, height := 0, 0
	if kind == KindPhoto {
		conf, _, err := image.DecodeConfig(bytes.NewReader(up.Data))
		if err != nil {
			return nil, badRequest("IMAGE_PROCESS_FAILED") // core.telegram.org/api/errors
		}
		width, height = conf.Width, conf.Height
		if width+height > 10_000 || width > 20*height || height > 20*width {
			return nil, badRequest("PHOTO_INVALID_DIMENSIONS") // core.telegram.org/api/errors
		}
	}
	if kind == KindVoice && !isVoice(up.Data) {
		kind = KindDocument // "other formats may be sent as Audio or Document" (core.telegram.org/bots/api#sendvoice)
	}
	f := a.world.files.add(kind, parseFileName(up.Disposition), up.MIME, up.Data, 0)
	f.width, f.height = width, height
	return f, nil
}

// isVoice reports whether a file is shown as a voice note: Opus in Ogg, MP3 or M4A
// (core.telegram.org/bots/api#sendvoice).
func isVoice(data []byte) bool {
	head := data[:min(len(data), 64)]
	return bytes.HasPrefix(head, []byte("OggS")) && bytes.Contains(head, []byte("OpusHead")) || bytes.HasPrefix(head, []byte("ID3")) ||
		len(head) > 1 && head[0] == 0xff && head[1]&0xe6 == 0xe2 || len(head) > 11 && string(head[4:11]) == "ftypM4A"
}
