package domain

import (
	"slices"
	"time"
)

// TemplateContent is the part of a template that lists of templates do not show.
type TemplateContent struct {
	HTML string
	Text string `bun:"body"`
	// Indicators are the signs by which a reader can recognize the email as phishing.
	Indicators []Indicator
	// Difficulty is the difficulty of recognizing the email, from 1 to 6.
	Difficulty int
	Landing    Landing
}

// Landing is the kind of page that a template's link opens.
type Landing string

// The landings: the lesson, or a sign-in form before the lesson.
const (
	LandingLesson Landing = "lesson"
	LandingForm   Landing = "form"
)

// Indicator is a sign by which a reader can recognize a simulated email as phishing. The landing page has a text for
// each.
type Indicator string

// The indicators: the form of the email, its sender, its subject matter, and the feeling that it appeals to.
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

// Values lists the indicators in the order in which pages name them.
func (Indicator) Values() []string {
	return texts(
		FromOutside, FromColleagues, FromAuthority, ForeignLink, BadGrammar, BorrowedLogo, Fear, Duty, Greed,
		Curiosity, OwnCompany, PublicNews,
	)
}

// Simulation is a simulated email with the data needed to send it and to explain it to its reader.
type Simulation struct {
	Result   ResultID
	Client   ClientID
	User     UserID
	SendAt   time.Time
	SentAt   *time.Time
	Template Template `bun:"embed:template_"`

	Email, FirstName, LastName, JobTitle string
	Language                             Language // the user's
	ClientName                           string
	// ReportLink means that the email has a link that reports it.
	ReportLink bool

	// Unwanted is the reason why the email must not be sent any more; empty if it may be sent.
	Unwanted string
}

// Clues returns the indicators of the template, in the order in which pages name them. A template without known
// indicators gets the two that every simulated email has: FromOutside and ForeignLink.
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

// TemplateOption is a template that may be sent to a client's users.
type TemplateOption struct {
	ID       TemplateID
	Language Language
	Used     int // how often it was sent to them, or chosen
}

// Target is a user who is to get a simulated email.
type Target struct {
	User     UserID
	Active   bool
	Language Language
	// Seen maps each template that was sent to the user, or will be, to the time of the last sending.
	Seen map[TemplateID]time.Time
}

// ChooseTemplate returns a template in the user's language (decisions 7.5): the least used of the templates that the
// user has not seen, or, if the user has seen all, the template seen longest ago. Of equal options it returns the
// first. It increments Used of the option, so that several users get different templates. It returns false if no option
// has the language.
func ChooseTemplate(options []TemplateOption, to Target) (TemplateID, bool) {
	best := -1
	for i, o := range options {
		if o.Language == to.Language && (best < 0 || to.prefers(o, options[best])) {
			best = i
		}
	}
	if best < 0 {
		return TemplateID{}, false
	}
	options[best].Used++
	return options[best].ID, true
}

// prefers reports whether template a suits the user better than b: a template that the user has not seen, otherwise the
// one seen longer ago; of two unseen templates, the one used less.
func (t Target) prefers(a, b TemplateOption) bool {
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

// Known reports whether the indicator is in the list of Values.
func (i Indicator) Known() bool { return slices.Contains(i.Values(), string(i)) }
