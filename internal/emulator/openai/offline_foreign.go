package openai

import "regexp"

// foreignWords are words of German, Spanish and French with which people ask for a reminder or the time, and
// those of times beside them, with what they are in English, in the order in which they are replaced.
var foreignWords = func() (list []foreignWord) {
	for _, pair := range [][2]string{
		{`erinner\w* mich(?: bitte)?|recuérdame|rappelle[- ]moi`, "remind me"},
		{`wie (?:spät|viel uhr) ist es(?: gerade| jetzt)?|¿?qué hora es(?: ahora)?|quelle heure est[- ]il`, "what time is it"},
		{`what time is it (?:en|à) `, "what time is it in "},
		{`übermorgen|pasado mañana|après[- ]demain`, "the day after tomorrow"},
		{`heute abend|esta noche|ce soir`, "tonight"}, {`heute|hoy|aujourd['’]hui`, "today"}, {`morgen(?: früh)?|mañana|demain`, "tomorrow"},
		{`(?:jede[nrs]?|cada|todos los|chaque|tous les) (?:tag|d[ií]as?|jours?)`, "every day"}, {`jede[nrs]?|cada|todos los|chaque|tous les`, "every"},
		{`(?:am )?(?:nächste[nrs]? )?montags?|(?:el )?lunes|lundi`, "on monday"}, {`(?:am )?(?:nächste[nrs]? )?dienstags?|(?:el )?martes|mardi`, "on tuesday"},
		{`(?:am )?(?:nächste[nrs]? )?mittwochs?|(?:el )?miércoles|mercredi`, "on wednesday"}, {`(?:am )?(?:nächste[nrs]? )?donnerstags?|(?:el )?jueves|jeudi`, "on thursday"},
		{`(?:am )?(?:nächste[nrs]? )?freitags?|(?:el )?viernes|vendredi`, "on friday"}, {`(?:am )?(?:nächste[nrs]? )?samstags?|(?:el )?sábado|samedi`, "on saturday"},
		{`(?:am )?(?:nächste[nrs]? )?sonntags?|(?:el )?domingo|dimanche`, "on sunday"},
		{`every on`, "every"},
		{`(?:um|a las?|à) (\d{1,2}(?:[:.]\d{2})?)(?: ?(?:uhr|h|heures?))?`, "at $2"},
		{`(?:am|el|le) (\d{1,2})`, "on the ${2}th"},
		{`(?:in|en|dans) (?:eine[rnm]?|una?|une)`, "in a"}, {`(?:en|dans) (\d)`, "in $2"},
		{`in (\d+|a) minut\p{L}*`, "in $2 minutes"}, {`in (\d+|a) (?:stunden?|horas?|heures?)`, "in $2 hours"}, {`in (\d+|a) (?:tage?n?|d[ií]as?|jours?)`, "in $2 days"},
	} {
		list = append(list, foreignWord{regexp.MustCompile(`(?i)(^|[^\p{L}])(?:` + pair[0] + `)(?:\b|$)`), "${1}" + pair[1]})
	}
	return list
}()

type foreignWord struct {
	from *regexp.Regexp
	to   string
}

// inEnglish puts a request for a reminder or the time into English, as far as the rules need it.
func inEnglish(said string) string {
	if !foreignWords[0].from.MatchString(said) && !foreignWords[1].from.MatchString(said) {
		return said
	}
	for _, w := range foreignWords {
		said = w.from.ReplaceAllString(said, w.to)
	}
	return said
}
