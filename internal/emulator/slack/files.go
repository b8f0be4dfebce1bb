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
	id, user     string
	name, mime   string
	data         []byte
	size         int
	external     bool
	needsLookup  bool
	clipSeconds  int // length of an audio clip; 0 for other files
	expectedSize int // size announced for an upload, in bytes
	done         bool
}

// fileStore has the files, up to a total size in bytes. The oldest are dropped first.
type fileStore struct {
	baseURL string // URL at which the app reaches the server
	byID    map[string]*file
	order   []*file
	bytes   int
}

func newFileStore() fileStore { return fileStore{byID: map[string]*file{}} }

func (st *fileStore) add(id, user string, a Attachment) *file {
	f := &file{
		id: id, user: user, name: a.Name, mime: a.MIME, data: slices.Clone(a.Data), size: max(a.Size, len(a.Data)),
		external: a.External, needsLookup: a.NeedsLookup, clipSeconds: a.ClipSeconds, done: true,
	}
	st.store(f)
	return f
}

func (st *fileStore) store(f *file) {
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

func (w *world) fileJSON(f *file) wireFile {
	out := wireFile{
		ID: f.id, Created: w.cfg.Now().Unix(), Name: f.name, Title: f.name, Mimetype: f.mime,
		Filetype: strings.TrimPrefix(path.Ext(f.name), "."), User: f.user, Size: f.size, Mode: "hosted",
	}
	if f.clipSeconds > 0 {
		out.Subtype, out.DurationMS = "slack_audio", f.clipSeconds*1000
	}
	switch {
	case f.external:
		out.Mode, out.IsExternal, out.URLPrivate = "external", true, "https://drive.example.com/"+f.id
	case f.needsLookup:
		// source: docs.slack.dev/reference/objects/file-object#slack_connect_files
		return wireFile{ID: f.id, Mode: "file_access", FileAccess: "check_file_info"}
	default:
		w.setURLs(f, &out)
	}
	return out
}

func (w *world) setURLs(f *file, out *wireFile) {
	out.URLPrivate = w.files.baseURL + filesPath + w.cfg.Team + "-" + f.id + "/" + url.PathEscape(f.name)
	out.URLPrivateDownload = w.files.baseURL + filesPath + w.cfg.Team + "-" + f.id + "/download/" + url.PathEscape(f.name)
}

func fileInfo(c *call) (any, *refusal) {
	f := c.world.files.byID[c.p.Text("file")]
	if f == nil || !f.done {
		return nil, newRefusal("file_not_found") // its page
	}
	known := *f
	known.needsLookup = false
	w := c.world.fileJSON(&known)
	w.FileAccess = "visible"
	return map[string]any{"file": w}, nil
}

// serveFile serves a file to requests with the bot token, and redirects others to the sign-in page.
func (a *api) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	fault, over := a.hub.Intercept(a.faults, w, r, "file", "")
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

func createUploadURL(c *call) (any, *refusal) {
	name, size := c.p.Text("filename"), int(c.p.Int("length"))
	switch {
	case name == "" || size <= 0:
		return nil, newRefusal("invalid_arguments") // its page
	case size > maxUpload:
		return nil, newRefusal("file_upload_size_restricted") // its page
	}
	f := &file{id: c.world.newID("F"), user: c.cfg.BotUser, name: name, mime: mime.TypeByExtension(path.Ext(name)), expectedSize: size}
	c.world.files.store(f)
	return map[string]any{"file_id": f.id, "upload_url": c.life.Address("http", c.r) + uploadPath + f.id}, nil
}

// serveUpload receives the content of a file, as the body or in a form.
func (a *api) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	if _, over := a.hub.Intercept(a.faults, w, r, "upload", ""); over {
		return
	}
	data, err := readUpload(http.MaxBytesReader(w, r.Body, maxUpload+1<<20), r.Header.Get("Content-Type"))
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.world.files.byID[id]
	switch {
	case f == nil || f.expectedSize == 0 || f.done:
		http.Error(w, "not found", http.StatusNotFound)
	case err != nil || len(data) != f.expectedSize:
		http.Error(w, "bad size", http.StatusBadRequest)
	default:
		f.data, f.size = data, len(data)
		a.world.files.bytes += len(data)
		_, _ = fmt.Fprintf(w, "OK - %d", len(data))
	}
}

func readUpload(body io.Reader, contentType string) ([]byte, error) {
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
	if _, err := c.p.DecodeJSON("files", &list); err != nil || len(list) == 0 {
		return nil, newRefusal("invalid_arguments") // its page
	}
	var files []*file
	var shown []map[string]any
	for _, want := range list {
		f := c.world.files.byID[want.ID]
		if f == nil || len(f.data) == 0 {
			return nil, newRefusal("file_not_found") // its page
		}
		files = append(files, f)
		shown = append(shown, map[string]any{"id": f.id, "title": want.Title})
	}
	if id := c.p.Text("channel_id"); id != "" {
		ch, err := c.world.findChannel(id, true)
		if err != nil {
			return nil, err
		}
		m := &message{user: c.cfg.BotUser, fromBot: true, text: c.p.Text("initial_comment"), subtype: "file_share", files: files}
		if m.parent, err = ch.threadRoot(c.p.Text("thread_ts")); err != nil {
			return nil, err
		}
		c.notifier.publish(ch, m)
		c.channel, c.message = ch, m
	}
	for _, f := range files {
		f.done = true
	}
	return map[string]any{"files": shown}, nil
}

// decodeObject decodes the JSON object in the body of a request.
func decodeObject(w http.ResponseWriter, r *http.Request, into any) error {
	return json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into)
}
