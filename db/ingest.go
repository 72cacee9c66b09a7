package db

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// takeTries is how often a batch is tried that PostgreSQL rolls back for the
// sake of other transactions.
const takeTries = 5

// TakeSignals applies signals in one transaction, each at most once: one whose
// id was taken before changes nothing. It returns what became of each, in their
// order. Signals may come in any order and be split among calls in any way:
// what is kept of two completions, findings, resolvings or signatures does not
// depend on which came first. Of what is done with mails (domain.Result.Take)
// the status, the reports and the counts of all but opens do not, unless a
// scanner had a hand in it; which opens, and which times, are kept may.
//
// Do not call it in a transaction: a batch that PostgreSQL rolled back for the
// sake of another transaction is tried again, a few times. It takes the same
// number of statements for any number of signals. It locks results, users,
// policies, breaches, ids of signals and days, in this order and each kind in
// the order of its keys; so calls at once wait for each other.
func (d *DB) TakeSignals(ctx context.Context, batch []domain.Signal) ([]domain.Taking, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		takings, err := d.takeSignals(ctx, batch)
		if err == nil || try == takeTries || !retryable(err) {
			return takings, err
		}
	}
}

// retryable reports whether PostgreSQL rolled a transaction back for the sake of
// another one: a deadlock, most likely.
func retryable(err error) bool {
	var answered *pgconn.PgError
	return errors.As(err, &answered) && strings.HasPrefix(answered.Code, "40")
}

func (d *DB) takeSignals(ctx context.Context, batch []domain.Signal) ([]domain.Taking, error) {
	takings := make([]domain.Taking, len(batch))
	err := d.Tx(ctx, func(ctx context.Context) error {
		known, err := d.lockNamed(ctx, batch)
		if err != nil {
			return err
		}
		for i := range batch {
			takings[i] = domain.Taking{Unknown: known.missing(&batch[i]), Unsent: known.unsent(&batch[i])}
		}
		if err := d.enterSignals(ctx, batch, takings); err != nil {
			return err
		}
		var news []*domain.Signal
		for i := range batch {
			if takings[i] == (domain.Taking{}) {
				news = append(news, &batch[i])
			}
		}
		return d.applySignals(ctx, known, news)
	})
	return takings, err
}

// named is what there is of what signals name.
type named struct {
	results  map[domain.ResultID]*domain.Result
	users    map[domain.UserID]domain.ClientID
	courses  map[domain.CourseID]bool
	policies map[domain.PolicyID]policyState
	breaches map[string]*breachRow
}

type policyState struct {
	ID       domain.PolicyID
	ClientID domain.ClientID
	Archived bool
}

// lockNamed finds and locks what the signals name.
func (d *DB) lockNamed(ctx context.Context, batch []domain.Signal) (*named, error) {
	var steps []domain.ResultStep
	var users []domain.UserID
	var courses []domain.CourseID
	var policies []domain.PolicyID
	var breaches []string
	for i := range batch {
		s := &batch[i]
		if _, ok := s.AboutMail(); ok {
			steps = append(steps, domain.ResultStep{Result: s.Result})
			continue
		}
		switch s.Type {
		case domain.CourseCompleted:
			courses = append(courses, s.Course)
		case domain.PolicySigned, domain.PolicyPublished:
			policies = append(policies, s.Policy)
		case domain.ExposureFound, domain.ExposureResolved:
			breaches = append(breaches, s.Breach)
		}
		if s.Type != domain.PolicyPublished {
			users = append(users, s.User)
		}
	}
	n := &named{results: map[domain.ResultID]*domain.Result{}}
	results, err := (&Change{DB: d}).lockResults(ctx, steps)
	if err != nil {
		return nil, err
	}
	for i := range results {
		r := results[i].result()
		n.results[r.ID] = &r
		users = append(users, r.User) // who will be scored again
	}
	if n.users, err = d.lockOwners(ctx, users); err != nil {
		return nil, err
	}
	if n.policies, err = d.lockPolicies(ctx, policies); err != nil {
		return nil, err
	}
	if n.breaches, err = d.lockBreaches(ctx, breaches); err != nil {
		return nil, err
	}
	n.courses, err = d.coursesAmong(ctx, courses)
	return n, err
}

// lockOwners locks users of any clients that are not archived, and says whose
// they are.
func (d *DB) lockOwners(ctx context.Context, users []domain.UserID) (map[domain.UserID]domain.ClientID, error) {
	var rows []struct {
		ClientID domain.ClientID
		ID       domain.UserID
	}
	err := d.conn(ctx).NewRaw(`
		SELECT u.client_id, u.id FROM users AS u JOIN clients AS c ON c.id = u.client_id AND c.archived_at IS NULL
		WHERE u.id = ANY(?::uuid[]) ORDER BY u.client_id, u.id FOR NO KEY UPDATE OF u`, uuids(users)).Scan(ctx, &rows)
	owners := make(map[domain.UserID]domain.ClientID, len(rows))
	for _, r := range rows {
		owners[r.ID] = r.ClientID
	}
	return owners, d.bad("lock users", err)
}

