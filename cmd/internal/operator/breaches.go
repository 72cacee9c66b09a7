package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/domain"
)

// Breaches is the command breaches, which imports breaches.
type Breaches struct {
	Import importBreachesCmd `cmd:"" help:"Import breaches in the Have I Been Pwned format (https://haveibeenpwned.com). The data is licensed under CC BY 4.0; credit the source wherever you show the data." example:"breaches import breaches.json"`
}

type importBreachesCmd struct {
	database.Flags
	File string `arg:"" type:"existingfile" help:"JSON array of breaches, as returned by the breaches endpoint of Have I Been Pwned."`
}

// breachCredit is the attribution that the data's license requires.
const breachCredit = "breach data: Have I Been Pwned (https://haveibeenpwned.com), CC BY 4.0"

// Run imports the valid breaches. Invalid entries are reported, and the command then fails at its end.
func (c importBreachesCmd) Run(ctx context.Context, s cli.Env) error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	file, err := readBreaches(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	err = importEntries(ctx, s, c.Flags, "breaches import", file.breaches, file.faults, (*db.DB).ImportBreaches,
		fmt.Sprintf("skipped %d fabricated, %d retired, %d invalid\n%s", file.fabricated, file.retired, len(file.faults), breachCredit))
	if err == nil && len(file.faults) > 0 {
		err = fmt.Errorf("%d entries of %s are invalid and were not imported", len(file.faults), c.File)
	}
	return err
}

// breachEntry is a breach in Have I Been Pwned's format, without the members that are not stored.
type breachEntry struct {
	Name         string
	Title        string
	Domain       string
	BreachDate   string
	DataClasses  []string
	IsFabricated bool
	IsRetired    bool
	IsSensitive  bool
	IsSpamList   bool
}

func (e breachEntry) name() string { return e.Name }

// breachFile is the content of a file: the breaches to import, in the order of the file, the numbers of entries that
// are omitted, and the faults of the invalid ones (decisions 7.8).
type breachFile struct {
	breaches            []domain.Breach
	fabricated, retired int
	faults              []error
}

// readBreaches parses a file. Fabricated and retired breaches are only counted. It fails only without a JSON list.
func readBreaches(text []byte) (file breachFile, err error) {
	file.faults, err = eachEntry(text, "breaches", func(e breachEntry) error {
		b, err := e.toBreach()
		switch {
		case err != nil:
			return err
		case e.IsFabricated:
			file.fabricated++
		case e.IsRetired:
			file.retired++
		default:
			file.breaches = append(file.breaches, b)
		}
		return nil
	})
	return file, err
}

const (
	// maxBreachText is the maximum number of characters of a text of a breach: that of a breach's name in a signal.
	maxBreachText  = 255
	maxDataClasses = 100
)

// checkBounds rejects texts that are too long or hold a NUL character, and too many data classes.
func (e breachEntry) checkBounds() error {
	if len(e.DataClasses) > maxDataClasses {
		return fmt.Errorf("the entry has more than %d DataClasses", maxDataClasses)
	}
	for _, text := range append([]string{e.Name, e.Title, e.Domain}, e.DataClasses...) {
		if utf8.RuneCountInString(text) > maxBreachText {
			return fmt.Errorf("a string has more than %d characters: %.40q", maxBreachText, text)
		}
		if strings.ContainsRune(text, 0) {
			return errors.New("the entry contains a NUL character")
		}
	}
	return nil
}

// toBreach checks the entry, and converts it to a breach with a severity. Domain and BreachDate may be empty.
func (e breachEntry) toBreach() (domain.Breach, error) {
	b := domain.Breach{
		Name: e.Name, Title: e.Title, DataClasses: e.DataClasses, Sensitive: e.IsSensitive, SpamList: e.IsSpamList,
	}
	if err := e.checkBounds(); err != nil {
		return b, err
	}
	if strings.TrimSpace(e.Name) == "" || strings.TrimSpace(e.Title) == "" {
		return b, errors.New("the entry needs a Name and a Title")
	}
	if len(e.DataClasses) == 0 {
		return b, errors.New("the entry needs DataClasses")
	}
	b.Severity = domain.SeverityOf(e.DataClasses, e.IsSensitive, e.IsSpamList)
	if e.Domain != "" {
		b.Domain = &e.Domain
	}
	if e.BreachDate != "" {
		date, err := domain.ParseDate(e.BreachDate)
		if err != nil {
			return b, fmt.Errorf("BreachDate %w, got %q", err, e.BreachDate)
		}
		b.On = &date
	}
	return b, nil
}
