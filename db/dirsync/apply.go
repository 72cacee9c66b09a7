package dirsync

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// How a run is applied, in batches.

const (
	// batchSize is how many accounts are applied in one transaction.
	batchSize = 1000
	// maxTries bounds the attempts at a batch that conflicts with other writers.
	maxTries = 5
)

// stagedAccount is an account to be applied, with its current user, if any.
type stagedAccount struct {
	ObjectID string
	Account  string
	UserID   *domain.UserID

	domain.AccountRecord
}

// batch is a set of accounts that are applied to the users of a client in one
// transaction.
type batch struct {
	*db.Change
	client domain.ClientID
	source domain.UserSource
	rows   []stagedAccount
	// users are the locked users that the accounts may concern.
	users map[domain.UserID]domain.User
	// groups are the directory's groups by name.
	groups map[string]domain.GroupID

	created []domain.User
	changed []userChange
	// links are the rows to store in directory_accounts, and unlinked the users whose current
	// accounts are replaced.
	links    []accountLink
	unlinked []domain.UserID
	// later are accounts that wait for phaseRename.
	later  []string
	counts domain.SyncCounts
	// updatedInactive counts the updated users whose accounts are not wanted, such as disabled
	// ones. counts.Updated leaves them out.
	updatedInactive int
	skipped         []domain.SkippedAccount
}

type userChange struct{ before, after domain.User }

// accountLink is a row of directory_accounts, by its columns.
type accountLink struct {
	ObjectID  string          `json:"object_id"`
	Account   json.RawMessage `json:"account"`
	UserID    *string         `json:"user_id"`
	Unsettled bool            `json:"unsettled"`
}

// Apply applies a batch of what a run has read, and returns how many accounts it applied: 0 if
// none were left. It takes the same number of statements for any number of accounts of a
// phase. It must not be called in a transaction, for it retries a batch that conflicts with
// other writers.
func Apply(ctx context.Context, d *db.DB, l *Lease) (applied int, err error) {
	for try := 1; ; try++ {
		err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
			applied, err = applyBatch(ctx, c, l)
			return err
		})
		if err == nil || try == maxTries || !pg.Retryable(err) && !domain.IsCode(err, domain.Conflict) {
			return applied, err
		}
	}
}

func applyBatch(ctx context.Context, c *db.Change, l *Lease) (int, error) {
	if err := c.ShareAudiences(ctx, l.Client); err != nil {
		return 0, err
	}
	run, err := lockRun(ctx, c, l)
	if err != nil {
		return 0, err
	}
	phase, err := pg.One[*int](ctx, c, "look for the phase of a sync run", pg.SQL(
		"SELECT min(phase) FROM sync_accounts WHERE client_id = ? AND phase > 0", l.Client))
	if err != nil || phase == nil {
		return 0, err
	}
	s := &batch{Change: c, client: l.Client, source: domain.UserSource(l.Provider)}
	if err := s.read(ctx, *phase); err != nil {
		return 0, err
	}

	if *phase != phaseLeave {
		if err := s.findGroups(ctx, l.Provider); err != nil {
			return 0, err
		}
	}
	switch *phase {
	case phaseLeave:
		err = s.leave(ctx)
	case phaseUpdate:
		err = s.update(ctx)
	case phaseRename:
		err = s.rename(ctx)
	case phaseJoin:
		err = s.join(ctx)
	}
	if err != nil {
		return 0, err
	}
	return len(s.rows), s.write(ctx, l, min(domain.MaxSkipped-run.Skipped, len(s.skipped)))
}