// missing is the noun of what a signal names and there is not; empty for none.
// Another client's policy is none of the user's.
func (n *named) missing(s *domain.Signal) string {
	if _, ok := s.AboutMail(); ok {
		if n.results[s.Result] == nil {
			return s.Result.Noun()
		}
		return ""
	}
	client, found := n.users[s.User]
	policy := n.policies[s.Policy]
	switch {
	case s.Type == domain.PolicyPublished:
		if policy.ID.IsZero() || policy.Archived {
			return s.Policy.Noun()
		}
	case !found:
		return s.User.Noun()
	case s.Type == domain.CourseCompleted && !n.courses[s.Course]:
		return s.Course.Noun()
	case s.Type == domain.PolicySigned && (policy.ID.IsZero() || policy.Archived || policy.ClientID != client):
		return s.Policy.Noun()
	case (s.Type == domain.ExposureFound || s.Type == domain.ExposureResolved) && n.breaches[s.Breach] == nil:
		return breachNoun
	}
	return ""
}

// unsent reports whether a signal tells of a mail that is not sent.
func (n *named) unsent(s *domain.Signal) bool {
	r := n.results[s.Result]
	return r != nil && r.Unsent()
}

// enterSignals enters the ids of the signals that can be taken, and marks those
// that were entered before.
func (d *DB) enterSignals(ctx context.Context, batch []domain.Signal, takings []domain.Taking) error {
	first, refused := map[string]int{}, map[string][]int{}
	var order []int
	for i := range batch {
		if takings[i].Refused() {
			refused[batch[i].ID] = append(refused[batch[i].ID], i)
			continue
		}
		if _, again := first[batch[i].ID]; again {
			takings[i].Repeated = true
			continue
		}
		first[batch[i].ID] = i
		takings[i].Repeated = true // until its id turns out to be new
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(batch[a].ID, batch[b].ID) })
	ids, types, times := make([]string, len(order)), make([]string, len(order)), make([]string, len(order))
	for n, i := range order {
		ids[n], types[n], times[n] = batch[i].ID, string(batch[i].Type), timeKey(batch[i].At)
	}
	var rows []struct {
		ID  string
		New bool
	}
	err := d.conn(ctx).NewRaw(`
		WITH entered AS (
			INSERT INTO signals (id, type, at, taken_at)
			SELECT id, type, at, ?3 FROM unnest(?0::text[], ?1::text[], ?2::timestamptz[]) AS s (id, type, at)
			ON CONFLICT (id) DO NOTHING RETURNING id
		)
		SELECT id, true AS new FROM entered UNION ALL SELECT id, false FROM signals WHERE id = ANY(?4::text[])`,
		pgdialect.Array(ids), pgdialect.Array(types), pgdialect.Array(times), d.Now(),
		pgdialect.Array(slices.Collect(maps.Keys(refused)))).Scan(ctx, &rows)
	for _, r := range rows {
		if r.New {
			takings[first[r.ID]].Repeated = false
			continue
		}
		for _, i := range refused[r.ID] { // taken when what it names was there
			takings[i] = domain.Taking{Repeated: true}
		}
	}
	return d.bad("enter signals", err)
}

// applySignals applies signals whose objects are locked. Those of mails come
// last: the counters that they move are the last rows to be locked.
func (d *DB) applySignals(ctx context.Context, n *named, signals []*domain.Signal) error {
	var steps []domain.ResultStep
	var completions []completion
	var signatures []signature
	var published []publication
	var sightings []sighting
	for _, s := range signals {
		user := domain.UserKey{Client: n.users[s.User], User: s.User}
		if kind, ok := s.AboutMail(); ok {
			steps = append(steps, domain.ResultStep{Result: s.Result, Kind: kind, At: s.At})
			continue
		}
		switch s.Type {
		case domain.CourseCompleted:
			completions = append(completions, completion{user, s.Course, s.At})
		case domain.PolicySigned:
			signatures = append(signatures, signature{user, s.Policy, s.Version, s.At})
		case domain.PolicyPublished:
			published = append(published, publication{n.policies[s.Policy].ClientID, s.Policy, s.At})
		case domain.ExposureFound, domain.ExposureResolved:
			sightings = append(sightings, n.breaches[s.Breach].sighting(user, s))
		}
	}
	completed, err := d.complete(ctx, completions)
	if err != nil {
		return err
	}
	exposed, err := d.sight(ctx, sightings)
	if err != nil {
		return err
	}
	// Publishing comes second: who signed the new version is then known.
	if err := d.sign(ctx, signatures); err != nil {
		return err
	}
	if err := d.publish(ctx, published); err != nil {
		return err
	}
	if err := d.rescoreUsers(ctx, append(completed, exposed...)); err != nil {
		return err
	}
	return d.AdvanceResults(ctx, steps)
}

// distinct sorts the keys of users by client and user and drops repetitions.
func distinct(keys []domain.UserKey) []domain.UserKey {
	slices.SortFunc(keys, func(a, b domain.UserKey) int {
		return cmp.Or(slices.Compare(a.Client[:], b.Client[:]), slices.Compare(a.User[:], b.User[:]))
	})
	return slices.Compact(keys)
}

func legacyKeyLists(keys []domain.UserKey) (clients []domain.ClientID, users []domain.UserID) {
	clients, users = make([]domain.ClientID, len(keys)), make([]domain.UserID, len(keys))
	for i, k := range keys {
		clients[i], users[i] = k.Client, k.User
	}
	return clients, users
}
