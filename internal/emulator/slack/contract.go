package slack

import (
	_ "embed"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON describes the values that Slack's own libraries (the packages @slack/web-api 8.2.0 and
// @slack/types 3.2.0, MIT) read from responses and events, as far as they are emulated.
// TestContractsAreWhatTheTypesSay generates it. Unknown fields pass. [Server.Close] returns the errors of
// values that are sent, which are faults of the emulator.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })
