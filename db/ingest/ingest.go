// Package ingest applies the signals of the platform: actions of users on courses, policies and emails, and exposures
// of their data. platform/transfer reads the signals.
package ingest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Apply applies signals, of any clients, in one transaction, and returns their outcomes, in their order. It is
// idempotent: a signal whose id was applied before changes nothing.
//
// Signals may come in any order, and be split among calls in any way: which of two completions, findings, resolutions
// or signatures is kept does not depend on the order, nor do the status, the report and the counts of a simulated
// email. The email's stored times do: an opening that comes after the click, for example, is not stored.
//
// Apply retries a transaction that PostgreSQL rolled back, so it must not be called in a transaction. It takes the same
// number of statements for any number of signals.
func Apply(ctx context.Context, d *db.DB, batch []domain.Signal) (results []domain.IngestResult, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	err = d.RetryChange(ctx, func(ctx context.Context, c *db.Change) (err error) {
		results, err = apply(ctx, c, batch)
		return err
	})
	return results, err
}

// apply applies signals in a change: it locks their objects, refuses some signals, stores the ids of the others, and
// applies those that are new.
func apply(ctx context.Context, c *db.Change, batch []domain.Signal) ([]domain.IngestResult, error) {
	if err := lockMessages(ctx, c, batch); err != nil {
		return nil, err
	}
	objects, err := lockTargets(ctx, c, batch)
	if err != nil {
		return nil, err
	}
	if err := c.RejectSuspended(ctx, objects.owners()); err != nil {
		return nil, err
	}
	batch = objects.replaceSimulated(batch)

	results := make([]domain.IngestResult, len(batch))
	for i := range batch {
		results[i].Refusal = objects.refusal(&batch[i])
	}
	if err := enterSignals(ctx, c, batch, results); err != nil {
		return nil, err
	}

	var accepted []*domain.Signal // neither refused nor repeated
	for i := range batch {
		if results[i] == (domain.IngestResult{}) {
			accepted = append(accepted, &batch[i])
		}
	}
	return results, applySignals(ctx, c, objects, accepted)
}

// targets are the existing objects that signals name, by their ids or names. The values of users and policies are their
// clients.
type targets struct {
	rows     []db.ResultRow
	results  map[domain.ResultID]domain.Result
	users    map[domain.UserID]domain.ClientID
	courses  map[domain.CourseID]bool
	policies map[domain.PolicyID]domain.ClientID
	breaches map[string]*db.BreachRow
	clients  map[domain.ClientID]bool
}

// owners returns the clients of the objects, with duplicates.
func (t *targets) owners() []domain.ClientID {
	owners := slices.AppendSeq(slices.Collect(maps.Keys(t.clients)), maps.Values(t.users))
	owners = slices.AppendSeq(owners, maps.Values(t.policies))
	for i := range t.rows {
		owners = append(owners, t.rows[i].ClientID)
	}
	return owners
}

