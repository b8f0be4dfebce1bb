package slack

import (
	_ "embed"
	"encoding/json"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON is what Slack's own libraries (the packages @slack/web-api 8.2.0 and @slack/types 3.2.0,
// MIT) read of answers and events, as far as the emulator plays them; TestContractsAreWhatTheTypesSay
// makes it. Fields that it does not name pass.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// checked holds what is sent against the contract. What is wrong is an error of the emulator, and
// [Server.Close] returns it.
func checked(life *wire.Lifecycle, v any, kind string, further ...string) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own values come here
	}
	life.Broken(contract().Check(body, kind, further...))
}
