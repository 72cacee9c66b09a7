package db

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// simulationRow is what a simulation is read from.
type simulationRow struct {
	bun.BaseModel `bun:"table:phishing_results,alias:r"`

	ID                domain.ResultID
	ClientID          domain.ClientID
	UserID            domain.UserID
	SendAt            time.Time
	SentAt            *time.Time
	ArchivedAt        *time.Time
	ClientName        string
	Email             string
	FirstName         string
	LastName          string
	UserStatus        domain.UserStatus
	PreferredLanguage domain.Language

	TemplateID  domain.TemplateID
	Name        string
	Language    domain.Language
	Subject     string
	FromAddress string
	HTML        string `bun:"html"`
	Body        string
	Indicators  json.RawMessage
	Difficulty  int
	Landing     domain.Landing
}

// Simulation reads a simulated mail, whoever's it is: for those who send it, and
// for its reader's page.
func (d *DB) Simulation(ctx context.Context, id domain.ResultID) (domain.Simulation, error) {
	row, err := pg.Find[simulationRow](ctx, d, id.Noun(), pg.Prepared(pg.SQL(`
		SELECT r.send_at, r.sent_at, c.archived_at, c.name AS client_name, u.email, u.first_name, u.last_name,
			u.status AS user_status, u.preferred_language, r.id, r.client_id, r.user_id,
			t.id AS template_id, t.name, t.language, t.subject, t.from_address, t.html, t.body,
			t.indicators, t.difficulty, t.landing
		FROM phishing_results AS r
		JOIN clients AS c ON c.id = r.client_id
		JOIN users AS u ON u.client_id = r.client_id AND u.id = r.user_id
		JOIN phishing_templates AS t ON t.id = r.template_id
		WHERE r.id = ?`, id)))
	if err != nil {
		return domain.Simulation{}, err
	}
	return row.simulation()
}

func (r *simulationRow) simulation() (domain.Simulation, error) {
	s := domain.Simulation{
		Result: r.ID, Client: r.ClientID, User: r.UserID, SendAt: r.SendAt, SentAt: r.SentAt,
		Email: r.Email, FirstName: r.FirstName, LastName: r.LastName, Language: r.PreferredLanguage, ClientName: r.ClientName,
		Template: domain.Template{
			ID: r.TemplateID, Name: r.Name, Language: r.Language, Subject: r.Subject, From: r.FromAddress,
			TemplateContent: domain.TemplateContent{HTML: r.HTML, Text: r.Body, Difficulty: r.Difficulty, Landing: r.Landing},
		},
	}
	switch {
	case r.ArchivedAt != nil:
		s.Unwanted = "the client is archived"
	case r.UserStatus != domain.Active:
		s.Unwanted = "the user is inactive"
	}
	return s, json.Unmarshal(r.Indicators, &s.Template.Indicators)
}