// lockTargets locks the results, users, policies and breaches that the signals name, and looks up the courses and
// clients. It returns those that exist, without those of archived clients. It also locks the users whose scores may
// change: the recipients of emails and the reporters of messages.
func lockTargets(ctx context.Context, c *db.Change, batch []domain.Signal) (t *targets, err error) {
	var steps []domain.ResultStep
	var users []domain.UserID
	var courses []domain.CourseID
	var policies []domain.PolicyID
	var breaches, messages []string
	var clients []domain.ClientID
	for i := range batch {
		s := &batch[i]
		if _, ok := s.AboutMail(); ok {
			steps = append(steps, domain.ResultStep{Result: s.Result})
			continue
		}
		switch s.Type {
		case domain.CourseStarted, domain.CourseCompleted:
			courses = append(courses, s.Course)
		case domain.PolicySigned, domain.PolicyPublished:
			policies = append(policies, s.Policy)
		case domain.ExposureFound, domain.ExposureResolved:
			breaches = append(breaches, s.Breach)
		case domain.EmailReported:
			if id := domain.SimulatedMessage(s.Message); !id.IsZero() {
				steps = append(steps, domain.ResultStep{Result: id})
			}
		case domain.EmailClassified:
			messages = append(messages, s.Message)
			clients = append(clients, s.Client)
		}
		users = append(users, s.User) // zero if the signal names none
	}

	t = &targets{results: map[domain.ResultID]domain.Result{}}
	c.WillLock(db.ResultLocks)
	if t.rows, err = c.LockResults(ctx, steps); err != nil {
		return nil, err
	}
	for i := range t.rows {
		r := t.rows[i].Result
		t.results[r.ID] = r
		users = append(users, r.User)
	}
	reporters, err := reporters(ctx, c.DB, messages)
	if err != nil {
		return nil, err
	}
	if t.users, err = lockUsers(ctx, c, append(users, reporters...)); err != nil {
		return nil, err
	}
	if t.clients, err = pg.Existing(ctx, c, "look for clients", "clients WHERE archived_at IS NULL AND", clients); err != nil {
		return nil, err
	}
	if t.policies, err = lockPolicies(ctx, c, policies); err != nil {
		return nil, err
	}
	if t.breaches, err = c.LockBreaches(ctx, breaches); err != nil {
		return nil, err
	}
	t.courses, err = pg.Existing(ctx, c, "look for courses", "courses WHERE", courses)
	return t, err
}

// lockUsers locks users and returns the client of each. It leaves out users of archived clients.
func lockUsers(
	ctx context.Context, c *db.Change, users []domain.UserID,
) (map[domain.UserID]domain.ClientID, error) {
	keys, err := c.LockUserKeys(ctx, pg.SQL(`u.id = ANY(?::uuid[])
		AND EXISTS (SELECT 1 FROM clients AS c WHERE c.id = u.client_id AND c.archived_at IS NULL)`, pg.IDs(users)))
	return pg.Index(keys, func(k *domain.UserKey) (domain.UserID, domain.ClientID) { return k.User, k.Client }), err
}

// refusal returns the reason why a signal cannot be applied, or "". It refuses signals that name an object that does
// not exist, and steps that the result of a simulated email refuses. For a signature, policies of other clients than
// the user's do not exist.
func (t *targets) refusal(s *domain.Signal) string {
	if kind, ok := s.AboutMail(); ok {
		r, found := t.results[s.Result]
		if !found {
			return domain.NoSuchObject(s.Result.Noun())
		}
		return r.Refuses(domain.ResultStep{Result: s.Result, Kind: kind, At: s.At})
	}
	client, foundUser := t.users[s.User]
	owner, foundPolicy := t.policies[s.Policy]
	ofCourse := s.Type == domain.CourseStarted || s.Type == domain.CourseCompleted
	ofExposure := s.Type == domain.ExposureFound || s.Type == domain.ExposureResolved
	switch {
	case s.Type == domain.PolicyPublished:
		if !foundPolicy {
			return domain.NoSuchObject(s.Policy.Noun())
		}
	case s.Type == domain.EmailClassified:
		if !s.Client.IsZero() && !t.clients[s.Client] {
			return domain.NoSuchObject(s.Client.Noun())
		}
	case !foundUser:
		return domain.NoSuchObject(s.User.Noun())
	case ofCourse && !t.courses[s.Course]:
		return domain.NoSuchObject(s.Course.Noun())
	case s.Type == domain.PolicySigned && (!foundPolicy || owner != client):
		return domain.NoSuchObject(s.Policy.Noun())
	case ofExposure && t.breaches[s.Breach] == nil:
		return domain.NoSuchObject(db.BreachNoun)
	}
	return ""
}

