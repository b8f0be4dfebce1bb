package anthropic

import (
	_ "embed"
	"encoding/json"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON is what Anthropic's own library (the package @anthropic-ai/sdk 1.12.0, MIT) sends and
// reads, as far as the emulator plays it; TestContractsAreWhatTheTypesSay makes it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// checkRequest leaves out what the library knew before and some models still take.
func (s *Server) checkRequest(body []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return
	}
	delete(fields, "temperature")
	body, _ = json.Marshal(fields)
	s.check("request", body)
}

// check holds what was accepted, or is sent, against the contract. What is wrong is an error of
// whoever asked, or of the emulator, and [Server.Close] returns it.
func (s *Server) check(kind string, body []byte) {
	s.life.Broken(contract().Check(body, kind))
}
