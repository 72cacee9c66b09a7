package mail

import (
	"encoding/json"
	"strings"

	"partnerapi/domain"
)

// lists are the words for what mails list, by language.
var lists = readLists()

type listWords struct {
	Clues map[domain.Language]map[domain.Indicator]string
	// DataClasses are by their names in lower case. English names are those of
	// the catalogue of breaches, and so are names that a language lacks.
	DataClasses map[domain.Language]map[string]string `json:"data_classes"`
}

// readLists reads the embedded words. It panics where they cannot be read, as
// template.Must does.
func readLists() (all listWords) {
	text, err := textFiles.ReadFile("words/lists.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		panic(err)
	}
	return all
}

// Clues says in a language what gave a simulated mail away.
func Clues(language domain.Language, indicators []domain.Indicator) []string {
	texts := make([]string, len(indicators))
	for i, indicator := range indicators {
		texts[i] = lists.Clues[language][indicator]
	}
	return texts
}

// dataClasses names kinds of data in a language.
func dataClasses(language domain.Language, classes []string) []string {
	texts := make([]string, len(classes))
	for i, class := range classes {
		texts[i] = OneLine(class)
		if text, ok := lists.DataClasses[language][strings.ToLower(texts[i])]; ok {
			texts[i] = text
		}
	}
	return texts
}