// enterSignals stores the ids of the signals that are not refused. It marks as repeated those whose ids were stored
// before, or occur earlier in the batch. A refused signal whose id was stored before is repeated, not refused: its
// object may have been deleted after it was applied.
func enterSignals(ctx context.Context, c *db.Change, batch []domain.Signal, results []domain.IngestResult) error {
	first, refused := map[string]int{}, map[string][]int{}
	var order []int
	for i := range batch {
		id := batch[i].ID
		if results[i].Refusal != "" {
			refused[id] = append(refused[id], i)
			continue
		}
		results[i].Repeated = true // set to false below if the id is new
		if _, repeated := first[id]; !repeated {
			first[id] = i
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(batch[a].ID, batch[b].ID) }) // against deadlocks
	ids, types, times := make([]string, len(order)), make([]string, len(order)), make([]time.Time, len(order))
	for n, i := range order {
		ids[n], types[n], times[n] = batch[i].ID, string(batch[i].Type), batch[i].At
	}

	c.WillLock(db.SignalLocks)
	entered, err := pg.All[enteredRow](ctx, c, "enter signals", pg.SQL(`
		WITH entered AS (
			INSERT INTO signals (id, type, at, taken_at)
			SELECT id, type, at, ?now::timestamptz FROM unnest(?ids::text[], ?types::text[], ?times::timestamptz[]) AS s (id, type, at)
			ON CONFLICT (id) DO NOTHING RETURNING id
		)
		SELECT id, true AS new FROM entered
		UNION ALL SELECT id, false FROM signals WHERE id = ANY(?refused::text[])`,
		pg.Named{
			"ids": ids, "types": types, "times": times, "now": c.At, "refused": slices.Collect(maps.Keys(refused)),
		}))
	for _, row := range entered {
		if row.New {
			results[first[row.ID]].Repeated = false
			continue
		}
		for _, i := range refused[row.ID] {
			results[i] = domain.IngestResult{Repeated: true}
		}
	}
	return err
}

type enteredRow struct {
	ID  string
	New bool
}

// applySignals applies signals whose objects exist and are locked.
func applySignals(ctx context.Context, c *db.Change, t *targets, signals []*domain.Signal) error {
	var steps []domain.ResultStep
	var starts, completions []courseEvent
	var signatures []signature
	var publications []publication
	var findings []finding
	var reports []reportedRow
	var classified []classifiedRow
	for _, s := range signals {
		user := domain.UserKey{Client: t.users[s.User], User: s.User}
		if kind, ok := s.AboutMail(); ok {
			steps = append(steps, domain.ResultStep{Result: s.Result, Kind: kind, At: s.At})
			continue
		}
		switch s.Type {
		case domain.CourseStarted:
			starts = append(starts, courseEvent{user, s.Course, s.At})
		case domain.CourseCompleted:
			completions = append(completions, courseEvent{user, s.Course, s.At})
		case domain.PolicySigned:
			signatures = append(signatures, signature{user, s.Policy, s.Version, s.At})
		case domain.PolicyPublished:
			publications = append(publications, publication{t.policies[s.Policy], s.Policy, s.At})
		case domain.ExposureFound, domain.ExposureResolved:
			findings = append(findings, findingOf(t.breaches[s.Breach], user, s))
		case domain.EmailReported:
			reports = append(reports, reportedRowOf(user, s))
		case domain.EmailClassified:
			classified = append(classified, classifiedRowOf(s))
		}
	}

	if err := completeCourses(ctx, c, completions); err != nil {
		return err
	}
	if err := startCourses(ctx, c, starts); err != nil {
		return err
	}
	if err := storeReported(ctx, c, reports, classified); err != nil {
		return err
	}
	if err := storeFindings(ctx, c, findings); err != nil {
		return err
	}
	// Publishing comes after signing, so that it finds the signatures of the new version.
	if err := signPolicies(ctx, c, signatures); err != nil {
		return err
	}
	if err := publishPolicies(ctx, c, publications); err != nil {
		return err
	}
	return c.AdvanceResults(ctx, t.rows, steps)
}
