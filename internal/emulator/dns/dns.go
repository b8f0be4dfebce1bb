// Package dns is a name server for tests. Its answers change from query to query, as in DNS
// rebinding.
package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Server answers for configured names, over UDP on loopback.
type Server struct {
	conn net.PacketConn
	done chan struct{}

	mu          sync.Mutex
	answers     map[string][][]netip.Addr
	queryCounts map[string]int
}

// Start starts a server, whose goroutine runs until Close.
func Start(ctx context.Context) (*Server, error) {
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("dns emulator: %w", err)
	}
	s := &Server{conn: conn, done: make(chan struct{}), answers: map[string][][]netip.Addr{}, queryCounts: map[string]int{}}
	go s.serve()
	return s, nil
}

// Close stops the server.
func (s *Server) Close() error {
	err := s.conn.Close()
	<-s.done
	return err
}

// Addr returns the address of the server.
func (s *Server) Addr() string { return s.conn.LocalAddr().String() }

// SetAnswers sets the answers for a name: one list of addresses for each successive query. The last
// list is repeated.
func (s *Server) SetAnswers(name string, answers ...[]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name+"."], s.queryCounts[name+"."] = answers, 0
}

// QueryCount returns how often a name was queried.
func (s *Server) QueryCount(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queryCounts[name+"."]
}

// Resolver returns a resolver that uses the server at an address.
func Resolver(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", address)
	}}
}

func (s *Server) serve() {
	defer close(s.done)
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply, err := s.answer(buf[:n]); err == nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

// answer replies to a query. It counts only queries for IPv4 addresses; those for IPv6 accompany them.
func (s *Server) answer(query []byte) ([]byte, error) {
	var msg dnsmessage.Message
	if err := msg.Unpack(query); err != nil {
		return nil, err
	}
	if len(msg.Questions) != 1 {
		return nil, fmt.Errorf("dns emulator: %d questions", len(msg.Questions))
	}
	q := msg.Questions[0]
	name := q.Name.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	msg.Response, msg.Authoritative, msg.Additionals = true, true, nil
	all, known := s.answers[name]
	if !known || len(all) == 0 {
		msg.RCode = dnsmessage.RCodeNameError
		return msg.Pack()
	}
	now := all[min(s.queryCounts[name], len(all)-1)]
	if q.Type == dnsmessage.TypeA {
		s.queryCounts[name]++
	}
	for _, a := range now {
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			msg.Answers = append(msg.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && !a.Is4():
			msg.Answers = append(msg.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return msg.Pack()
}