// read reads a batch of accounts of a phase: all of phaseRename, for they may wait for each
// other.
func (s *batch) read(ctx context.Context, phase int) error {
	// Looked up account by account: a join would be planned for the few accounts that
	// the client had when the table was analyzed.
	q := pg.From("sync_accounts AS s").Columns(`s.object_id, s.account::text AS account, (SELECT d.user_id
		FROM directory_accounts AS d WHERE d.client_id = s.client_id AND d.object_id = s.object_id) AS user_id`).
		Where("s.client_id = ? AND s.phase = ?", s.client, phase).OrderBy("s.object_id")
	if phase != phaseRename {
		q.Limit(batchSize)
	}
	rows, err := pg.All[stagedAccount](ctx, s, "read staged accounts", q)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := json.Unmarshal([]byte(rows[i].Account), &rows[i].AccountRecord); err != nil {
			return fmt.Errorf("read the account %s: %w", rows[i].ObjectID, err)
		}
	}
	s.rows = rows
	return nil
}

// lockLinked locks and reads the users of the accounts.
func (s *batch) lockLinked(ctx context.Context) error {
	var ids []domain.UserID
	for i := range s.rows {
		if id := s.rows[i].UserID; id != nil {
			ids = append(ids, *id)
		}
	}
	return s.lockWhere(ctx, pg.SQL("u.client_id = ? AND u.id = ANY(?::uuid[])", s.client, pg.IDs(ids)))
}

func (s *batch) lockWhere(ctx context.Context, which pg.Query) error {
	rows, err := s.LockUserRows(ctx, which)
	s.users = pg.Index(rows, func(r *db.UserRow) (domain.UserID, domain.User) { return r.ID, r.User() })
	return err
}

// leave deactivates the users of accounts that are gone.
func (s *batch) leave(ctx context.Context) error {
	if err := s.lockLinked(ctx); err != nil {
		return err
	}
	for i := range s.rows {
		r := &s.rows[i]
		s.link(r, r.UserID, false)
		if r.UserID == nil {
			continue
		}
		before := s.users[*r.UserID]
		if before.Status != domain.Active || slices.Contains(before.Overrides, "status") {
			continue
		}
		after := before
		after.Status = domain.Inactive
		s.changed = append(s.changed, userChange{before, after})
		s.counts.Deactivated++
	}
	return nil
}

// update makes users follow their accounts, disabled ones too: a user who kept an address that
// the account no longer has would be found by it. An account whose new address another user has
// waits: that user may be about to give it up.
func (s *batch) update(ctx context.Context) error {
	if err := s.lockLinked(ctx); err != nil {
		return err
	}
	holders, err := s.holders(ctx)
	if err != nil {
		return err
	}
	for i := range s.rows {
		r := &s.rows[i]
		email, valid := r.Address()
		if holder, held := holders[email]; valid && held && holder != *r.UserID {
			s.later = append(s.later, r.ObjectID)
			continue
		}
		settled := valid || !r.HasMail()
		switch {
		case valid:
			holders[email] = *r.UserID
		case !settled:
			s.skip(r, domain.SkippedInvalid)
		}
		if !valid {
			email = s.users[*r.UserID].Email
		}
		s.follow(r, *r.UserID, email)
		s.link(r, r.UserID, !settled)
	}
	return nil
}

// holders returns the users who have the addresses of the accounts, by address.
func (s *batch) holders(ctx context.Context) (map[string]domain.UserID, error) {
	type holder struct {
		Email string
		ID    domain.UserID
	}
	rows, err := pg.All[holder](ctx, s, "look for addresses", pg.SQL(
		"SELECT email, id FROM users WHERE client_id = ? AND email = ANY(?::text[])", s.client, s.addresses()))
	return pg.Index(rows, func(h *holder) (string, domain.UserID) { return h.Email, h.ID }), err
}

// addresses are the valid addresses of the accounts.
func (s *batch) addresses() []string {
	emails := []string{}
	for i := range s.rows {
		if email, ok := s.rows[i].Address(); ok {
			emails = append(emails, email)
		}
	}
	return emails
}

