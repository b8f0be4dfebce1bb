package telegram

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON is the Bot API as the package @grammyjs/types describes it (version 5.0.0, MIT),
// as far as emulated; TestContractsAreWhatTheTypesSay generates it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// olderParameters were read by servers before Bot API 10.3; newer ones ignore them.
var olderParameters = []string{"receiver_user_id", "callback_query_id"}

// methodName returns a method's name in the Bot API's case, or "" if the contract lacks it.
func methodName(lower string) string {
	for _, name := range slices.Sorted(maps.Keys(contract().Fields("results"))) {
		if strings.ToLower(name) == lower {
			return name
		}
	}
	return ""
}

// checkCall validates an accepted call and its result against the contract. [Server.Close]
// returns the errors, which are the bot's or the emulator's.
func (a *api) checkCall(name string, p *wire.Params, result any) {
	name = methodName(name)
	parameters := contract().Fields("parameters", name)
	for _, older := range olderParameters {
		if parameters[older] == nil {
			p.Drop(older)
		}
	}
	object := p.Object(func(field string) bool { return parameters[field] != nil && parameters[field].Type == "string" })
	if string(object) != "{}" {
		a.updates.life.Broken(contract().Check(object, "parameters", name))
	}
	if name != "getUpdates" { // updates are checked one by one
		a.updates.life.Broken(checkValue(result, "results", name))
	}
}

func checkValue(v any, kind string, further ...string) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return contract().Check(body, kind, further...)
}
