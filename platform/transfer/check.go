package transfer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"partnerapi/domain"
)

// faults are what is wrong with a line.
type faults struct{ texts []string }

// maxFaults is how many faults of a line are named.
const maxFaults = 10

func (f *faults) say(format string, args ...any) {
	if len(f.texts) < maxFaults {
		f.texts = append(f.texts, fmt.Sprintf(format, args...))
	}
}

func fault(err error) *faults { return &faults{[]string{err.Error()}} }

// add adds what is wrong with a field; nil is nothing.
func (f *faults) add(field string, err error) {
	if err != nil {
		f.say("%s %s", field, err)
	}
}

func (f *faults) err() error {
	if len(f.texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(f.texts, "; "))
}

// enum is a type of text with a fixed list of values.
type enum interface{ Values() []string }

// check brings the value of a field into the form that is stored, and says what is
// wrong with it by the field's rules and its type.
func (f *field) check(value any, now time.Time) error {
	switch v := value.(type) {
	case *string:
		return f.checkText(v)
	case *int:
		return f.checkNumber(*v)
	case *domain.Time:
		return f.checkTime(v, now)
	case *map[domain.Language]string:
		return f.checkTitles(*v)
	case *[]string:
		return f.checkTexts(*v)
	case *domain.AudienceRecord:
		return checkEnum(v.Type, string(v.Type))
	case enum:
		return checkEnum(v, reflect.ValueOf(value).Elem().String())
	}

	if v := reflect.ValueOf(value).Elem(); v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if e, ok := v.Index(i).Interface().(enum); ok {
				if err := checkEnum(e, v.Index(i).String()); err != nil {
					return fmt.Errorf("[%d] %w", i, err)
				}
			}
		}
		return f.checkLength(v.Len())
	}
	return nil
}

func (f *field) checkText(text *string) error {
	switch {
	case f.email:
		email, ok := domain.CleanEmail(*text)
		if !ok {
			return errors.New("must be an email address")
		}
		*text = email
	case f.isName:
		*text = domain.CleanName(*text)
		if problem := domain.CheckName(*text); problem != "" {
			return errors.New(problem)
		}
	}
	switch {
	case f.filled && strings.TrimSpace(*text) == "":
		return errors.New("must not be blank")
	case strings.ContainsRune(*text, 0):
		return errors.New("must not hold a NUL character")
	case f.max != nil && utf8.RuneCountInString(*text) > *f.max:
		return fmt.Errorf("must be at most %d characters", *f.max)
	}
	return nil
}

func (f *field) checkTime(at *domain.Time, now time.Time) error {
	at.Time = at.Time.Truncate(time.Microsecond)
	switch {
	case at.Time.Unix() < 0:
		return fmt.Errorf("%s is before 1970", at.Time.Format(time.RFC3339Nano))
	case f.past && at.Time.After(now.Add(domain.SignalLead)):
		return errors.New("is in the future")
	}
	return nil
}

func (f *field) checkNumber(n int) error {
	if f.min != nil && n < *f.min || f.max != nil && n > *f.max {
		return fmt.Errorf("must be between %d and %d", *f.min, *f.max)
	}
	return nil
}

func (f *field) checkLength(n int) error {
	switch {
	case f.filled && n == 0:
		return errors.New("must hold at least one item")
	case f.max != nil && n > *f.max:
		return fmt.Errorf("must hold at most %d items", *f.max)
	}
	return nil
}

// listItem is what holds for the texts of a list.
var listItem = field{filled: true, max: new(255)}

// checkTexts checks a list of texts.
func (f *field) checkTexts(list []string) error {
	for i := range list {
		if err := listItem.checkText(&list[i]); err != nil {
			return fmt.Errorf("[%d] %w", i, err)
		}
	}
	return f.checkLength(len(list))
}

// checkTitles checks titles by language.
func (f *field) checkTitles(titles map[domain.Language]string) error {
	if len(titles) == 0 {
		return errors.New("must hold at least one item")
	}
	for language, title := range titles {
		if err := checkEnum(language, string(language)); err != nil {
			return fmt.Errorf("has the key %.40q: it %w", language, err)
		}
		if err := f.checkText(&title); err != nil {
			return fmt.Errorf("[%s] %w", language, err)
		}
		titles[language] = title
	}
	return nil
}

func checkEnum(e enum, text string) error {
	if !slices.Contains(e.Values(), text) {
		return fmt.Errorf("must be one of %s", strings.Join(e.Values(), ", "))
	}
	return nil
}
