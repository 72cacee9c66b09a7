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

// Imports and exports of exposures of users, and of the mails sent to them.

// importedExposure is a row of exposures with the additional columns of an import.
type importedExposure struct {
	bun.BaseModel `bun:"table:exposures,alias:e"`
	db.ExposureRow
	ClientID  domain.ClientID `bun:"client_id,pk"`
	Found     bool
	UpdatedAt time.Time
}

// historyKey identifies an exposure by its user and breach, or a sent mail by its user and id.
type historyKey struct {
	user domain.UserID
	of   any // the name of the breach, or the id of the mail
}

// Exposures is the kind of exposures. A user has at most one per breach, so a record names the user and the breach
// instead of an id. An import recomputes the scores of the users, without events or notices (decisions 7.11).
var Exposures Kind = &kind[domain.ExposureRecord, importedExposure]{
	object: "exposure", partner: ofPartner("e"), order: "e.client_id, e.user_id, e.breach_name", columns: "e.id",
	key:        func(r *domain.ExposureRecord) any { return historyKey{r.User.Value.ID, r.BreachName.Value} },
	begin:      beginExposures,
	afterStore: addExposureEffects,
}

type (
	importingExposures = recordBatch[domain.ExposureRecord, importedExposure]
	appliedExposure    = recordChange[domain.ExposureRecord, importedExposure]
)

// beginExposures locks the users, the breaches and the existing exposures, and sets finish of the kind.
func beginExposures(ctx context.Context, b *importingExposures) error {
	if _, err := b.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", b.found.ids(domain.UserID{}.Prefix()))); err != nil {
		return err
	}
	users, breaches := make([]domain.UserID, len(b.list)), make([]string, len(b.list))
	for i, a := range b.list {
		users[i], breaches[i] = a.record.User.Value.ID, a.record.BreachName.Value
	}
	catalogue, err := b.LockBreaches(ctx, breaches)
	if err != nil {
		return err
	}
	b.WillLock(db.ExposureLocks)
	if err := lockHistory(ctx, b, users, "breach_name", pg.SQL("?::text[]", breaches)); err != nil {
		return err
	}

	b.kind.finish = func(_ *importingExposures, a *appliedExposure) error {
		breach := catalogue[a.record.BreachName.Value]
		if breach == nil {
			return fmt.Errorf("breach_name: %s; import the breaches first: partnerapi breaches import",
				domain.NoSuchObject(db.BreachNoun))
		}
		return finishExposure(a, breach)
	}
	return nil
}

// finishExposure sets Found. For a new exposure it also sets the severity and data classes that the record leaves out:
// the severity follows from the record's data classes or, without these, from the breach. It refuses impossible times.
func finishExposure(a *appliedExposure, breach *db.BreachRow) error {
	r, e := a.record, a.after
	if a.before == nil && !r.Severity.Given {
		e.Severity = breach.Severity
		if r.DataClasses.Given {
			e.Severity = domain.SeverityOf(r.DataClasses.Value, breach.Sensitive, breach.SpamList)
		}
	}
	if a.before == nil && !r.DataClasses.Given {
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
	return nil
}

// addExposureEffects recomputes the scores, and advances updated_at, of the users with new or changed exposures, except
// in clients without Dark Web Monitoring, for which exposures do not count.
func addExposureEffects(ctx context.Context, b *importingExposures) error {
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

// SentEmails is the kind of mails sent to users. An import only stores them. Mails of two users may have the same id,
// so each record names its user.
var SentEmails Kind = &kind[domain.SentEmailRecord, db.SentEmailRow]{
	object: "sent_email", partner: ofPartner("e"), order: "e.client_id, e.user_id, e.id",
	key: func(r *domain.SentEmailRecord) any { return historyKey{r.User.Value.ID, r.ID.ID} },
	begin: func(ctx context.Context, b *recordBatch[domain.SentEmailRecord, db.SentEmailRow]) error {
		users := pg.MapRows(b.list, func(a **recordChange[domain.SentEmailRecord, db.SentEmailRow]) domain.UserID {
			return (*a).record.User.Value.ID
		})
		return lockHistory(ctx, b, users, "id", pg.SQL("?::uuid[]", b.ids()))
	},
}

// lockHistory locks the existing rows whose user and another column have the values of a record, and keeps them in
// b.byKey. users and values are parallel. The LATERAL join makes PostgreSQL search the key for each record; without
// statistics it would otherwise read the whole table.
func lockHistory[Record, Row any](
	ctx context.Context, b *recordBatch[Record, Row], users []domain.UserID, column string, values pg.Query,
) error {
	clients := pg.MapRows(users, func(id *domain.UserID) domain.ClientID {
		return domain.OrZero(b.found.find(*id)).ClientID
	})
	rows, err := pg.All[Row](ctx, b, "lock "+pg.Table[Row](), pg.SQL(`
		SELECT `+pg.Columns[Row]()+` FROM (
			SELECT DISTINCT * FROM unnest(?::uuid[], ?::uuid[], ?) AS k (client_id, user_id, key) ORDER BY 1, 2, 3
		) AS l CROSS JOIN LATERAL (
			SELECT * FROM `+pg.Table[Row]()+` WHERE client_id = l.client_id AND user_id = l.user_id AND `+column+` = l.key
			FOR NO KEY UPDATE
		) AS e`, pg.IDs(clients), pg.IDs(users), values))
	b.keep(rows)
	return err
}