// follow updates a user from an account, with an address that is the user's or free. It
// reports whether that changes anything.
func (s *batch) follow(r *stagedAccount, id domain.UserID, email string) bool {
	before := s.users[id]
	after := before.Syncs(&r.AccountRecord, s.source, email)
	after.Group = &domain.Group{ID: s.groups[r.GroupName(domain.Directory(s.source))]}
	same := before.SameShown(&after) && before.Email == after.Email && before.Source == after.Source &&
		before.SameGroup(&after)
	switch {
	case same:
		return false
	case before.Status == domain.Active && after.Status == domain.Inactive:
		s.counts.Deactivated++
	case r.Wanted():
		s.counts.Updated++
	default:
		s.updatedInactive++
	}
	s.changed = append(s.changed, userChange{before, after})
	return true
}

// join gives accounts without a user one: the user of their address, made by hand
// or left by an account that is gone, or else a new one. Whoever has an account that
// still exists, enabled or not, is another person.
func (s *batch) join(ctx context.Context) error {
	err := s.lockWhere(ctx, pg.SQL("u.client_id = ? AND u.email = ANY(?::text[])", s.client, s.addresses()))
	if err != nil {
		return err
	}
	byEmail := make(map[string]domain.UserID, len(s.users))
	for id, u := range s.users {
		byEmail[u.Email] = id
	}
	owned, err := s.owners(ctx)
	if err != nil {
		return err
	}

	taken := map[string]bool{}
	for i := range s.rows {
		r := &s.rows[i]
		email, valid := r.Address()
		id, known := byEmail[email]
		exists, linked := owned[id]
		switch {
		case !valid:
			s.skip(r, domain.SkippedInvalid)
			s.link(r, nil, true)
			continue
		case taken[email] || known && linked && exists:
			s.skip(r, domain.SkippedTaken)
			s.link(r, nil, true)
			continue
		case !known:
			id = s.create(r, email)
		case linked:
			s.unlinked = append(s.unlinked, id)
			s.follow(r, id, email)
		default:
			if s.follow(r, id, email) {
				s.counts.Updated--
			}
			s.counts.Merged++
		}
		taken[email] = true
		s.link(r, &id, false)
	}
	return nil
}

// owners returns the users of the batch who have an account, and whether the directory still
// has it.
func (s *batch) owners(ctx context.Context) (map[domain.UserID]bool, error) {
	type account struct {
		UserID domain.UserID
		Exists bool
	}
	rows, err := pg.All[account](ctx, s, "look for the accounts of users", pg.SQL(`
		SELECT d.user_id, `+existsSQL("d.account")+` AS exists FROM directory_accounts AS d
		WHERE d.client_id = ? AND d.user_id = ANY(?::uuid[])`, s.client, pg.IDs(slices.Collect(maps.Keys(s.users)))))
	return pg.Index(rows, func(a *account) (domain.UserID, bool) { return a.UserID, a.Exists }), err
}

func (s *batch) create(r *stagedAccount, email string) domain.UserID {
	u := domain.User{
		ID: db.NewID[domain.UserKind](), Client: s.client, Language: domain.English, CreatedAt: s.At, UpdatedAt: s.At,
	}.Syncs(&r.AccountRecord, s.source, email)
	u.Score = u.Role.Baseline()
	u.Group = &domain.Group{ID: s.groups[r.GroupName(domain.Directory(s.source))]}
	s.created = append(s.created, u)
	s.counts.Created++
	return u.ID
}

func (s *batch) skip(r *stagedAccount, reason string) {
	s.skipped = append(s.skipped, domain.SkippedAccount{Address: domain.OrZero(r.Email), Reason: reason})
}

// link adds an account to links.
func (s *batch) link(r *stagedAccount, user *domain.UserID, unsettled bool) {
	link := accountLink{ObjectID: r.ObjectID, Account: json.RawMessage(r.Account), Unsettled: unsettled}
	if user != nil {
		link.UserID = new(user.UUID())
	}
	s.links = append(s.links, link)
}
