package telegram

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"oneclaw/internal/emulator/wire"
)

// contractJSON describes the Bot API as the package @grammyjs/types does (version 5.0.0, MIT), as far as
// it is emulated. TestContractsAreWhatTheTypesSay generates it.
//
//go:embed contract.json
var contractJSON []byte

var contract = sync.OnceValue(func() *wire.Contract { return wire.MustContract(contractJSON) })

// ignoredParameters are ignored: those that servers before Bot API 10.3 read, and the name of the method, which a library
// adds to forms (telegraf 4.16.3).
var ignoredParameters = []string{"receiver_user_id", "callback_query_id", "method"}

// methodName returns the name of a method in the Bot API's case, or "" if it is not in the contract.
func methodName(lower string) string {
	for _, name := range slices.Sorted(maps.Keys(contract().Fields("results"))) {
		if strings.ToLower(name) == lower {
			return name
		}
	}
	return ""
}

// checkCall validates an accepted call and its result against the contract. [Server.Close]
// returns the errors, which are faults of the bot or of the emulator.
func (a *api) checkCall(name string, p *wire.Params, result any) {
	name = methodName(name)
	parameters := contract().Fields("parameters", name)
	for _, ignored := range ignoredParameters {
		if parameters[ignored] == nil {
			p.Drop(ignored)
		}
	}
	object := p.EncodeJSON(func(field string) bool { return parameters[field] != nil && parameters[field].Type == "string" })
	if string(object) != "{}" {
		a.updates.life.RecordViolation(contract().Check(object, "parameters", name))
	}
	if name != "getUpdates" { // updates are checked one by one
		a.updates.life.RecordViolation(contract().Check(result, "results", name))
	}
}
