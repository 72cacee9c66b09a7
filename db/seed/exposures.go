package seed

import (
	"time"

	"partnerapi/domain"
)

// breach is an invented breach of data.
type breach struct {
	name, title, domain string
	on                  domain.Date
	severity            domain.Severity
	classes             []string
	spam                bool // only a spam list
}

// breaches lists the invented breaches, of every severity.
func breaches() []breach {
	list := []struct {
		name, title, domain, on string
		spam                    bool
		classes                 []string
	}{
		{"ExampleForum", "Example Forum", "forum.example", "2021-03-14", false,
			[]string{"Email addresses", "Passwords", "Usernames"}},
		{"ParcelPilot", "Parcel Pilot", "parcelpilot.example", "2022-07-02", false,
			[]string{"Email addresses", "Names", "Physical addresses"}},
		{"TasteBoard", "Taste Board", "tasteboard.example", "2020-11-20", false,
			[]string{"Email addresses", "Usernames", "IP addresses"}},
		{"MailMountain", "Mail Mountain list", "", "2023-01-09", true, []string{"Email addresses"}},
		{"QuickQuote", "Quick Quote", "quickquote.example", "2023-09-30", false,
			[]string{"Dates of birth", "Email addresses", "Names", "Phone numbers"}},
		{"PixelPlaza", "Pixel Plaza", "pixelplaza.example", "2019-05-25", false,
			[]string{"Email addresses", "Historical passwords", "Passwords"}},
		{"StayFinder", "Stay Finder", "stayfinder.example", "2024-02-11", false,
			[]string{"Email addresses", "Names", "Passport numbers"}},
		{"EventBuzz", "Event Buzz", "eventbuzz.example", "2024-08-18", false,
			[]string{"Email addresses", "Employers", "Job titles"}},
	}
	all := make([]breach, len(list))
	for i, b := range list {
		on, _ := domain.ParseDate(b.on) // the dates are those above
		all[i] = breach{name: b.name, title: b.title, domain: b.domain, on: on, classes: b.classes, spam: b.spam,
			severity: domain.SeverityOf(b.classes, false, b.spam)}
	}
	return all
}

// addExposures finds a user's data in breaches; that of most in none.
func (g *generator) addExposures(u *user) {
	for i := range g.catalogue.breaches {
		if g.chance(0.04) {
			g.addExposure(u, &g.catalogue.breaches[i], g.between(2, 600), g.chance(0.5))
		}
	}
}

// addExposure finds a user's data in a breach so many days ago.
func (g *generator) addExposure(u *user, b *breach, daysAgo int, resolved bool) {
	e := exposure{breach: b, seenAt: g.at(g.today.AddDays(-daysAgo))}
	if e.seenAt.Before(u.CreatedAt) {
		e.seenAt = u.CreatedAt
	}
	e.notifiedAt = e.seenAt.Add(time.Hour)
	if days := domain.DateOf(e.seenAt).DaysUntil(g.today) - 1; resolved && days > 0 {
		e.resolvedAt = g.at(domain.DateOf(e.seenAt).AddDays(g.between(1, days)))
	}
	u.exposures = append(u.exposures, e)
}
