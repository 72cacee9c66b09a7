package dirsync

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Applying the staged accounts of a run, in batches.

// BatchSize bounds the accounts that one transaction applies.
const BatchSize = 1000

// stagedAccount is an account to be applied, with its current user, or nil.
type stagedAccount struct {
	ObjectID string
	Account  string
	UserID   *domain.UserID

	domain.AccountRecord
}

// batch is a set of accounts that one transaction applies to the users of a client.
type batch struct {
	*db.Change
	client domain.ClientID
	source domain.UserSource
	most   int // bounds rows
	rows   []stagedAccount
	// users are the locked users that the accounts may change.
	users map[domain.UserID]domain.User
	// groups are the groups of the accounts, by name.
	groups map[string]domain.GroupID

	created []domain.User
	changed []userChange
	// links are the rows to store in directory_accounts. unlinked are users whose accounts lose them to other accounts.
	links    []accountLink
	unlinked []domain.UserID
	// toRename are the object ids of accounts that are moved to phaseRename.
	toRename []string
	counts   domain.SyncCounts
	// updatedInactive is the number of updated users whose accounts are not wanted, such as disabled ones. They are not
	// in counts.Updated.
	updatedInactive int
	skipped         []domain.SkippedAccount
}

type userChange struct{ before, after domain.User }

// accountLink is a row of directory_accounts as JSON.
type accountLink struct {
	ObjectID  string          `json:"object_id"`
	Account   json.RawMessage `json:"account"`
	UserID    *string         `json:"user_id"`
	Unsettled bool            `json:"unsettled"`
}

// Apply applies a batch of up to most of the staged accounts of a run, and returns their number, which is 0 if none are
// left. It retries the batch if it conflicts with concurrent writes, so it must not be called in a transaction.
// It takes the same number of statements for any number of accounts of a phase.
func Apply(ctx context.Context, d *db.DB, l *Lease, most int) (applied int, err error) {
	err = d.RetryChange(ctx, func(ctx context.Context, c *db.Change) (err error) {
		applied, err = applyBatch(ctx, c, l, most)
		return err
	})
	return applied, err
}

