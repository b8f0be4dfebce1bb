package memory_test

import (
	"strings"
	"testing"

	"oneclaw/toolgroups/memory"
)

// Texts in five languages are compared in English. What the dictionary lacks stays, such as names.
func TestTextsAreTranslatedWordByWord(t *testing.T) {
	for text, want := range map[string]string{
		"Wann hat meine Mutter Geburtstag?":         "when my mother birthday?",
		"Wer hat meinen Ersatzschlüssel?":           "who my spare key?",
		"Wie heißen meine Blutdrucktabletten?":      "how called my blood pressure pill?",
		"Mara geht jeden Donnerstag zum Chor":       "Mara go every Thursday choir",
		"¿Cuándo es mi aniversario de boda?":        "¿when my anniversary from wedding?",
		"El coche de Hugo es un Seat Ibiza gris":    "car from Hugo Seat Ibiza gris",
		"Quels médicaments dois-je éviter ?":        "which medicine I-I avoid ?",
		"c'est quoi, le mot de passe de ma maison?": "' what, password from my home?",
		"Dove abita mia madre?":                     "where live my mother?",
		"Qual é o nome do meu cão?":                 "which name my dog?",
		"katze?":                                    "cat?",

		"what is my cat called?":   "what is my cat called?", // English
		"Is the gift for the rat?": "Is the gift for the rat?",
		"my chef's hat":            "my chef's hat",
		"Как зовут мою кошку?":     "Как зовут мою кошку?",
		"\xff\xfeKatze":            "\xff\xfecat",
		"":                         "",
	} {
		if got := memory.Translate(text); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestEachWordIsInEachLanguage(t *testing.T) {
	for line := range strings.Lines(memory.TranslationLines()) {
		if columns := strings.Split(line, "|"); !strings.HasPrefix(line, "#") && len(columns) != memory.TranslationColumns {
			t.Errorf("%d columns: %s", len(columns), line)
		}
	}
}
