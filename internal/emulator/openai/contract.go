package openai

import (
	_ "embed"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON describes the values that OpenAI's own library (the package openai 7.59.0, Apache-2.0)
// sends and reads, as far as they are emulated. TestContractsAreWhatTheTypesSay generates it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// check validates a request or response of OpenAI's own API against the contract. [Server.Close]
// returns the errors, which are faults of the client or of the emulator.
func (s *Server) check(kind string, v any) {
	if p := &s.cfg.Profile; p.URL == profiles[0].URL && !p.ContentParts {
		s.life.RecordViolation(contract().Check(v, kind))
	}
}
