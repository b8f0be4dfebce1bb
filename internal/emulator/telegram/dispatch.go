package telegram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"oneclaw/internal/emulator/wire"
)

// method is one method of the Bot API. It locks the server itself.
type method func(ctx context.Context, s *Server, p *wire.Params) (any, *apiError)

// methods lists the methods by their lower-case names: the service does not mind
// the case.
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
		"sendchataction":         sendChatAction,
		"sendmessagedraft":       sendMessageDraft,
		"editmessagetext":        editMessageText,
		"editmessagereplymarkup": editMessageReplyMarkup,
		"deletemessage":          deleteMessage,
		"setmessagereaction":     setMessageReaction,
		"answercallbackquery":    answerCallbackQuery,
		"getfile":                getFile,
		"getchat":                getChat,
		"getchatmember":          getChatMember,
		"getchatadministrators":  getChatAdministrators,
	}
}

// apiError is a refusal as the service words it.
type apiError struct {
	code        int
	description string
	retryAfter  int
	migrateTo   int64
}

func errorf(code int, format string, args ...any) *apiError {
	return &apiError{code: code, description: fmt.Sprintf(format, args...)}
}

// badRequest is a 400 with the prefix the service puts before it.
func badRequest(format string, args ...any) *apiError {
	return errorf(400, "Bad Request: "+format, args...) // Client.cpp
}

func tooMany(seconds int) *apiError {
	e := errorf(429, "Too Many Requests: retry after %d", seconds) // Query.cpp
	e.retryAfter = seconds
	return e
}

// response is the envelope of every answer.
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

// serveMethod runs one method between the faults that come before it and those
// that come after it.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	p, err := readParams(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	fault, over := s.hub.Meet(s.Faults, w, r, name, p.Int("chat_id"))
	if over {
		return
	}
	run, ok := s.methods[name]
	if !ok {
		writeError(w, errorf(404, "Not Found: method not found")) // Client.cpp
		return
	}
	result, refused := run(r.Context(), s, p)
	s.log.Debug("bot api call", "method", name, "refused", refused != nil)
	if refused != nil {
		writeError(w, refused)
		return
	}
	s.after(w, fault, result)
}

// after answers an accepted request, unless a fault spoils the answer.
func (s *Server) after(w http.ResponseWriter, f *Fault, result any) {
	if f != nil {
		switch f.Effect {
		case CutAfter:
			s.markCut(result)
			panic(http.ErrAbortHandler)
		case BadJSON:
			s.markCut(result)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true,"result":{"message_id":`)
			return
		case Duplicate:
			s.repeat(result)
		}
	}
	writeJSON(w, http.StatusOK, response{OK: true, Result: result})
}
