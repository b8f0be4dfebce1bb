package slack

import (
	_ "embed"
	"encoding/json"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON describes the values that Slack's own libraries (the packages @slack/web-api 8.2.0 and
// @slack/types 3.2.0, MIT) read from responses and events, as far as they are emulated.
// TestContractsAreWhatTheTypesSay generates it. Unknown fields pass.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// checkSent validates a value that is sent against the contract. [Server.Close] returns the errors,
// which are faults of the emulator.
func checkSent(life *wire.Lifecycle, v any, kind string, further ...string) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own values
	}
	life.RecordViolation(contract().Check(body, kind, further...))
}
