package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedExposure is a row of exposures with the additional columns of an import.
type importedExposure struct {
	bun.BaseModel `bun:"table:exposures,alias:e"`
	db.ExposureRow
	ClientID  domain.ClientID `bun:"client_id,pk"`
	Found     bool
	UpdatedAt time.Time
}

// Exposures is the kind of exposures. A user has at most one per breach, so a record names the user and the breach
// instead of an id. An import recomputes the scores of the users, without events or notices (decisions 7.11).
var Exposures = declare[exposures](kind[domain.ExposureRecord, importedExposure]{
	object: "exposure", partner: ofPartner("e"), order: "e.client_id, e.user_id, e.breach_name", columns: "e.id",
})

type exposures struct {
	batch[domain.ExposureRecord, importedExposure]
	breaches map[string]*db.BreachRow // by their names
}

// lock locks the users, the breaches and the existing exposures.
func (b *exposures) lock(ctx context.Context) error {
	_, err := b.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", b.found.ids(domain.UserID{}.Prefix())))
	if err != nil {
		return err
	}
	breaches := make([]string, len(b.list))
	for i, a := range b.list {
		breaches[i] = a.in.BreachName.Value
	}
	if b.breaches, err = b.LockBreaches(ctx, breaches); err != nil {
		return err
	}
	b.WillLock(db.ExposureLocks)
	return lockHistory(ctx, &b.batch, "breach_name", "text", func(in *domain.ExposureRecord) (domain.UserID, string) {
		return in.User.Value.ID, in.BreachName.Value
	})
}

func (b *exposures) key(in *domain.ExposureRecord) any {
	return historyKey{in.User.Value.ID, in.BreachName.Value}
}

func (b *exposures) create(in *domain.ExposureRecord, e *importedExposure) {
	e.ClientID, e.UpdatedAt = b.found.find(in.User.Value).ClientID, b.At
}

// apply sets Found. For a new exposure it also sets the severity and data classes that the record leaves out: the
// severity follows from the record's data classes or, without these, from the breach. It refuses impossible times.
func (b *exposures) apply(in *domain.ExposureRecord, before, e *importedExposure) error {
	breach := b.breaches[in.BreachName.Value]
	if breach == nil {
		return fmt.Errorf("breach_name: %s; first, import the breaches with partnerapi breaches import",
			domain.NoSuchObject(db.BreachNoun))
	}
	if before == nil && !in.Severity.Given {
		e.Severity = breach.Severity
		if in.DataClasses.Given {
			e.Severity = domain.SeverityOf(in.DataClasses.Value, breach.Sensitive, breach.SpamList)
		}
	}
	if before == nil && !in.DataClasses.Given {
		e.DataClasses = breach.DataClasses
	}
	switch {
	case e.NotifiedAt != nil && e.NotifiedAt.Before(e.FirstSeenAt):
		return errors.New("notified_at is before first_seen_at")
	case e.ResolvedAt != nil && e.ResolvedAt.Before(e.FirstSeenAt):
		return errors.New("resolved_at is before first_seen_at")
	}
	// Equal times mean that only a resolution was reported, and the exposure itself was not found.
	onlyResolved := e.ResolvedAt != nil && e.ResolvedAt.Equal(e.FirstSeenAt)
	e.Found = e.Found || !onlyResolved
	b.touch(before, e, &e.UpdatedAt)
	return nil
}

// follow recomputes the scores, and advances updated_at, of the users with new or changed exposures, except in
// clients without Dark Web Monitoring, for which exposures do not count.
func (b *exposures) follow(ctx context.Context) error {
	exposures := append(rowsAfter(b.inserts), rowsAfter(b.updates)...)
	clients := pg.MapRows(exposures, func(e *importedExposure) domain.ClientID { return e.ClientID })
	monitored, err := pg.Existing(ctx, b, "look for clients with Dark Web Monitoring",
		"clients WHERE dark_web_monitoring AND", sortedUnique(clients))
	for i := range exposures {
		if user := (domain.UserKey{Client: exposures[i].ClientID, User: exposures[i].User}); monitored[user.Client] {
			b.Rescore(user)
			b.TouchUsers(user)
		}
	}
	return err
}
