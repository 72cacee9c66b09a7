package domain

import (
	"slices"
	"time"
)

// TemplateContent is the part of a template that lists do not show.
type TemplateContent struct {
	HTML, Text string
	// Indicators are what gives the mail away.
	Indicators []Indicator
	// Difficulty is how hard the mail is to see through, from 1 to 6.
	Difficulty int
	Landing    Landing
}

// Landing is where a template's link leads.
type Landing string

// The landings: straight to the lesson, or first to a form that asks to sign in.
const (
	LandingLesson Landing = "lesson"
	LandingForm   Landing = "form"
)

// Indicator is something that gives a simulated mail away. The words for it are
// those of the landing page.
type Indicator string

// The indicators: what the mail looks like, whom it comes from, what it speaks
// of, and the feeling that it plays on.
const (
	BadGrammar     Indicator = "grammar"
	ForeignLink    Indicator = "link_domain"
	BorrowedLogo   Indicator = "logo_graphics"
	FromOutside    Indicator = "external"
	FromColleagues Indicator = "internal"
	FromAuthority  Indicator = "authoritative"
	OwnCompany     Indicator = "organization"
	PublicNews     Indicator = "public_news"
	Curiosity      Indicator = "curiosity"
	Duty           Indicator = "duty_obligation"
	Fear           Indicator = "fear"
	Greed          Indicator = "greed"
)

// Values lists the indicators, in the order in which a page names them.
func (Indicator) Values() []string {
	return texts(
		FromOutside, FromColleagues, FromAuthority, ForeignLink, BadGrammar, BorrowedLogo, Fear, Duty, Greed,
		Curiosity, OwnCompany, PublicNews,
	)
}

// Simulation is a simulated mail with all data needed to send it and to explain it
// to its reader.
type Simulation struct {
	Result   ResultID
	Client   ClientID
	User     UserID
	SendAt   time.Time
	SentAt   *time.Time
	Template Template

	Email, FirstName, LastName string
	Language                   Language // the user's
	ClientName                 string

	// Unwanted says why it must not be sent any more; empty if it may be.
	Unwanted string
}

// Clues returns the indicators of the template, in the order in which pages name them.
// For a template without any it returns those of every simulated mail.
func (t *Template) Clues() (clues []Indicator) {
	for _, name := range Indicator("").Values() {
		if slices.Contains(t.Indicators, Indicator(name)) {
			clues = append(clues, Indicator(name))
		}
	}
	if len(clues) == 0 {
		return []Indicator{FromOutside, ForeignLink}
	}
	return clues
}

// TemplateOption is a template that may be sent to a client's users, and how often
// it was.
type TemplateOption struct {
	ID       TemplateID
	Language Language
	Used     int
}

// Target is a user whom a simulated mail is to be sent to.
type Target struct {
	User     UserID
	Active   bool
	Language Language
	// Seen maps each template that was sent to the user, or is about to be, to the
	// last time.
	Seen map[TemplateID]time.Time
}

// ChooseTemplate picks a template in the user's language (decisions 7.5): the least
// used one that the user has not seen, or, if the user has seen all, the one seen
// longest ago. The first of the options wins a tie. It counts the use in the options,
// which spreads users over the templates. It returns false if the language has none.
func ChooseTemplate(options []TemplateOption, to Target) (TemplateID, bool) {
	best := -1
	for i, o := range options {
		if o.Language == to.Language && (best < 0 || to.rather(o, options[best])) {
			best = i
		}
	}
	if best < 0 {
		return TemplateID{}, false
	}
	options[best].Used++
	return options[best].ID, true
}

// rather reports whether the user should be sent a rather than b.
func (t Target) rather(a, b TemplateOption) bool {
	seenA, hasA := t.Seen[a.ID]
	seenB, hasB := t.Seen[b.ID]
	switch {
	case hasA != hasB:
		return hasB
	case hasA:
		return seenA.Before(seenB)
	}
	return a.Used < b.Used
}

// Known reports whether the indicator is one of the list.
func (i Indicator) Known() bool { return slices.Contains(i.Values(), string(i)) }
