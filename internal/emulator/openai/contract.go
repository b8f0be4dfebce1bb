package openai

import (
	_ "embed"
	"encoding/json"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON is what OpenAI's own library (the package openai 6.49.0, Apache-2.0) sends and reads, as
// far as the emulator plays it; TestContractsAreWhatTheTypesSay makes it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// check holds what was accepted, or is sent, against the contract of the service whose contract that is.
// What is wrong is an error of whoever asked, or of the emulator, and [Server.Close] returns it.
func (s *Server) check(kind string, body []byte) {
	if p := &s.cfg.Personality; p.URL == personalities[0].URL && !p.Parts {
		s.life.Broken(contract().Check(body, kind))
	}
}

func (s *Server) checkValue(kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own values come here
	}
	s.check(kind, body)
}