// applyBatch applies a batch of the lowest phase after phaseUnchanged, 0, that has accounts, and returns their number.
func applyBatch(ctx context.Context, c *db.Change, l *Lease, most int) (int, error) {
	if err := c.LockAudiencesShared(ctx, l.Client); err != nil {
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
	s := &batch{Change: c, client: l.Client, source: domain.UserSource(l.Provider), most: most}
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
	stored := min(domain.MaxSkipped-run.Skipped, len(s.skipped)) // the run's list of skipped accounts is bounded
	return len(s.rows), s.write(ctx, l, stored)
}

// read reads a batch of accounts of a phase. Of phaseRename it reads all, because accounts may wait for each other.
func (s *batch) read(ctx context.Context, phase int) error {
	// A subquery for each account: a join would be planned for the few accounts that the client had when the table was
	// last analyzed.
	var q pg.Query = pg.From("sync_accounts AS s").ColumnExpr(`s.object_id, s.account::text AS account, (SELECT d.user_id
		FROM directory_accounts AS d WHERE d.client_id = s.client_id AND d.object_id = s.object_id) AS user_id`).
		Apply(pg.Where("s.client_id = ? AND s.phase = ?", s.client, phase)).OrderExpr("s.object_id")
	if phase != phaseRename {
		q = pg.Limit(q, s.most)
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

// lockLinked locks and reads the current users of the accounts.
func (s *batch) lockLinked(ctx context.Context) error {
	var ids []domain.UserID
	for i := range s.rows {
		if id := s.rows[i].UserID; id != nil {
			ids = append(ids, *id)
		}
	}
	return s.lockUsers(ctx, pg.SQL("u.client_id = ? AND u.id = ANY(?::uuid[])", s.client, pg.IDs(ids)))
}

// lockUsers locks the users, alias u, that match a condition, and sets s.users to them.
func (s *batch) lockUsers(ctx context.Context, condition pg.Query) error {
	rows, err := s.LockUserRows(ctx, condition)
	s.users = pg.Index(rows, func(r *db.UserRow) (domain.UserID, domain.User) { return r.ID, r.ToUser() })
	return err
}

// leave deactivates the active users of accounts that no longer exist. If the status of such a user is an override, the
// account is skipped: every run lists it while the user is active (stageAgain).
func (s *batch) leave(ctx context.Context) error {
	if err := s.lockLinked(ctx); err != nil {
		return err
	}
	for i := range s.rows {
		r := &s.rows[i]
		s.link(r, r.UserID, false /* settled */)
		if r.UserID == nil { // it was never wanted
			continue
		}
		before := s.users[*r.UserID]
		if before.Status != domain.Active {
			continue
		}
		if slices.Contains(before.Overrides, "status") {
			s.skipped = append(s.skipped, domain.SkippedAccount{Address: before.Email, Reason: domain.SkippedOverride})
			continue
		}
		after := before
		after.Status = domain.Inactive
		s.changed = append(s.changed, userChange{before, after})
		s.counts.Deactivated++
	}
	return nil
}

// update updates the users of accounts, including disabled accounts: otherwise another account could be joined to the
// user by an address that the user's account no longer has. If another user has the new address of an account, the
// account waits for phaseRename, because that user may give up the address. Without a valid address the user keeps the
// current one; if the account has an invalid one, it is also skipped.
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
		if valid && len(holders.others(email, *r.UserID)) > 0 {
			s.toRename = append(s.toRename, r.ObjectID)
			continue
		}
		settled := valid || !r.HasMail()
		switch {
		case valid:
			holders.add(email, *r.UserID) // a later account with this address waits for phaseRename
		case !settled:
			s.skip(r, domain.SkippedInvalid)
		}
		if !valid {
			email = s.users[*r.UserID].Email
		}
		s.updateUser(r, *r.UserID, email)
		s.link(r, r.UserID, !settled)
	}
	return nil
}

// holder is a user who has an address.
type holder struct {
	ID    domain.UserID
	Email string
}

// holders are users by the keys of their addresses. Several have the same key only if they were stored before keys were
// compared.
type holders map[string][]holder

// others returns the users who keep a user from getting an address: all others with its key or, if the user has the key
// already, the one with exactly this address.
func (h holders) others(email string, user domain.UserID) (others []domain.UserID) {
	list := h[domain.EmailKey(email)]
	shares := slices.ContainsFunc(list, func(o holder) bool { return o.ID == user })
	for _, o := range list {
		if o.ID != user && (!shares || o.Email == email) {
			others = append(others, o.ID)
		}
	}
	return others
}

func (h holders) add(email string, user domain.UserID) {
	key := domain.EmailKey(email)
	others := slices.DeleteFunc(slices.Clone(h[key]), func(o holder) bool { return o.ID == user })
	h[key] = append(others, holder{user, email})
}

// holders returns the users who have the addresses of the accounts.
func (s *batch) holders(ctx context.Context) (holders, error) {
	rows, err := pg.All[holder](ctx, s, "look for addresses", pg.SQL("SELECT u.id, u.email FROM users AS u WHERE ?", s.haveAddresses()))
	found := holders{}
	for _, h := range rows {
		found.add(h.Email, h.ID)
	}
	return found, err
}

// haveAddresses returns the condition that a user, alias u, of the client has an address of the accounts.
func (s *batch) haveAddresses() pg.Query {
	return pg.SQL("u.client_id = ? AND "+db.EmailKey+" = ANY(?::text[])", s.client, db.EmailKeys(s.addresses()...))
}

// addresses returns the valid addresses of the accounts.
func (s *batch) addresses() []string {
	emails := []string{}
	for i := range s.rows {
		if email, ok := s.rows[i].Address(); ok {
			emails = append(emails, email)
		}
	}
	return emails
}

// updateUser updates a user from an account, and counts the change. The address must be the user's or free. It returns
// false if nothing changes.
func (s *batch) updateUser(r *stagedAccount, id domain.UserID, email string) bool {
	before := s.users[id]
	after := before.WithAccount(&r.AccountRecord, s.source, email)
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
	default: // such as a disabled account
		s.updatedInactive++
	}
	s.changed = append(s.changed, userChange{before, after})
	return true
}

