package seed

import (
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
		Client: domain.Client{
			ID: newID[domain.ClientKind](g.random, at), Partner: spec.partner, Name: spec.name,
			DarkWebMonitoring: !spec.noDarkWeb, CreatedAt: at, UpdatedAt: at,
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
		c.groups = append(c.groups, group{Group: domain.Group{ID: newID[domain.GroupKind](g.random, at), Name: name},
			manual: i == 0})
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
// user of a client. Simulations are about every days apart.
func (g *generator) addHistory(c *client, every int) {
	for _, u := range c.users {
		t := g.behaviour()
		for _, l := range g.catalogue.program {
			g.addAssignments(u, l, t, u.CreatedAt, nil)
		}
		for i := range c.uses {
			g.addFrameworkTraining(u, c, &c.uses[i], t)
		}
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
// the score of the client's summary, which computeTotals must have set.
func (g *generator) addScoreHistory(c *client) {
	days := min(historyDays, domain.DateOf(c.CreatedAt).DaysUntil(g.today)+1)
	c.history = make([]dayScore, days)
	score := c.Summary.AverageScore
	for i := days - 1; i >= 0; i-- {
		c.history[i] = dayScore{g.today.AddDays(i + 1 - days), score}
		if c.ActiveUsers > 0 {
			score = min(max(score+g.between(-4, 4), 0), 1000)
		}
	}
}
