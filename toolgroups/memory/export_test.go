package memory

// Translate returns a text in English, as the ranking compares it.
func Translate(text string) string { return newLexicon().translate(text) }

// TranslationColumns is the number of columns of the dictionary.
const TranslationColumns = languages + 1

// TranslationLines returns the file of the dictionary.
func TranslationLines() string { return translations }
