package memory_test

import (
	"slices"
	"testing"
)

// What cannot be true together with an older fact takes its place, and nothing else does: a fact that
// is lost cannot be asked for.
func TestContradictionsTakeTheirPlace(t *testing.T) {
	for _, c := range []struct {
		old, new string
		gone     bool
	}{
		{"The user's cat is called Minka", "The cat is named Luna now", true},
		{"The user's dog is called Maximilian", "The user's dog is called Max", true},
		{"The name of the boat is Marlin", "The boat's name is Pelican", true},
		{"Die Katze heißt Minka", "Die Katze heißt Luna", true},
		{"Lives in Berlin", "Moved to Munich in June", true},
		{"The user lives in Berlin.", "Lives in Munich", true},
		{"Works at Siemens", "Works for Bosch now", true},
		{"Works as a nurse", "Works as a midwife", true},
		{"Favourite colour is blue", "The favourite colour is green", true},
		{"Device A is a Synology NAS", "Device A is a fnos NAS", true},
		{"The wifi password is bluebird77", "The wifi password is heron12", true},
		{"The stand-up is at 9:15", "The stand-up is at 10", true},
		{"The spare key is under the flowerpot", "The spare key is in the shed", true},
		{"Doctor is Dr Haas", "Doctor is Dr. Brandt", true},
		{"Has two children", "Has three children", true},
		{"Budget for the kitchen is 9,000 euros", "Budget for the kitchen is 12,000 euros", true},
		{"Prefers short answers", "Prefers long answers", true},
		{"Prefers tea in the morning", "Prefers coffee in the morning", true},
		{"Likes tea", "Does not like tea", true},
		{"Eats meat", "The user doesn't eat meat anymore", true},
		{"Works at Siemens", "No longer works at Siemens", true},
		{"Lives in Lisbon", "Lives in Lisbon, Rua da Rosa 12", true}, // which says more
		{"The team meeting is on Tuesday", "The team meeting has moved to Thursday", true},
		{"The deadline for Heron is 1 October", "Heron's deadline was postponed to 15 October", true},
		{"The wifi password is bluebird77", "The new wifi password is heron12", true},
		{"Lives in Lisbon", "Relocated from Lisbon to Porto", true},
		{"Drives a Volvo V60", "Drives a Tesla now", true},
		{"Prefers tea", "Prefers coffee", true},
		{"Is allergic to nuts", "Is not allergic to nuts after all", true},
		{"Son Ben is 7 years old", "Son Ben is eight years old", true},
		{"Ada's car is a VW Golf", "Ada's car is a Tesla", true},
		{"Is vegetarian", "Vegan since January", true},
		{"The flight leaves at 10:20", "The flight leaves at 11:40", true},
		{"The spare key is with Mrs Novak", "The spare key is with Tom", true},
		{"No longer works at Siemens in Munich", "Works at Siemens in Munich", true},
		{"Project Lumen's deadline is 12 November", "Project Lumen is now due on 3 December", true},

		{"Lives in Lisbon, Rua da Rosa 12", "Lives in Lisbon", false}, // which says less
		{"Likes tea", "Likes coffee", false},
		{"Is allergic to nuts", "Is allergic to eggs", false},
		{"Ada is vegetarian", "Ada is allergic to nuts", false},
		{"Ada is a doctor", "Ada is a mother", false},
		{"Ada is a freelance photographer", "Ada is a passionate photographer", false},
		{"Is vegetarian", "Vegan cheese is sold at the corner shop", false},
		{"Likes vegetarian lasagne", "Likes vegan burgers", false},
		{"Speaks German", "Speaks French", false},
		{"Has a cat", "Has a dog", false},
		{"Ada's sister is vegan", "Ada is vegetarian", false},
		{"The bike is blue", "The bike is a Cube", false},
		{"Has a cat called Minka", "Has a cat called Luna", false},
		{"Sister Clara lives in Vienna", "Lives in Graz", false},
		{"The cat is called Minka", "The dog is called Rex", false},
		{"The meeting on Monday begins at 10", "The meeting on Tuesday begins at 11", false},
		{"The meeting is on Monday", "The meeting is at 10", false},
		{"Boss is Ms Okafor", "The boss is strict", false},
		{"Room 12 has a projector", "Room 14 has a projector", false},
		{"Lives in a flat with two cats", "Lives in Berlin", false},
		{"Works at night", "Works at Siemens", false},
		{"Prefers short answers", "Prefers German answers", false},
		{"Prefers tea", "Prefers window seats", false},
		{"The choir is on Tuesday", "The choir is loud", false},
		{"Works at night", "Works at home", false},
		{"Drives to work", "Drives a Tesla", false},
		{"Uses Go for the backend", "Uses PostgreSQL for the backend", false},
		{"Likes tea. Lives in Berlin", "Lives in Munich", false}, // which would lose the tea
		{"Son Paul is called Paulchen by the whole family, plays chess every Monday, and goes to school in Ulm", "Son Paul is called Pauli", false},
	} {
		b := newBench(t, openStore(t))
		b.save(t, ada, "", c.old)
		b.save(t, ada, "", c.new)
		notes, err := b.Notes(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, n := range notes {
			texts = append(texts, n.Text)
		}
		if gone := !slices.Contains(texts, c.old); gone != c.gone {
			t.Errorf("after %q came %q, remembered are %q", c.old, c.new, texts)
		}
	}
}
