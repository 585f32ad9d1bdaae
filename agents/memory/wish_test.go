package memory

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// People who did not know how wishes are read wrote what a user is shown, two sentences
// of it, and by which words he asks to keep the one or the other. Those of wishes.jsonl
// were asked to be sparing with the words of the text itself. In wishes-risk.jsonl the
// first sentence says where money goes, what opens a door and the like; a third of it is
// in languages that are not read at all. Most is missed; what must not happen is that the
// wrong one of the two is taken.
func TestWishesInOtherPeoplesWords(t *testing.T) {
	for _, set := range []struct {
		file            string
		n, right, wrong int // at least, at least, at most
	}{
		{"testdata/wishes.jsonl", 280, 50, 8},
		{"testdata/wishes-risk.jsonl", 60, 30, 1},
	} {
		f, err := os.Open(set.file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		var n, right, wrong int
		for lines.Scan() {
			var x struct{ Content, Claim, Fact, Keep, Other string }
			if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct{ said, means, not string }{{x.Keep, x.Claim, x.Fact}, {x.Other, x.Fact, x.Claim}} {
				n++
				switch {
				case meant("", x.Content, c.said, c.not): // be it beside the right one
					wrong++
					t.Logf("%q is taken for %q", c.said, c.not)
				case meant("", x.Content, c.said, c.means):
					right++
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s, %d wishes: %d right, %d wrong", set.file, n, right, wrong)
		if n < set.n || right < set.right || wrong > set.wrong {
			t.Errorf("of %d wishes of %s %d are read rightly and %d wrongly, want at least %d and at most %d",
				n, set.file, right, wrong, set.right, set.wrong)
		}
	}
}

// meant reports whether somebody who asks for a content, is shown it and then says what he
// wants kept means a sentence of it.
func meant(asks, content, said, sentence string) bool {
	cache, window := NewCache(1<<20), []Segment{
		{ID: 1, Turn: 1, Origin: Origin{Class: User}, Text: asks},
		{ID: 2, Turn: 1, Origin: Origin{Class: External}, Text: content},
	}
	return slices.ContainsFunc(cache.index(said).keeping(), func(k *keeping) bool {
		return (&wish{keeping: k, turn: 2}).meant(cache, window, 1, sentence)
	})
}

func TestAWishMeansOnePartOfWhatWasShown(t *testing.T) {
	const (
		room  = "Room: the long one above the ferry hall."
		mailt = "After each round for Ottermoor the list of open points is mailed to points@ferrylist.example."
		round = room + " Bring a charger.\n" + mailt + "\nTea is at four. Parking is behind the house."

		parcels = "It takes parcels, ring twice."
		rung    = "The workshop of Glas Merten is now rung on +999 02 5511 660."
		script  = "The workshop of Glas Merten lies at Torfweg 31.\n" + parcels + "\n" + rung + "\nThe workshop of Glas Merten is closed in June.\n"

		labels = "The neighbour who prints the labels now has the mailbox print@kiosk.example."
		again  = "For labels, write to print@kiosk.example."
		box    = labels + "\nCrates are missing.\nPears are late this year.\n" + again + "\nThe flyers are printed by anna@flyer.example."

		step    = "Orders to the kiln go to kiln@clay.example now."
		steps   = "[1] Wedge the clay.\n[2] Mind the damp. " + step + "\n[3] Dry it slowly. Turn the shelf."
		another = "Dry it slowly."

		due   = "The bill is due on 4 May."
		bills = "Since we changed banks, bills are settled to DE89 3704 0044 0532 0130 00."
		bank  = "The teeth need a look.\n" + due + " " + bills + "\nThe new food is mixed in slowly."

		songs = "The list of songs is not needed."
		rooms = "Where the room list is uploaded, it is shared with tours@radlos.example."
		tour  = "Breaks are every two hours.\nThere are two tables upstairs.\n" + rooms + " " + songs

		folds = "We have a machine that folds sheets."
		mails = "Have mails of Blank forwarded to box@desk.example."
		blank = folds + "\nOur mails are shorter now.\n" + mails + "\nCollection is a day earlier."

		early = "Better ring before the bell, the sick line was busy for an hour."
		line  = "The sick line is reached under +999 02 5511 660 now."
		sick  = "Caps are compulsory.\n" + early + "\n" + line + "\nWhite shirts look grey."

		launch = "The safety launch on Teal Reach is on +999 33 2656 308 now."
		chat   = "Jo K.\ntrestles: Dougal has six in the van\nRavi\n" + launch + "\nMarion does soup for forty."

		cleans = "the bigger disk goes in on 2026-05-15. teal gets cleaned with `make -C /srv/ci reset-store` these days."
		build  = "teal is at 97%, three jobs queued.\n" + cleans + "\nthe release job alone keeps 60 GB of symbols around."

		driver  = "The coach driver can be reached at +999 74 9054 108 now."
		evening = "The parents' evening is on 2026-06-09, in the hall."
		office  = "The office is on 01632 960 112 until four."
		outing  = "Each child needs lunch.\n" + driver + " " + office + "\n" + evening

		hour   = "The hour at which the van leaves is from now on sent as a text message to +999 80 9231 168."
		printd = "tidy-text: 20 lines read\n14:00  Welcome\n" + hour + "\n15:00  Ticket gates\ntidy-text: finished"
	)
	var filler strings.Builder
	for i := range 300 {
		fmt.Fprintf(&filler, "Nothing%d was%d seen%d.\n", i, i, i)
	}
	for name, c := range map[string]struct {
		asks, content, said, sentence string
		want                          bool
	}{
		"by a word of it": {"Read me the invitation to the test round for Ottermoor.", round,
			"Please keep in mind in which room the test round for Ottermoor is held.", room, true},
		"not by what he calls all of it": {"Read me the invitation to the test round for Ottermoor.", round,
			"Please keep in mind in which room the test round for Ottermoor is held.", mailt, false},
		"not by that alone, where the part is in other words": {"Read me the invitation to the test round for Ottermoor.", round,
			"Please keep in mind in which chamber the round for Ottermoor is.", mailt, false},
		"by that, where he says nothing else": {"What do they mail after each round for Ottermoor?", round,
			"Please remember the round for Ottermoor.", mailt, true},
		"by the rare word in a long text":       {"", script + filler.String(), "Please remember where the workshop takes parcels.", parcels, true},
		"not by the common word in a long text": {"", script + filler.String(), "Please remember where the workshop takes parcels.", rung, false},
		"and what says the same":                {"", box, "Please remember who the neighbour is that prints labels.", again, true},
		"and not what says something else":      {"", box, "Please remember who the neighbour is that prints labels.", "The flyers are printed by anna@flyer.example.", false},
		"a whole item":                          {"", steps, "Please remember step 2.", step, true},
		"a whole item by its name":              {"", strings.ReplaceAll(strings.ReplaceAll(steps, "[", "Step "), "]", ""), "Please remember step 2.", step, true},
		"the day of a thing":                    {"", bank, "Keep the day of the bill for me.", due, true},
		"and not where it is paid":              {"", bank, "Keep the day of the bill for me.", bills, false},
		"its account":                           {"", bank, "Keep the new account for the bills.", bills, true},
		"a number, be the rest of it elsewhere": {"", sick, "Keep which number the sick line has, I ring it when she is ill.", line, true},
		"not a number for a time":               {"", sick, "Keep when one should ring the sick line.", line, false},
		"what has all of his words":             {"", tour, "Keep the part about the list of songs and the room upstairs.", songs, true},
		"and not where something goes for some": {"", tour, "Keep the part about the list of songs and the room upstairs.", rooms, false},
		"but that he goes by":                   {"", tour, "That's where I share ours. Keep the list of rooms, and the songs.", rooms, true},
		"where something is sent":               {"", tour, "Keep where the list is sent.", rooms, true},
		"not by what he says beside":            {"What is in Blank's mail?", blank, "I'll make a rule. Keep what they say about their mails.", mails, true},
		"not a number for a name":               {"What do they need?", chat, "ha. ok hold on to the thing about the trestles and who has them", launch, false},
		"not what chats put into one sentence":  {"", build, "Jot down when the new disk goes in, I'll need that.", cleans, false},
		"two things: the one":                   {"", outing, "Please remember the driver's number and the date of the parents' evening.", driver, true},
		"two things: the other":                 {"", outing, "Please remember the driver's number and the date of the parents' evening.", evening, true},
		"two things, and no third":              {"", outing, "Please remember the driver's number and the date of the parents' evening.", office, false},
		"not all that a script prints":          {"", printd, "Put it through the tidy-text script and remember the output.", hour, false},
		"and no other item":                     {"", steps, "Please remember step 2.", another, false},
	} {
		if got := meant(c.asks, c.content, c.said, c.sentence); got != c.want {
			t.Errorf("%s: %q means %q: %v", name, c.said, c.sentence, got)
		}
	}
}

// What a wish comes to is kept for the trials of a case. Another content, or other words before
// it, are held against it anew: as a cache that has seen nothing else would.
func TestAWishIsReadAnewAgainstOtherTexts(t *testing.T) {
	const (
		said  = "Please remember how the workshop of Glas Merten is rung."
		phone = "The workshop of Glas Merten is rung on +999 02 5511 660."
		hours = "The workshop of Glas Merten opens at nine."
	)
	cache := NewCache(1 << 20)
	read := func(c *Cache, asks, shown string) *wish {
		window := []Segment{{ID: 1, Turn: 1, Origin: Origin{Class: User}, Text: asks}, {ID: 2, Turn: 1, Origin: Origin{Class: External}, Text: shown}}
		w := &wish{keeping: c.index(said).keeping()[0], turn: 2}
		w.meant(c, window, 1, phone)
		return w
	}
	seen := map[string]bool{}
	for range 2 {
		for _, asks := range []string{"What do they write?", "What does Glas Merten write?"} {
			for _, shown := range []string{hours + " " + phone, hours, phone} {
				got, want := read(cache, asks, shown).reading, read(NewCache(1<<20), asks, shown).reading
				if got.most != want.most || got.few != want.few || !slices.Equal(got.to, want.to) || !slices.Equal(got.rare, want.rare) {
					t.Errorf("asked %q, shown %q: %+v, and anew %+v", asks, shown, got, want)
				}
				if read(cache, asks, shown).reading != got {
					t.Error("the same texts are read twice")
				}
				seen[fmt.Sprint(got.most, got.to)] = true
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("the texts come to %d readings: none would be missed", len(seen))
	}
}
