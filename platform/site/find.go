package site

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"partnerapi/domain"
)

// This file searches the guides for programs that cannot run the search of the pages (assets/search.js). It ranks the same
// entries by the same words, stems and weights, without spelling mistakes.

// Passage is a part of a guide that a search found.
type Passage struct {
	// Title is the title of the guide, and of the section unless the passage is the beginning of the guide.
	Title string
	// Path is the path of the page with the id of the section, below the root.
	Path string
	// Text is the text of the section, or the part of it with the words that were searched for.
	Text string
}

const (
	// titleBoost and wordsBoost are the weights of a word in the title and in the search words, compared to the text.
	titleBoost, wordsBoost = 4, 6
	// saturation and lengthShare are the parameters of BM25: how soon more of the same word stop counting, and how much
	// long texts lose.
	saturation, lengthShare = 1.2, 0.7
	// maxPassage is the length of the text of a passage, in characters, and beforeMatch how much of it may come before the
	// first word that was searched for.
	maxPassage, beforeMatch = 1500, 300
)

// finder searches entries.
type finder struct {
	entries []*entry
	// counts has, for each entry, how often it has each stem, weighted by where; lengths are the sums.
	counts  []map[string]float64
	lengths []float64
	average float64 // of lengths
	// having is the number of entries with a stem.
	having map[string]float64
}

// newFinder returns a finder of the entries that have a text.
func newFinder(entries []*entry) *finder {
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.Text == "" })
	f := &finder{entries: entries, having: map[string]float64{}}
	for _, e := range entries {
		counts, length := map[string]float64{}, 0.0
		for text, boost := range map[string]float64{e.Title: titleBoost, e.Words: wordsBoost, e.Place: 1, e.Text: 1} {
			for _, word := range wordsOf(text) {
				counts[stemOf(word)] += boost
				length++
			}
		}
		for stem := range counts {
			f.having[stem]++
		}
		f.counts, f.lengths = append(f.counts, counts), append(f.lengths, length)
		f.average += length / float64(len(entries))
	}
	return f
}

// find returns up to limit entries that match a query, the best first: an entry is better the more of the query's stems it
// has, and the rarer these are.
func (f *finder) find(query string, limit int) []*entry {
	stems := stemsOf(query)
	type match struct {
		*entry
		score float64
	}
	var found []match
	for i, e := range f.entries {
		score, has := 0.0, 0.0
		for _, stem := range stems {
			count := f.counts[i][stem]
			if count == 0 {
				continue
			}
			has++
			rarity := math.Log(1 + (float64(len(f.entries))-f.having[stem]+0.5)/(f.having[stem]+0.5))
			score += rarity * count * (saturation + 1) / (count + saturation*(1-lengthShare+lengthShare*f.lengths[i]/f.average))
		}
		if has > 0 {
			found = append(found, match{e, score * e.Weight * has / float64(len(stems))})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(b.score, a.score) })
	var list []*entry
	for _, m := range found[:min(limit, len(found))] {
		list = append(list, m.entry)
	}
	return list
}

// Search returns up to limit passages of the guides for partners that match a query, the best first, for a service at an
// address (without a trailing slash). It returns an error for an invalid guide or document.
func (s *Site) Search(query string, limit int, address string) ([]Passage, error) {
	if _, err := s.pages(); err != nil {
		return nil, err
	}
	stems := stemsOf(query)
	var list []Passage
	for _, e := range s.builder.finder().find(query, limit) {
		p := Passage{Title: e.Title, Path: e.Path, Text: passageOf(e.source, stems)}
		if e.Title != e.Place {
			p.Title = e.Place + ": " + e.Title
		}
		p.Text = string(Text([]byte(p.Text), address, s.config.Demo, s.config.clock().Now()))
		list = append(list, p)
	}
	return list, nil
}

// passageOf returns a text of at most maxPassage characters, or so much of it from the line of the first word with one of
// the stems: of a long line, from shortly before the word.
func passageOf(text string, stems []string) string {
	text = strings.TrimSpace(text)
	cut := domain.Cut(text, maxPassage)
	if cut == text {
		return text
	}
	for _, at := range word.FindAllStringIndex(text, -1) {
		if !slices.Contains(stems, stemOf(text[at[0]:at[1]])) {
			continue
		}
		if at[0] <= beforeMatch {
			break
		}
		start := max(strings.LastIndex(text[:at[0]], "\n")+1, strings.LastIndexByte(text[:at[0]-beforeMatch], ' ')+1)
		return "… " + strings.TrimSpace(domain.Cut(text[start:], maxPassage))
	}
	return cut
}

// word matches a word, the name of a field, or a number such as that of a release, 2.4.
var word = regexp.MustCompile(`\p{N}+(?:\.\p{N}+)+|[\p{L}\p{N}_]+`)

// wordsOf splits a text into words. The name of a field is a word, and so are its parts.
func wordsOf(text string) (list []string) {
	for _, found := range word.FindAllString(text, -1) {
		list = append(list, found)
		if strings.Contains(found, "_") {
			list = append(list, strings.FieldsFunc(found, func(r rune) bool { return r == '_' })...)
		}
	}
	return list
}

// emptyWords say nothing of what is searched for.
var emptyWords = strings.Fields("how to get an a the of with for is are s was do does i my can what which in on and or it")

// stemsOf returns the stems of a query's words, each once, without empty words if there are others.
func stemsOf(query string) []string {
	words := word.FindAllString(strings.ToLower(query), -1)
	telling := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(emptyWords, w) })
	if len(telling) == 0 {
		telling = words
	}
	for i, w := range telling {
		telling[i] = stemOf(w)
	}
	slices.Sort(telling)
	return slices.Compact(telling)
}

// endings are removed from words, the longest first.
var endings = []string{
	"ations", "ators", "ation", "ates", "ator", "ions", "ings", "ate", "ion", "ing", "ers", "er", "ed", "es", "s", "e",
}

// stemOf returns a word in lower case without its ending, which follows at least three letters. The name of a field and a
// number stay as they are.
func stemOf(word string) string {
	word = strings.ToLower(word)
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return word
	}
	for _, ending := range endings {
		if stem, ok := strings.CutSuffix(word, ending); ok && len([]rune(stem)) >= 3 {
			return stem
		}
	}
	return word
}
