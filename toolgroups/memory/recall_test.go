package memory_test

import (
	"slices"
	"testing"
	"time"

	"oneclaw/toolgroups/memory"
)

func TestRecallFindsWhatTheSnapshotDoesNotShow(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "profile", "The sailing boat is called Marlin")
	began := b.now()
	b.save(t, ada, "profile", "The sailing boat has a new anchor")
	b.save(t, ada, "profile", "Likes tea")
	for _, c := range []struct {
		owner, message string
		began          time.Time
		want           int
	}{
		{ada, "what about the anchor of my sailing boat?", began, 1},
		{ada, "what about the anchor of my sailing boat?", b.now().Add(time.Hour), 0}, // all in the snapshot
		{ada, "tea", began, 1},
		{ada, "which beverage do I enjoy?", began, 1},
		{ada, "how is the weather", began, 0},
		{"telegram:2", "what about the anchor of my sailing boat?", began, 0},
	} {
		notes, err := b.Recall(t.Context(), c.owner, c.message, c.began)
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) != c.want {
			t.Errorf("%s, %q: recalled %v, want %d", c.owner, c.message, notes, c.want)
		}
	}
}

// Words are compared in any language, and meanings in English and those of the dictionary.
func TestRecallInOtherLanguages(t *testing.T) {
	b := newBench(t, openStore(t))
	began := b.now()
	for _, fact := range []string{"Мою кошку зовут Минка", "Mój pies nazywa się Reks", "Is allergic to nuts", "The boat lies in Kiel", "Meine Schwester heißt Clara"} {
		b.save(t, ada, "", fact)
	}
	for message, want := range map[string]string{
		"Как зовут мою кошку?":             "Мою кошку зовут Минка",
		"Jak nazywa się mój pies?":         "Mój pies nazywa się Reks",
		"Soy alérgico a las nueces, ¿no?":  "Is allergic to nuts",
		"What is my sister's name?":        "Meine Schwester heißt Clara",
		"Où est mon bateau ?":              "The boat lies in Kiel",
		"Какая погода будет завтра утром?": "",
		"Jaka będzie jutro pogoda?":        "",
	} {
		notes, err := b.Recall(t.Context(), ada, message, began)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && len(notes) > 0 || want != "" && (len(notes) != 1 || notes[0].Text != want) {
			t.Errorf("%q recalls %v", message, notes)
		}
	}
}

// The fact that answers is recalled, with those that are near it, and none for a request that is not about
// the sender.
func TestRecallShowsWhatComesNear(t *testing.T) {
	b := newBench(t, openStore(t))
	began := b.now()
	for _, fact := range []string{
		"Lives in Leeds", "Ada's parents live in York", "The cat needs a pill every evening", "The dog eats dry food",
		"The landlord is Ms Ito", "The previous landlord was Mr Novak", "Project Falcon is due on 3 May", "Project Osprey is due on 9 June",
	} {
		b.save(t, ada, "", fact)
	}
	for message, want := range map[string]string{
		"where do I live?":                  "Lives in Leeds",
		"where do my parents live?":         "Ada's parents live in York",
		"what does my pupppy eat?":          "The dog eats dry food",
		"which of my pets takes a pill?":    "The cat needs a pill every evening",
		"who is my landlord?":               "The landlord is Ms Ito",
		"who was my former landlord?":       "The previous landlord was Mr Novak",
		"when is falcon due":                "Project Falcon is due on 3 May",
		"translate landlord into French":    "",
		"who invented the pill?":            "",
		"write a limerick about a dog":      "",
		"thanks, good night":                "",
		"is York bigger than Leeds?":        "",
		"what is 3 times 9":                 "",
		"tell me about the French language": "",
	} {
		notes, err := b.Recall(t.Context(), ada, message, began)
		if err != nil {
			t.Fatal(err)
		}
		isFound := slices.ContainsFunc(notes, func(n memory.Note) bool { return n.Text == want })
		if isFound != (want != "") || len(notes) > 2 || want == "" && len(notes) > 0 {
			t.Errorf("%q recalls %v", message, notes)
		}
	}
}
