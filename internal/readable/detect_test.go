package readable_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"oneclaw/internal/readable"
)

func TestTheEncodingOfAShortTableIsGuessed(t *testing.T) {
	const (
		russian = "Имя;Город;Сумма\r\nИван Петров;Москва;1200\r\nАнна Смирнова;Казань;340\r\n"
		polish  = "Imię;Miasto;Kwota\r\nŁukasz Żółć;Łódź;1200\r\nAgnieszka Święta;Gdańsk;340\r\n"
		german  = "Name;Stadt;Betrag\r\nJörg Müller;Köln;1200\r\nJürgen Groß;Düsseldorf;340\r\n"
		table   = "名前,都市,金額\r\n山田太郎,東京,1200\r\n佐藤花子,大阪,340\r\n"
	)
	for name, tc := range map[string]struct {
		in   encoding.Encoding
		text string
	}{
		"Russian, Windows":     {charmap.Windows1251, russian},
		"Russian, KOI8":        {charmap.KOI8R, russian},
		"Russian, DOS":         {charmap.CodePage866, russian},
		"Polish, Windows":      {charmap.Windows1250, polish},
		"Polish, ISO":          {charmap.ISO8859_2, polish},
		"Czech":                {charmap.Windows1250, "Jméno;Město;Částka\r\nTomáš Dvořák;Plzeň;1200\r\nJiří Černý;České Budějovice;340\r\n"},
		"German":               {charmap.Windows1252, german},
		"German, one name":     {charmap.Windows1252, "Name;City\r\nMüller;Berlin\r\n"},
		"French":               {charmap.Windows1252, "Nom;Ville;Montant\r\nRené Lefèvre;Besançon;1200 €\r\nFrançoise Hélène;Orléans;340 €\r\n"},
		"Spanish":              {charmap.Windows1252, "Nombre;Ciudad;Importe\r\nÍñigo Muñoz;Cádiz;1200\r\nMaría Peña;León;340\r\n"},
		"English quotes":       {charmap.Windows1252, "Name;Note\r\nSmith;it’s “fine” – ok\r\n"},
		"prices":               {charmap.Windows1252, "item;price\r\ncoffee;3 €\r\nroom;25 m², 21 °C\r\n"},
		"one name among lines": {charmap.Windows1252, strings.Repeat("id;qty;price\r\n123;4;5.60\r\n", 20) + "777;1;Müller\r\n"},
		"Turkish":              {charmap.Windows1254, "İsim;Şehir;Tutar\r\nÇağrı Güneş;İstanbul;1200\r\nIşıl Şahin;Eskişehir;340\r\n"},
		"Hebrew":               {charmap.Windows1255, "שם;עיר;סכום\r\nדוד כהן;תל אביב;1200\r\nשרה לוי;חיפה;340\r\n"},
		"Arabic":               {charmap.Windows1256, "الاسم;المدينة;المبلغ\r\nأحمد علي;القاهرة;1200\r\n"},
		"Greek, ISO":           {charmap.ISO8859_7, "Πόλη;Ποσό\r\nΓιώργος Παπαδόπουλος;1200\r\n"},
		"Japanese, Shift_JIS":  {japanese.ShiftJIS, table},
		"Japanese, EUC":        {japanese.EUCJP, table},
		"Korean":               {korean.EUCKR, "이름,도시,금액\r\n김철수,서울,1200\r\n이영희,부산,340\r\n"},
		"Chinese":              {simplifiedchinese.GBK, "姓名,城市,金额\r\n王小明,北京,1200\r\n李华,上海,340\r\n"},
		"Chinese, Taiwan":      {traditionalchinese.Big5, "姓名,城市,金額\r\n王小明,臺北,1200\r\n李華,高雄,340\r\n"},
	} {
		data, err := tc.in.NewEncoder().Bytes([]byte(tc.text))
		if err != nil {
			t.Fatal(name, err)
		}
		guess, e := readable.DetectEncoding(data)
		if got, err := e.NewDecoder().Bytes(data); err != nil || string(got) != tc.text {
			t.Errorf("%s: read as %s: %s (%v)", name, guess, got, err)
		}
		if got := readable.Decode(data, ""); got != tc.text {
			t.Errorf("%s: decoded as %s", name, got)
		}
	}
}
