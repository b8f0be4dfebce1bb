package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	socketPath = "/link"
	filesPath  = "/files-pri/"
	uploadPath = "/upload/v1/"
)

// canvasType is the type of canvases. They are downloaded as HTML, which is undocumented
// (stablyai/agent-slack PR 19, shaharia-lab/slackcli PR 32).
const canvasType = "application/vnd.slack-docs"

type file struct {
	id, user   string
	name, mime string
	data       []byte
	size       int
	external   bool
	lookup     bool
	clip       int // seconds
	expects    int // the bytes that an upload announced
	done       bool
}

// fileStore keeps files up to a number of bytes; the oldest are dropped first.
type fileStore struct {
	base  string // where the app reaches the server
	byID  map[string]*file
	order []*file
	bytes int
}

func newFileStore() fileStore { return fileStore{byID: map[string]*file{}} }

func (st *fileStore) put(id, user string, a Attachment) *file {
	f := &file{
		id: id, user: user, name: a.Name, mime: a.MIME, data: slices.Clone(a.Data), size: max(a.Size, len(a.Data)),
		external: a.External, lookup: a.Lookup, clip: a.Clip, done: true,
	}
	st.keep(f)
	return f
}

func (st *fileStore) keep(f *file) {
	st.byID[f.id] = f
	st.order = append(st.order, f)
	st.bytes += len(f.data)
	for st.bytes > maxFiles && len(st.order) > 1 {
		old := st.order[0]
		st.order = st.order[1:]
		st.bytes -= len(old.data)
		delete(st.byID, old.id)
	}
}

func (w *world) wireFile(f *file) wireFile {
	out := wireFile{
		ID: f.id, Created: w.cfg.Now().Unix(), Name: f.name, Title: f.name, Mimetype: f.mime,
		Filetype: strings.TrimPrefix(path.Ext(f.name), "."), User: f.user, Size: f.size, Mode: "hosted",
	}
	if f.clip > 0 {
		out.Subtype, out.Millis = "slack_audio", f.clip*1000
	}
	switch {
	case f.external:
		out.Mode, out.IsExternal, out.URLPrivate = "external", true, "https://drive.example.com/"+f.id
	case f.lookup:
		// source: docs.slack.dev/reference/objects/file-object#slack_connect_files
		return wireFile{ID: f.id, Mode: "file_access", FileAccess: "check_file_info"}
	default:
		w.locate(f, &out)
	}
	return out
}

func (w *world) locate(f *file, out *wireFile) {
	out.URLPrivate = w.files.base + filesPath + w.cfg.Team + "-" + f.id + "/" + url.PathEscape(f.name)
	out.URLDownload = w.files.base + filesPath + w.cfg.Team + "-" + f.id + "/download/" + url.PathEscape(f.name)
}

func fileInfo(c *call) (any, *refusal) {
	f := c.world.files.byID[c.p.Text("file")]
	if f == nil || !f.done {
		return nil, refuse("file_not_found") // its page
	}
	known := *f
	known.lookup = false
	w := c.world.wireFile(&known)
	w.FileAccess = "visible"
	return map[string]any{"file": w}, nil
}

// serveFile serves a file to requests with the token, and redirects others to the sign-in page.
func (a *api) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	fault, over := a.hub.Meet(a.faults, w, r, "file", "")
	if over {
		return
	}
	name, _, _ := strings.Cut(rest, "/")
	_, id, _ := strings.Cut(name, "-")
	a.mu.Lock()
	f := a.world.files.byID[id]
	allowed := r.Header.Get("Authorization") == "Bearer "+DefaultBotToken && !a.app.revoked && a.app.hasScope("files:read")
	a.mu.Unlock()
	switch {
	case !allowed:
		http.Redirect(w, r, "/?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
	case f == nil || !f.done:
		http.Error(w, "Not Found", http.StatusNotFound)
	default:
		kind := f.mime
		if kind == canvasType {
			kind = "text/html; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(f.data)))
		if fault != nil && fault.Effect == CutAfter {
			_, _ = w.Write(f.data[:len(f.data)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(f.data)
	}
}

func serveLogin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!DOCTYPE html><html><head><title>Login | Slack</title></head><body>Sign in</body></html>")
}

func uploadURL(c *call) (any, *refusal) {
	name, size := c.p.Text("filename"), int(c.p.Int("length"))
	switch {
	case name == "" || size <= 0:
		return nil, refuse("invalid_arguments") // its page
	case size > maxUpload:
		return nil, refuse("file_upload_size_restricted") // its page
	}
	f := &file{id: c.world.id("F"), user: c.cfg.BotUser, name: name, mime: mime.TypeByExtension(path.Ext(name)), expects: size}
	c.world.files.keep(f)
	return map[string]any{"file_id": f.id, "upload_url": c.life.Address("http", c.r) + uploadPath + f.id}, nil
}

// serveUpload receives the content of a file, raw or in a form.
func (a *api) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	if _, over := a.hub.Meet(a.faults, w, r, "upload", ""); over {
		return
	}
	data, err := uploaded(http.MaxBytesReader(w, r.Body, maxUpload+1<<20), r.Header.Get("Content-Type"))
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.world.files.byID[id]
	switch {
	case f == nil || f.expects == 0 || f.done:
		http.Error(w, "not found", http.StatusNotFound)
	case err != nil || len(data) != f.expects:
		http.Error(w, "bad size", http.StatusBadRequest)
	default:
		f.data, f.size = data, len(data)
		a.world.files.bytes += len(data)
		_, _ = fmt.Fprintf(w, "OK - %d", len(data))
	}
}

func uploaded(body io.Reader, contentType string) ([]byte, error) {
	kind, attrs, _ := mime.ParseMediaType(contentType)
	if kind != "multipart/form-data" {
		return io.ReadAll(body)
	}
	mr := multipart.NewReader(body, attrs["boundary"])
	for {
		part, err := mr.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return io.ReadAll(part)
		}
	}
}

func completeUpload(c *call) (any, *refusal) {
	var list []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if _, err := c.p.JSON("files", &list); err != nil || len(list) == 0 {
		return nil, refuse("invalid_arguments") // its page
	}
	var files []*file
	var shown []map[string]any
	for _, want := range list {
		f := c.world.files.byID[want.ID]
		if f == nil || len(f.data) == 0 {
			return nil, refuse("file_not_found") // its page
		}
		files = append(files, f)
		shown = append(shown, map[string]any{"id": f.id, "title": want.Title})
	}
	if id := c.p.Text("channel_id"); id != "" {
		ch, err := c.world.find(id, true)
		if err != nil {
			return nil, err
		}
		m := &message{user: c.cfg.BotUser, bot: true, text: c.p.Text("initial_comment"), subtype: "file_share", files: files}
		if m.parent, err = ch.parentOf(c.p.Text("thread_ts")); err != nil {
			return nil, err
		}
		c.news.publish(ch, m)
		c.channel, c.message = ch, m
	}
	for _, f := range files {
		f.done = true
	}
	return map[string]any{"files": shown}, nil
}

// decodeObject reads a JSON object from a request.
func decodeObject(w http.ResponseWriter, r *http.Request, into any) error {
	return json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into)
}
