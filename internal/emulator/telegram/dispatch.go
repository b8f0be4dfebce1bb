package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"oneclaw/internal/emulator/wire"
)

// api serves the calls of the bot. It parses requests, refuses those that the service would refuse, and
// uses the world and the queue of updates.
type api struct {
	cfg     *Config
	methods map[string]method
	world   *world
	updates *queue
	faults  *wire.Faults[int64]
	flood   *floodControl
}

func newAPI(cfg *Config, w *world, q *queue, faults *wire.Faults[int64]) *api {
	a := &api{cfg: cfg, methods: methods(), world: w, updates: q, faults: faults, flood: newFloodControl(cfg.Limits)}
	if cfg.Version != Version100 {
		a.methods["editephemeralmessagetext"] = editEphemeralMessageText
	}
	return a
}

// method is a method of the Bot API. It is called with the lock of the world held.
type method func(ctx context.Context, a *api, p *wire.Params) (any, *apiError)

// methods returns the methods by their lower-case names, because the service ignores case.
func methods() map[string]method {
	return map[string]method{
		"getme":                  getMe,
		"getupdates":             getUpdates,
		"setwebhook":             setWebhook,
		"deletewebhook":          deleteWebhook,
		"getwebhookinfo":         getWebhookInfo,
		"setmycommands":          setMyCommands,
		"getmycommands":          getMyCommands,
		"deletemycommands":       deleteMyCommands,
		"sendmessage":            sendMessage,
		"sendphoto":              sendPhoto,
		"senddocument":           sendDocument,
		"sendvoice":              sendVoice,
		"sendchataction":         sendChatAction,
		"sendmessagedraft":       sendMessageDraft,
		"editmessagetext":        editMessageText,
		"editmessagereplymarkup": editMessageReplyMarkup,
		"deletemessage":          deleteMessage,
		"sendmediagroup":         sendMediaGroup,
		"forwardmessage":         forwardMessage,
		"copymessage":            copyMessage,
		"pinchatmessage":         pinChatMessage,
		"unpinchatmessage":       unpinChatMessage,
		"getchatmembercount":     getChatMemberCount,
		"setmessagereaction":     setMessageReaction,
		"answercallbackquery":    answerCallbackQuery,
		"getfile":                getFile,
		"getchat":                getChat,
		"getchatmember":          getChatMember,
		"getchatadministrators":  getChatAdministrators,
	}
}

// apiError is an error with the service's wording.
type apiError struct {
	code        int
	description string
	retryAfter  int
	migrateTo   int64
}

func errorf(code int, format string, args ...any) *apiError {
	return &apiError{code: code, description: fmt.Sprintf(format, args...)}
}

// badRequest returns an error 400 with the service's prefix.
func badRequest(format string, args ...any) *apiError {
	return errorf(400, "Bad Request: "+format, args...) // Client.cpp
}

func tooManyRequests(seconds int) *apiError {
	e := errorf(429, "Too Many Requests: retry after %d", seconds) // Query.cpp
	e.retryAfter = seconds
	return e
}

// response is the JSON of every response.
type response struct {
	OK          bool                `json:"ok"`
	Result      any                 `json:"result,omitempty"`
	ErrorCode   int                 `json:"error_code,omitempty"`
	Description string              `json:"description,omitempty"`
	Parameters  *responseParameters `json:"parameters,omitempty"`
}

type responseParameters struct {
	MigrateToChatID int64 `json:"migrate_to_chat_id,omitempty"`
	RetryAfter      int   `json:"retry_after,omitempty"`
}

func writeError(w http.ResponseWriter, e *apiError) {
	body := response{ErrorCode: e.code, Description: e.description}
	if e.retryAfter > 0 || e.migrateTo != 0 {
		body.Parameters = &responseParameters{MigrateToChatID: e.migrateTo, RetryAfter: e.retryAfter}
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	writeJSON(w, e.code, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	wire.WriteJSON(w, status, "application/json", v)
}

// ServeHTTP serves calls and files.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rest, ok := strings.CutPrefix(r.URL.Path, "/file/bot"); ok {
		a.serveFile(w, r, rest)
		return
	}
	call, ok := strings.CutPrefix(r.URL.Path, "/bot")
	token, name, named := strings.Cut(call, "/")
	if !ok || !named || name == "" {
		writeError(w, errorf(404, "Not Found")) // Client.cpp
		return
	}
	if err := a.authorize(token); err != nil {
		writeError(w, err)
		return
	}
	a.serveMethod(w, r, strings.ToLower(name))
}

// authorize refuses every token except the bot's.
func (a *api) authorize(token string) *apiError {
	switch {
	case token == a.cfg.Token:
		return nil
	case len(token) > 80, !strings.Contains(token, ":"):
		return errorf(401, "Unauthorized: invalid token specified") // ClientManager.cpp
	}
	return errorf(401, "Unauthorized") // Client.cpp
}

// serveMethod runs a method, with the faults before and after it.
func (a *api) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	p, err := readParams(w, r, a.maxUpload())
	if err != nil {
		writeError(w, err)
		return
	}
	fault, over := a.world.hub.Intercept(a.faults, w, r, name, p.Int("chat_id"))
	if over {
		return
	}
	run, ok := a.methods[name]
	if !ok {
		writeError(w, errorf(404, "Not Found: method not found")) // Client.cpp
		return
	}
	result, refused := a.runLocked(r.Context(), run, p)
	if refused != nil {
		writeError(w, refused)
		return
	}
	a.checkCall(name, p, result)
	a.writeAnswer(w, fault, result)
}

func (a *api) runLocked(ctx context.Context, run method, p *wire.Params) (any, *apiError) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	return run(ctx, a, p)
}

// writeAnswer writes the response to an accepted call, unless a fault drops the response.
func (a *api) writeAnswer(w http.ResponseWriter, f *Fault, result any) {
	if f != nil {
		switch f.Effect {
		case CutAfter:
			a.world.recordDropped(result)
			panic(http.ErrAbortHandler)
		case BadJSON:
			a.world.recordDropped(result)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true,"result":{"message_id":`)
			return
		case Duplicate:
			if bodies, ok := result.([]json.RawMessage); ok {
				a.updates.redeliver(bodies)
			}
		}
	}
	writeJSON(w, http.StatusOK, response{OK: true, Result: result})
}
