package anthropic

import (
	_ "embed"
	"encoding/json"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON describes the values that Anthropic's own library (the package @anthropic-ai/sdk 1.14.0,
// MIT) sends and reads, as far as they are emulated. TestContractsAreWhatTheTypesSay generates it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// checkRequest validates a request. It ignores temperature, which some models still accept although the
// library no longer has it.
func (s *Server) checkRequest(body []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return
	}
	delete(fields, "temperature")
	body, _ = json.Marshal(fields)
	s.check("request", body)
}

// check validates a request or response against the contract. [Server.Close] returns the errors, which
// are faults of the client or of the emulator.
func (s *Server) check(kind string, body []byte) {
	s.life.RecordViolation(contract().Check(body, kind))
}