// join links accounts without a user to the user with their address or, if there is none, to a new user. Of several
// users with the key of the address it is the one with exactly the address, otherwise the oldest. A user who has
// no account is merged; one whose account no longer exists is updated. One whose account exists, enabled or not, is
// another person: the new account is skipped. So is one with an invalid address, or that of an earlier account. The
// next run tries skipped accounts again (unsettled).
func (s *batch) join(ctx context.Context) error {
	if err := s.lockUsers(ctx, s.haveAddresses()); err != nil {
		return err
	}
	byEmail, byKey := usersByEmail(s.users)
	owners, err := s.owners(ctx)
	if err != nil {
		return err
	}

	taken, joined := map[string]bool{}, map[domain.UserID]bool{} // keys, and users
	for i := range s.rows {
		r := &s.rows[i]
		email, valid := r.Address()
		key := domain.EmailKey(email)
		id, known := byEmail[email]
		if !known {
			id, known = byKey[key]
		}
		exists, linked := owners[id]
		switch {
		case !valid:
			s.skip(r, domain.SkippedInvalid)
			s.link(r, nil, true /* unsettled */)
			continue
		case !known && taken[key] || joined[id] || known && linked && exists:
			s.skip(r, domain.SkippedTaken)
			s.link(r, nil, true /* unsettled */)
			continue
		case !known:
			id = s.create(r, email)
		case linked: // to an account that no longer exists
			s.unlinked = append(s.unlinked, id)
			s.updateUser(r, id, email)
		default:
			if s.updateUser(r, id, email) {
				s.counts.Updated-- // counted as merged instead
			}
			s.counts.Merged++
		}
		taken[key], joined[id] = true, true
		s.link(r, &id, false /* settled */)
	}
	return nil
}

// usersByEmail returns users by their addresses, and by the keys of these: the oldest with each key.
func usersByEmail(users map[domain.UserID]domain.User) (byEmail, byKey map[string]domain.UserID) {
	byEmail, byKey = make(map[string]domain.UserID, len(users)), make(map[string]domain.UserID, len(users))
	for id, u := range users {
		byEmail[u.Email] = id
		key := domain.EmailKey(u.Email)
		other, shared := users[byKey[key]]
		if !shared || cmp.Or(u.CreatedAt.Compare(other.CreatedAt), strings.Compare(id.UUID(), other.ID.UUID())) < 0 {
			byKey[key] = id
		}
	}
	return byEmail, byKey
}

// owners returns the users of the batch who have an account. The value reports whether the account still exists.
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
	}.WithAccount(&r.AccountRecord, s.source, email)
	u.Score = u.Role.Baseline()
	u.Group = &domain.Group{ID: s.groups[r.GroupName(domain.Directory(s.source))]}
	s.created = append(s.created, u)
	s.counts.Created++
	return u.ID
}

func (s *batch) skip(r *stagedAccount, reason string) {
	s.skipped = append(s.skipped, domain.SkippedAccount{Address: domain.OrZero(r.Email), Reason: reason})
}

// link adds an account to links. An unsettled account is staged again by the next run, even if it did not change.
func (s *batch) link(r *stagedAccount, user *domain.UserID, unsettled bool) {
	link := accountLink{ObjectID: r.ObjectID, Account: json.RawMessage(r.Account), Unsettled: unsettled}
	if user != nil {
		link.UserID = new(user.UUID())
	}
	s.links = append(s.links, link)
}
