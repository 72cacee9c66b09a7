package seed

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// generator generates clients with their history up to today.
type generator struct {
	*random
	today     domain.Date
	catalogue *catalogue
}

// clientSpec is the specification of a generated client.
type clientSpec struct {
	partner   domain.PartnerID
	name      string
	industry  string
	created   domain.Date
	directory domain.Directory // empty for none
	noDarkWeb bool
	language  domain.Language // of most users
}

// directoryGroups are the names of the groups of a directory.
var directoryGroups = []string{"Head office", "Field staff", "Contractors"}

// newClient creates a client with its groups, the Manual group first, and no users.
func (g *generator) newClient(spec clientSpec) *client {
	at := g.at(spec.created)
	c := &client{
		ClientRow: db.ClientRow{NameKey: domain.SortKey(spec.name), Client: domain.Client{
			ID: newID[domain.ClientKind](g.random, at), Partner: spec.partner, Name: spec.name,
			DarkWebMonitoring: !spec.noDarkWeb, Frameworks: []string{}, CreatedAt: at, UpdatedAt: at,
		}},
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

// behavior holds the probabilities by which a user completes courses, falls for simulations and reports emails.
type behavior struct{ diligent, gullible, alert float64 }

// behavior returns random probabilities. Most users are diligent and not gullible.
func (g *generator) behavior() behavior {
	x := g.Float64()
	diligent := 0.985 + 0.015*g.Float64() // high, because it is the probability for each of many courses
	if g.chance(0.15) {
		diligent = 0.3 + 0.6*g.Float64()
	}
	return behavior{diligent: diligent, gullible: 0.02 + 0.45*x*x*x, alert: 0.5 * g.Float64()}
}

// addHistory adds training, simulations, reported emails and exposures to users of a client. every is the average
// number of days between a user's simulations.
func (g *generator) addHistory(c *client, users []*user, every int) {
	for _, u := range users {
		b := g.behavior()
		for _, spec := range g.catalogue.program {
			g.addAssignments(u, spec, b, u.CreatedAt, nil /* no framework: the program */)
		}
		g.addFrameworkTraining(u, c, b)
		g.addSimulations(u, b, every)
		g.addReportedEmails(u, b)
		if c.DarkWebMonitoring {
			g.addExposures(u)
		}
	}
}

// historyDays is the number of days of a client's score history, including today.
const historyDays = 90

// addScoreHistory adds random average scores of the last days. The last one is the client's current score, which
// computeTotals must have set. The active users of a day are those of today who had been created by that day.
func (g *generator) addScoreHistory(c *client) {
	days := min(historyDays, domain.DateOf(c.CreatedAt).DaysUntil(g.today)+1)
	c.history = make([]dayScore, days)
	score, active := c.Summary.AverageScore, c.ActiveUsers
	for age := range days { // from today back
		day := &c.history[days-1-age]
		day.ClientID, day.Day, day.AverageScore, day.ActiveUsers = c.ID, g.today.AddDays(-age), score, active
		active -= c.joined[age]
		if c.ActiveUsers > 0 { // without users it stays the baseline
			score = min(max(score+g.between(-4, 4), 0), 1000)
		}
	}
}
