package openai

import "regexp"

// asksForeign matches how people ask for a reminder or the time in German, Spanish and French.
var asksForeign = regexp.MustCompile(`(?i)\berinner\w* mich\b|\brecuérdame\b|\brappelle[- ]moi\b|\bwie (?:spät|viel uhr) ist es\b|\bqué hora es\b|\bquelle heure est[- ]il\b`)

// foreignWords are these words and those of times beside them, with what they are in English, in the order in which
// they are replaced.
var foreignWords = [...][2]string{
	{`erinner\w* mich(?: bitte)?|recuérdame|rappelle[- ]moi`, "remind me"},
	{`wie (?:spät|viel uhr) ist es(?: gerade| jetzt)?|¿?qué hora es(?: ahora)?|quelle heure est[- ]il`, "what time is it"},
	{`what time is it (?:en|à) `, "what time is it in "},
	{`übermorgen|pasado mañana|après[- ]demain`, "the day after tomorrow"},
	{`heute abend|esta noche|ce soir`, "tonight"},
	{`heute|hoy|aujourd['’]hui`, "today"},
	{`morgen(?: früh)?|mañana|demain`, "tomorrow"},
	{`(?:jede[nrs]?|cada|todos los|chaque|tous les) (?:tag|d[ií]as?|jours?)`, "every day"},
	{`jede[nrs]?|cada|todos los|chaque|tous les`, "every"},
	{`(?:am )?(?:nächste[nrs]? )?montags?|(?:el )?lunes|lundi`, "on monday"},
	{`(?:am )?(?:nächste[nrs]? )?dienstags?|(?:el )?martes|mardi`, "on tuesday"},
	{`(?:am )?(?:nächste[nrs]? )?mittwochs?|(?:el )?miércoles|mercredi`, "on wednesday"},
	{`(?:am )?(?:nächste[nrs]? )?donnerstags?|(?:el )?jueves|jeudi`, "on thursday"},
	{`(?:am )?(?:nächste[nrs]? )?freitags?|(?:el )?viernes|vendredi`, "on friday"},
	{`(?:am )?(?:nächste[nrs]? )?samstags?|(?:el )?sábado|samedi`, "on saturday"},
	{`(?:am )?(?:nächste[nrs]? )?sonntags?|(?:el )?domingo|dimanche`, "on sunday"},
	{`every on`, "every"},
	{`(?:um|a las?|à) (\d{1,2}(?:[:.]\d{2})?)(?: ?(?:uhr|h|heures?))?`, "at $2"},
	{`(?:am|el|le) (\d{1,2})`, "on the ${2}th"},
	{`(?:in|en|dans) (?:eine[rnm]?|una?|une)`, "in a"},
	{`(?:en|dans) (\d)`, "in $2"},
	{`in (\d+|a) minut\p{L}*`, "in $2 minutes"},
	{`in (\d+|a) (?:stunden?|horas?|heures?)`, "in $2 hours"},
	{`in (\d+|a) (?:tage?n?|d[ií]as?|jours?)`, "in $2 days"},
}

// inEnglish puts a request for a reminder or the time into English, as far as the rules need it.
func inEnglish(said string) string {
	if asksForeign.MatchString(said) {
		for _, pair := range foreignWords {
			said = regexp.MustCompile(`(?i)(^|[^\p{L}])(?:`+pair[0]+`)(?:\b|$)`).ReplaceAllString(said, "${1}"+pair[1])
		}
	}
	return said
}
