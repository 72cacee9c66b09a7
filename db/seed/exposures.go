package seed

import (
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// breaches returns invented breaches, of every severity.
func breaches() []db.BreachRow {
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
	all := make([]db.BreachRow, len(list))
	for i, b := range list {
		on, _ := domain.ParseDate(b.on) // the dates above are valid
		all[i] = db.BreachRow{Breach: domain.Breach{Name: b.name, Title: b.title, On: &on, DataClasses: b.classes,
			SpamList: b.spam, Severity: domain.SeverityOf(b.classes, false /* sensitive */, b.spam)}}
		if b.domain != "" {
			all[i].Domain = &b.domain
		}
	}
	return all
}

// addExposures adds exposures of a user in a few random breaches, often in none. About half of them are resolved.
func (g *generator) addExposures(u *user) {
	for i := range g.catalogue.breaches {
		if g.chance(0.04) {
			g.addExposure(u, &g.catalogue.breaches[i], g.between(2, 600), g.chance(0.5))
		}
	}
}

// addExposure adds a user's exposure in a breach, first seen daysAgo days ago but not before the user's creation. If
// resolved is true, it was resolved between then and today, unless there is no day between them.
func (g *generator) addExposure(u *user, b *db.BreachRow, daysAgo int, resolved bool) {
	seen := latestTime(g.at(g.today.AddDays(-daysAgo)), u.CreatedAt)
	notified := seen.Add(time.Hour)
	e := exposure{ClientID: u.Client, UpdatedAt: notified, ExposureRow: db.ExposureRow{Exposure: domain.Exposure{
		User: u.ID, Breach: b.Name, Severity: b.Severity, DataClasses: b.DataClasses, FirstSeenAt: seen,
		NotifiedAt: &notified,
	}}}
	if days := domain.DateOf(seen).DaysUntil(g.today) - 1; resolved && days > 0 {
		e.ResolvedAt = new(g.at(domain.DateOf(seen).AddDays(g.between(1, days))))
		e.UpdatedAt = latestTime(notified, *e.ResolvedAt)
	}
	u.exposures = append(u.exposures, e)
}
