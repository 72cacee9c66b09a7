package db

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// counters are what a change adds to stored counters; zero values add nothing.
type counters struct {
	days     map[dayKey]domain.PhishingCounts
	clients  map[domain.ClientID]userCounts
	partners map[domain.PartnerID]int
	// frameworks are the clients whose lists of frameworks are to be made again.
	frameworks map[domain.ClientID]struct{}
}

// dayKey names a client's counters of the mails sent on a day (UTC).
type dayKey struct {
	client domain.ClientID
	day    domain.Date
}

// userCounts counts users by state.
type userCounts struct{ active, inactive int }

// CountMails moves the counters of the mails that a client's users were sent on a
// day.
func (c *Change) CountMails(client domain.ClientID, day domain.Date, by domain.PhishingCounts) {
	if c.counters.days == nil {
		c.counters.days = map[dayKey]domain.PhishingCounts{}
	}
	key := dayKey{client, day}
	c.counters.days[key] = c.counters.days[key].Plus(by)
}

// countUsers moves a client's counters of users.
func (c *Change) countUsers(client domain.ClientID, active, inactive int) {
	if c.counters.clients == nil {
		c.counters.clients = map[domain.ClientID]userCounts{}
	}
	n := c.counters.clients[client]
	c.counters.clients[client] = userCounts{n.active + active, n.inactive + inactive}
}

// frameworksMoved has a client's list of frameworks made again. The audiences of
// the client are locked.
func (c *Change) frameworksMoved(client domain.ClientID) {
	if c.counters.frameworks == nil {
		c.counters.frameworks = map[domain.ClientID]struct{}{}
	}
	c.counters.frameworks[client] = struct{}{}
}

// countClients moves a partner's counter of clients.
func (c *Change) countClients(partner domain.PartnerID, by int) {
	if c.counters.partners == nil {
		c.counters.partners = map[domain.PartnerID]int{}
	}
	c.counters.partners[partner] += by
}

// flushCounters moves the counters. They come last: what happens to a client or a
// partner at one time meets in these rows, and waits only for the commit of
// others.
func (c *Change) flushCounters(ctx context.Context) error {
	if err := c.flushDays(ctx); err != nil {
		return err
	}
	if err := c.flushUserCounts(ctx); err != nil {
		return err
	}
	if err := c.flushFrameworks(ctx); err != nil {
		return err
	}
	for _, partner := range sortedIDs(c.counters.partners) { // of whom a change has one at the most
		c.Lock(PartnerLocks)
		_, err := pg.Exec(ctx, c, "count a partner's clients", pg.SQL(
			"UPDATE partners SET client_count = client_count + ?1::integer WHERE id = ?0",
			partner, c.counters.partners[partner]))
		if err != nil {
			return err
		}
	}
	return nil
}

// flushUserCounts moves the clients' counters of users, in one statement for one
// client. Several are locked in their order by a statement of its own: one that
// locks a row and then updates it follows its versions from the one that the
// statement began with, and may wait there for those who wait for it.
func (c *Change) flushUserCounts(ctx context.Context) error {
	ids := sortedIDs(c.counters.clients)
	if len(ids) == 0 {
		return nil
	}
	active, inactive := make([]int, len(ids)), make([]int, len(ids))
	for i, id := range ids {
		active[i], inactive[i] = c.counters.clients[id].active, c.counters.clients[id].inactive
	}
	c.Lock(ClientLocks)
	if len(ids) > 1 {
		_, err := pg.Exec(ctx, c, "lock clients", pg.SQL(
			"SELECT FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
		if err != nil {
			return err
		}
	}
	_, err := pg.Exec(ctx, c, "count the users of clients", pg.SQL(`
		UPDATE clients AS c SET users_active = users_active + m.active, users_inactive = users_inactive + m.inactive,
			updated_at = greatest(updated_at, ?3)
		FROM unnest(?0::uuid[], ?1::integer[], ?2::integer[]) AS m (id, active, inactive)
		WHERE c.id = m.id`, pg.IDs(ids), active, inactive, c.At))
	return err
}

// flushFrameworks stores which frameworks are assigned to clients: each once,
// sorted. Several clients are locked as in flushUserCounts.
func (c *Change) flushFrameworks(ctx context.Context) error {
	ids := sortedIDs(c.counters.frameworks)
	if len(ids) == 0 {
		return nil
	}
	c.Lock(ClientLocks)
	if len(ids) > 1 {
		_, err := pg.Exec(ctx, c, "lock clients", pg.SQL(
			"SELECT FROM clients WHERE id = ANY(?::uuid[]) ORDER BY id FOR NO KEY UPDATE", pg.IDs(ids)))
		if err != nil {
			return err
		}
	}
	_, err := pg.Exec(ctx, c, "list the frameworks of clients", pg.SQL(`
		WITH listed AS MATERIALIZED (
			SELECT k.id, coalesce((
				SELECT array_agg(DISTINCT framework_id ORDER BY framework_id)
				FROM framework_assignments WHERE client_id = k.id), '{}') AS frameworks
			FROM unnest(?0::uuid[]) AS k (id)
		)
		UPDATE clients AS c SET framework_ids = l.frameworks, updated_at = greatest(c.updated_at, ?1)
		FROM listed AS l WHERE c.id = l.id AND c.framework_ids <> l.frameworks`, pg.IDs(ids), c.At))
	return err
}

func sortedIDs[K domain.Kind, V any](of map[domain.ID[K]]V) []domain.ID[K] {
	ids := make([]domain.ID[K], 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b domain.ID[K]) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// dayRecord is what is added to a row of phishing_days, by its columns.
type dayRecord struct {
	ClientID             string      `json:"client_id"`
	Day                  domain.Date `json:"day"`
	Sent                 int         `json:"sent"`
	Opened               int         `json:"opened"`
	Clicked              int         `json:"clicked"`
	Reported             int         `json:"reported"`
	CredentialsSubmitted int         `json:"credentials_submitted"`
	AttachmentsOpened    int         `json:"attachments_opened"`
}

// flushDays moves the counters of simulated mails.
func (c *Change) flushDays(ctx context.Context) error {
	var records []dayRecord
	for key, n := range c.counters.days {
		if n != (domain.PhishingCounts{}) {
			records = append(records, dayRecord{
				key.client.UUID(), key.day, n.Sent, n.Opened, n.Clicked, n.Reported, n.CredentialsSubmitted, n.AttachmentsOpened,
			})
		}
	}
	if records == nil {
		return nil
	}
	slices.SortFunc(records, func(a, b dayRecord) int {
		return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), b.Day.DaysUntil(a.Day))
	})
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	c.Lock(DayLocks)
	_, err = pg.Exec(ctx, c, "count simulated mails", pg.SQL(`
		INSERT INTO phishing_days AS p
			(client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened)
		SELECT client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened
		FROM json_populate_recordset(NULL::phishing_days, ?::json) ORDER BY client_id, day
		ON CONFLICT (client_id, day) DO UPDATE SET sent = p.sent + excluded.sent, opened = p.opened + excluded.opened,
			clicked = p.clicked + excluded.clicked, reported = p.reported + excluded.reported,
			credentials_submitted = p.credentials_submitted + excluded.credentials_submitted,
			attachments_opened = p.attachments_opened + excluded.attachments_opened`, string(text)))
	return err
}
