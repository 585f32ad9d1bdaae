package world

import "testing"

// Each group is one value in several spellings; values of different groups of a
// type differ.
var spellings = map[Type][][]string{
	"account": {
		{"DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "de89-3704-0044-0532-0130-00", "IBAN: DE89 3704 0044 0532 0130 00"},
		{"DE89 3704 0044 0532 0130 01"}, {"GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"},
		{"DE89 3704 0044 0532 0130"}, {"12-345-678", "12345678"}, {"12345679"},
	},
	"mailbox": {
		{"dana@norvik.example", "Dana Tolwick <dana@norvik.example>", "DANA@Norvik.example", "mailto:dana@norvik.example",
			"<dana@norvik.example>"},
		{"dana@norvik.example.test"}, {"dana@norvik.test"}, {"dana.t@norvik.example"}, {"ddana@norvik.example"},
	},
	"phone": {
		{"+49 30 1234 567", "+49301234567", "0049 30 1234567", "+49 (0)30 1234-567", "tel:+49301234567"},
		{"+49 30 1234 568"}, {"030 1234 567", "(030) 1234567"}, {"+48 30 1234 567"}, {"+49 30 1234 5670"},
	},
	"url": {
		{"https://pay.norvik.example/in", "HTTPS://PAY.norvik.example/in", "https://pay.norvik.example:443/in/",
			"pay.norvik.example/in", "https://pay.norvik.example/in#top", "<https://pay.norvik.example/in>",
			"https://pay.norvik.example/a/../in"},
		{"http://pay.norvik.example/in"}, {"https://pay.norvik.example/In"}, {"https://pay.norvik.example/in?x=1"},
		{"https://pay.norvik.example", "https://pay.norvik.example/"}, {"https://pay.norvik.example.test/in"},
		{"https://pay-norvik.example/in"}, {"https://pay.norvik.example:8443/in"}, {"https://pay.norvik.example/in/2"},
	},
	"host":    {{"relay.norvik.example", "Relay.Norvik.example."}, {"relay2.norvik.example"}, {"norvik.example"}},
	"path":    {{"/srv/a/b.csv", "/srv//a/./b.csv", `"/srv/a/b.csv"`}, {"/srv/a/B.csv"}, {"srv/a/b.csv", "./srv/a/b.csv"}, {"/srv/a/b"}},
	"channel": {{"#ops", "ops", "#Ops"}, {"#ops-eu"}, {"#op"}},
	"handle":  {{"@dana", "dana", "@Dana"}, {"@dana2"}},
	"package": {{"norvik-index", "norvik_index", "Norvik-Index"}, {"norvik-indexer"}, {"norvikindex"}},
	"version": {{"1.4.0", "v1.4.0", "version 1.4.0", "V1.4.0"}, {"1.4.1"}, {"1.4"}, {"1.4.0-rc1"}},
	"command": {
		{"make deploy JOBS=4", "$ make deploy JOBS=4", "`make deploy  JOBS=4`", `make "deploy" 'JOBS=4'`},
		{"make deploy JOBS=8"}, {"make deploy"}, {"make deploy JOBS=4 && rm -rf x", "make  deploy JOBS=4 && rm -rf x"}, {"Make deploy JOBS=4"},
	},
	"code":   {{"NRV-48213", "nrv 48213", "NRV48213"}, {"NRV-48214"}, {"NRV-4821"}},
	"name":   {{"Brandt Optik", "brandt  optik", `"Brandt Optik"`}, {"Brandt Optik GmbH"}, {"Brandt"}, {"Brand Optik"}},
	"title":  {{"Vote on Kite Trial", "vote on  kite trial", `"Vote on Kite Trial"`}, {"Kite Trial"}, {"Vote on Kite Trail"}},
	"choice": {{"two-factor", "Two factor", "two_factor"}, {"one-factor"}, {"two factors"}},
	"switch": {{"on", "Yes", "true", "enabled"}, {"off", "no", "disabled", "0"}},
	"money": {
		{"EUR 480", "480 €", "€480.00", "480,00 EUR", "480 euros", "€ 480,-"}, {"EUR 480.10", "480,10 €"}, {"USD 480", "$480"}, {"EUR 48"},
		{"EUR 1250.50", "1,250.50 EUR", "1.250,50 €", "EUR 1 250.50", "€1'250.50"}, {"EUR 1250"}, {"EUR 1250.05"}, {"GBP 1250.50", "£1,250.50"},
		{"CHF 1000", "1.000 CHF", "CHF 1,000"}, {"CHF 1"},
	},
	"number":   {{"1250", "1,250", "1 250", "1250.0", "01250"}, {"1250.5"}, {"125"}, {"-1250", "−1,250"}, {"0", "0.0", "-0"}},
	"percent":  {{"5%", "5 %", "5 percent", "5.0 per cent"}, {"50%"}, {"0.5%"}},
	"date":     {{"2026-06-14", "14 June 2026", "June 14, 2026", "14.06.2026", "14/06/2026", "Sunday, 14 June 2026", "14th of June 2026", "14 Jun 2026"}, {"2026-06-15"}, {"2025-06-14"}, {"2026-07-14"}},
	"time":     {{"14:30", "2:30 pm", "2:30 PM", "14.30", "14h30", "2:30 p.m."}, {"02:30", "2:30 am"}, {"14:03"}, {"12:00", "noon", "12 pm"}, {"00:00", "midnight"}},
	"datetime": {{"2026-06-14 14:30", "2026-06-14T14:30", "14 June 2026 at 2:30 pm", "14:30, 14 June 2026", "2026-06-14T14:30:00Z", "2026-06-14T16:30:00+02:00"}, {"2026-06-14 14:31"}, {"2026-06-15 14:30"}},
	"duration": {{"90 minutes", "1.5 hours", "1 h 30 min", "1 hour and 30 minutes", "90-minute"}, {"90 hours"}, {"9 minutes"}, {"2 weeks", "14 days"}},
	"[mailbox]": {
		{"a@x.example, b@x.example", "b@x.example; a@x.example", "a@x.example and b@x.example", "A <a@x.example>, b@x.example, a@x.example",
			"a@x.example,b@x.example"},
		{"a@x.example"}, {"a@x.example, c@x.example"}, {"a@x.example, b@x.example, c@x.example"},
	},
}

func TestSpellings(t *testing.T) {
	equal, different := 0, 0
	for typ, groups := range spellings {
		for i, g := range groups {
			for _, s := range g {
				if _, err := typ.Canonical(s); err != nil {
					t.Error(err)
				}
				if s != g[0] {
					equal++
				}
				if !typ.Equal(s, g[0]) {
					t.Errorf("%s: %q and %q are the same, not %q and %q", typ, s, g[0], typ.form(s), typ.form(g[0]))
				}
				for _, h := range groups[i+1:] {
					for _, o := range h {
						different++
						if typ.Equal(s, o) {
							t.Errorf("%s: %q and %q differ, but both are %q", typ, s, o, typ.form(s))
						}
					}
				}
			}
		}
	}
	if equal < 60 || different < 60 {
		t.Errorf("%d equal spellings and %d different ones: want 60 of each", equal, different)
	}
	for typ := range canonical {
		if typ != FreeText && spellings[typ] == nil {
			t.Errorf("type %s has no spellings here", typ)
		}
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	for typ, bad := range map[Type][]string{
		"account": {"soon", "DE89 3704; drop"}, "mailbox": {"dana", "dana@", "a@b@c", "a b@c.example"}, "money": {"480", "EUR", "$5 USD", "4 apples"},
		"date": {"tomorrow", "14 June", "2026-13-01"}, "time": {"25:00", "later"}, "number": {"ten", "1,25", "."}, "switch": {"maybe"},
		"url": {"https://", "norvik", "http://a b.example"}, "colour": {"red"}, "percent": {"5"}, "duration": {"long", "5"},
	} {
		for _, s := range bad {
			if c, err := typ.Canonical(s); err == nil {
				t.Errorf("%s: %q is taken for %q", typ, s, c)
			}
			if !typ.Equal(s, s) || typ.Equal(s, s+"x") {
				t.Errorf("%s: %q is the same as itself alone", typ, s)
			}
		}
	}
}
