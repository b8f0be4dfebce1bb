package delivery

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"oneclaw/internal/emulator/wire"
)

// maxAck is the size from which the service drops a client's message.
const maxAck = 20_000

const writeTimeout = 10 * time.Second

// socket is a connection of the app. Its fields below wake are guarded by the lock; its
// goroutines are the request's and that of write.
type socket struct {
	conn    *websocket.Conn
	wake    chan struct{}
	pending map[*envelope]struct{}
	queue   []any
	frozen  bool
	leaving bool
}

// send queues a message. The lock is held.
func (k *socket) send(v any) {
	k.queue = append(k.queue, v)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Admit admits one handshake with this ticket.
func (l *Line) Admit(ticket string) {
	if len(l.tickets) > 1000 {
		clear(l.tickets) // nobody came for them
	}
	l.tickets[ticket] = true
}

// ServeHTTP serves a connection until it ends. It takes the lock.
func (l *Line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.cfg.Meet(w, r) {
		return
	}
	ticket := r.URL.Query().Get("ticket")
	l.cfg.Mu.Lock()
	valid := l.tickets[ticket]
	delete(l.tickets, ticket)
	l.cfg.Mu.Unlock()
	if !valid {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		l.cfg.Log.Debug("no handshake", "err", err)
		return
	}
	k := l.open(conn)
	if k == nil {
		_ = conn.Close() // the server is closed
		return
	}
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() { l.write(k, stop) })
	l.read(k)
	close(stop)
	_ = conn.Close() // it may be closed already
	writer.Wait()
	l.gone(k)
}

// open registers a socket, says hello and sends waiting envelopes.
func (l *Line) open(conn *websocket.Conn) *socket {
	l.cfg.Mu.Lock()
	defer l.cfg.Mu.Unlock()
	if l.cfg.Life.Closed() {
		return nil
	}
	l.opened++
	k := &socket{conn: conn, wake: make(chan struct{}, 1), pending: map[*envelope]struct{}{}}
	l.sockets = append(l.sockets, k)
	l.cfg.Emit(TraceEvent{Kind: EventSocket, Text: "open"})
	if f := l.cfg.Faults.Fire("hello", ""); f != nil {
		k.leaving = true // a connection that never comes to life
		l.cfg.Emit(TraceEvent{Kind: wire.EventFault, Text: string(f.Effect)})
		return k
	}
	k.send(map[string]any{
		"type": "hello", "num_connections": len(l.sockets), "connection_info": map[string]any{"app_id": l.cfg.AppID},
		"debug_info": map[string]any{"host": "applink-emulator", "approximate_connection_time": 18060},
	})
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		if e.state == Waiting {
			l.dispatch(e)
		}
	}
	return k
}

// gone removes a socket: its unacknowledged envelopes have failed. Assumed: they are sent again
// over another one.
func (l *Line) gone(k *socket) {
	l.cfg.Mu.Lock()
	defer l.cfg.Mu.Unlock()
	l.sockets = slices.DeleteFunc(l.sockets, func(o *socket) bool { return o == k })
	l.cfg.Emit(TraceEvent{Kind: EventSocket, Text: "closed"})
	if l.cfg.Life.Closed() {
		return
	}
	for _, e := range l.sequence {
		if _, ok := k.pending[e]; ok {
			l.failed(e)
		}
	}
}

// read handles acknowledgements until the connection ends.
func (l *Line) read(k *socket) {
	k.conn.SetReadLimit(1 << 20)
	k.conn.SetPingHandler(func(data string) error {
		if !l.isFrozen(k) {
			// The next read reports a failed write.
			_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		}
		return nil
	})
	for {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		bad := len(data) >= maxAck || json.Unmarshal(data, &ack) != nil
		l.cfg.Mu.Lock()
		if !k.frozen {
			if bad {
				ack.EnvelopeID = ""
			}
			l.acked(ack.EnvelopeID, ack.Payload)
		}
		l.cfg.Mu.Unlock()
	}
}

func (l *Line) isFrozen(k *socket) bool {
	l.cfg.Mu.Lock()
	defer l.cfg.Mu.Unlock()
	return k.frozen
}

// write writes queued messages, and pings.
func (l *Line) write(k *socket, stop <-chan struct{}) {
	ping := time.NewTicker(l.cfg.Ping)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-stop:
			return
		case <-l.cfg.Life.Done():
			return
		case <-ping.C:
			if !l.isFrozen(k) {
				err = k.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(writeTimeout))
			}
		case <-k.wake:
			err = l.flush(k)
		}
		if err != nil {
			_ = k.conn.Close() // which also ends the reading side
			return
		}
	}
}

func (l *Line) flush(k *socket) error {
	for {
		l.cfg.Mu.Lock()
		queue, frozen := k.queue, k.frozen
		k.queue = nil
		l.cfg.Mu.Unlock()
		if len(queue) == 0 || frozen {
			return nil
		}
		for _, v := range queue {
			if err := k.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if err := k.conn.WriteJSON(v); err != nil {
				return err
			}
		}
	}
}

// drop breaks a connection silently. The lock is held.
func (l *Line) drop(k *socket) {
	k.leaving = true
	_ = k.conn.NetConn().Close() // whatever it says, the connection is over
}

// HangUp breaks every connection and stops every timer. The lock is held.
func (l *Line) HangUp() {
	for _, k := range l.sockets {
		l.drop(k)
	}
	for _, e := range l.sequence {
		e.settle()
	}
}

// CloseIdleConnections closes idle connections for posts.
func (l *Line) CloseIdleConnections() { l.client.CloseIdleConnections() }
