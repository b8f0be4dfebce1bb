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

// contractJSON is the Bot API as the package @grammyjs/types describes it (version 5.0.0, MIT), as
// far as the emulator plays it; TestContractsAreWhatTheTypesSay makes it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// olderParameters are those that servers before Bot API 10.3 read, which newer ones ignore.
var olderParameters = []string{"receiver_user_id", "callback_query_id"}

// methodName is a method as the Bot API writes it, empty where the contract does not have it.
func methodName(lower string) string {
	for _, name := range slices.Sorted(maps.Keys(contract().Fields("results"))) {
		if strings.ToLower(name) == lower {
			return name
		}
	}
	return ""
}

// checkCall holds an accepted call and its result against the contract: what is wrong is an error of
// whoever called, or of the emulator, and [Server.Close] returns it.
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
