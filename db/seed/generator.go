package seed

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// generator makes up clients with their history before today.
type generator struct {
	*random
	today     domain.Date
	catalogue *catalogue
}

// clientSpec is what a client is made from.
type clientSpec struct {
	partner   domain.PartnerID
	name      string
	industry  string
	created   domain.Date
	directory domain.Directory // empty for none
	noDarkWeb bool
	language  domain.Language // what most users speak
}

// directoryGroups are the groups of users that a directory has.
var directoryGroups = []string{"Head office", "Field staff", "Contractors"}

// newClient makes a client with its groups, the manual one first, and no users.
func (g *generator) newClient(spec clientSpec) *client {
	at := g.at(spec.created)
	c := &client{
		ClientRow: db.ClientRow{
			ID: newID[domain.ClientKind](g.random, at), PartnerID: spec.partner, Name: spec.name,
			NameKey: domain.SortKey(spec.name), DarkWebMonitoring: !spec.noDarkWeb, FrameworkIDs: []string{},
			CreatedAt: at, UpdatedAt: at,
		},
		domain: slug(spec.name) + ".example",
	}
	if spec.industry != "" {
		c.Industry = &spec.industry
	}
	names := []string{domain.ManualGroup}
	if spec.directory != "" {
		c.DirectorySync = &spec.directory
		names = append(names, directoryGroups...)
	}
	for i, name := range names {
		c.groups = append(c.groups, db.GroupRow{
			ClientID: c.ID, ID: newID[domain.GroupKind](g.random, at), Name: name, Manual: i == 0, CreatedAt: at,
		})
	}
	return c
}

// behaviour holds the probabilities by which a user completes courses, falls for
// simulations and reports emails.
type behaviour struct{ diligent, gullible, alert float64 }

func (g *generator) behaviour() behaviour {
	x := g.Float64()
	diligent := 0.985 + 0.015*g.Float64() // of each course, and there are many
	if g.chance(0.15) {
		diligent = 0.3 + 0.6*g.Float64()
	}
	return behaviour{diligent: diligent, gullible: 0.02 + 0.45*x*x*x, alert: 0.5 * g.Float64()}
}

// addHistory adds training, simulations, reported emails and exposures to each
// of some users of a client. Simulations are about every days apart.
func (g *generator) addHistory(c *client, users []*user, every int) {
	for _, u := range users {
		t := g.behaviour()
		for _, l := range g.catalogue.program {
			g.addAssignments(u, l, t, u.CreatedAt, nil)
		}
		g.addFrameworkTraining(u, c, t)
		g.addSimulations(u, t, every)
		g.addReportedEmails(u, t)
		if c.DarkWebMonitoring {
			g.addExposures(u)
		}
	}
}

// historyDays is how many days of a client's average score are kept, today's
// included.
const historyDays = 90

// addScoreHistory makes up the average scores of the last days. They end with
// the client's own, which computeTotals must have set. The active users of a day are those
// of today that were there already.
func (g *generator) addScoreHistory(c *client) {
	days := min(historyDays, domain.DateOf(c.CreatedAt).DaysUntil(g.today)+1)
	c.history = make([]dayScore, days)
	score, active := c.AverageScore, c.UsersActive
	for i := days - 1; i >= 0; i-- {
		day := &c.history[i]
		day.ClientID, day.Day, day.AverageScore, day.ActiveUsers = c.ID, g.today.AddDays(i+1-days), score, active
		active -= c.joined[days-1-i]
		if c.UsersActive > 0 {
			score = min(max(score+g.between(-4, 4), 0), 1000)
		}
	}
}
