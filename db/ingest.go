package db

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ingestTries is how often a batch is tried that PostgreSQL rolls back for the
// sake of other transactions.
const ingestTries = 5

// IngestSignals applies the platform's signals, of any clients, in one
// transaction. It is idempotent: a signal whose id was applied before changes
// nothing. It returns what became of each, in their order.
//
// Signals may come in any order and be split among calls in any way: what is kept
// of two completions, findings, resolvings or signatures does not depend on which
// came first. Of what is done with mails (domain.Result.Take) the status, the
// reports and the counts of all but opens do not, unless a scanner had a hand in
// it; which opens, and which times, are kept may.
//
// It must not be called in a transaction, for it tries again what PostgreSQL
// rolled back. It takes the same number of statements for any number of signals.
func (d *DB) IngestSignals(ctx context.Context, batch []domain.Signal) (results []domain.IngestResult, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		err = d.Change(ctx, func(ctx context.Context, c *Change) error {
			results, err = c.ingest(ctx, batch)
			return err
		})
		if err == nil || try == ingestTries || !pg.Retryable(err) {
			return results, err
		}
	}
}

func (c *Change) ingest(ctx context.Context, batch []domain.Signal) ([]domain.IngestResult, error) {
	if err := c.lockMessages(ctx, batch); err != nil {
		return nil, err
	}
	known, err := c.lockNamed(ctx, batch)
	if err != nil {
		return nil, err
	}
	if err := c.refuseResting(ctx, known.owners()); err != nil {
		return nil, err
	}
	batch = known.simulated(batch)

	results := make([]domain.IngestResult, len(batch))
	for i := range batch {
		results[i].Refusal = known.refusal(&batch[i])
	}
	if err := c.enterSignals(ctx, batch, results); err != nil {
		return nil, err
	}

	var fresh []*domain.Signal
	for i := range batch {
		if results[i] == (domain.IngestResult{}) {
			fresh = append(fresh, &batch[i])
		}
	}
	return results, c.applySignals(ctx, known, fresh)
}

// named are the objects that signals name, by what names them.
type named struct {
	rows     []resultRow
	results  map[domain.ResultID]domain.Result
	users    map[domain.UserID]domain.ClientID
	courses  map[domain.CourseID]bool
	policies map[domain.PolicyID]domain.ClientID
	breaches map[string]*breachRow
	clients  map[domain.ClientID]bool
}

// owners are the clients of what was found.
func (n *named) owners() []domain.ClientID {
	owners := slices.AppendSeq(slices.Collect(maps.Keys(n.clients)), maps.Values(n.users))
	owners = slices.AppendSeq(owners, maps.Values(n.policies))
	for i := range n.rows {
		owners = append(owners, n.rows[i].ClientID)
	}
	return owners
}

// lockNamed finds and locks what the signals name. Nothing of an archived client
// is found.
func (c *Change) lockNamed(ctx context.Context, batch []domain.Signal) (n *named, err error) {
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
		users = append(users, s.User)
	}

	n = &named{results: map[domain.ResultID]domain.Result{}}
	c.Lock(ResultLocks)
	if n.rows, err = c.lockResults(ctx, steps); err != nil {
		return nil, err
	}
	for i := range n.rows {
		r := n.rows[i].result()
		n.results[r.ID] = r
		users = append(users, r.User) // who will be scored again
	}
	reporters, err := c.reporters(ctx, messages)
	if err != nil {
		return nil, err
	}
	if n.users, err = c.lockOwners(ctx, append(users, reporters...)); err != nil {
		return nil, err
	}
	if n.clients, err = existing(ctx, c, "look for clients", "clients WHERE archived_at IS NULL AND", clients); err != nil {
		return nil, err
	}
	if n.policies, err = c.lockPolicies(ctx, policies); err != nil {
		return nil, err
	}
	if n.breaches, err = c.lockBreaches(ctx, breaches); err != nil {
		return nil, err
	}
	n.courses, err = existing(ctx, c, "look for courses", "courses WHERE", courses)
	return n, err
}

// existing returns those of the ids that are rows of a table and hold its condition,
// which ends in AND or WHERE.
func existing[K domain.Kind](
	ctx context.Context, c *Change, what, from string, ids []domain.ID[K],
) (map[domain.ID[K]]bool, error) {
	there := map[domain.ID[K]]bool{}
	if len(ids) == 0 {
		return there, nil
	}
	found, err := pg.All[domain.ID[K]](ctx, c, what, pg.SQL("SELECT id FROM "+from+" id = ANY(?::uuid[])", pg.IDs(ids)))
	for _, id := range found {
		there[id] = true
	}
	return there, err
}

// lockOwners locks users and returns whose they are.
func (c *Change) lockOwners(
	ctx context.Context, users []domain.UserID,
) (map[domain.UserID]domain.ClientID, error) {
	keys, err := c.lockUsers(ctx, pg.SQL(`u.id = ANY(?::uuid[])
		AND EXISTS (SELECT 1 FROM clients AS c WHERE c.id = u.client_id AND c.archived_at IS NULL)`, pg.IDs(users)))
	return ownersOf(keys), err
}

func ownersOf(keys []domain.UserKey) map[domain.UserID]domain.ClientID {
	owners := make(map[domain.UserID]domain.ClientID, len(keys))
	for _, k := range keys {
		owners[k.User] = k.Client
	}
	return owners
}

// refusal is why a signal cannot be applied; empty where it can. To a user the
// policies of other clients do not exist.
func (n *named) refusal(s *domain.Signal) string {
	if kind, ok := s.AboutMail(); ok {
		return n.mailRefusal(s, kind)
	}
	client, found := n.users[s.User]
	owner, foundPolicy := n.policies[s.Policy]
	trains := s.Type == domain.CourseStarted || s.Type == domain.CourseCompleted
	exposes := s.Type == domain.ExposureFound || s.Type == domain.ExposureResolved
	switch {
	case s.Type == domain.PolicyPublished:
		if !foundPolicy {
			return domain.NoSuchObject(s.Policy.Noun())
		}
	case s.Type == domain.EmailClassified:
		if !s.Client.IsZero() && !n.clients[s.Client] {
			return domain.NoSuchObject(s.Client.Noun())
		}
	case !found:
		return domain.NoSuchObject(s.User.Noun())
	case trains && !n.courses[s.Course]:
		return domain.NoSuchObject(s.Course.Noun())
	case s.Type == domain.PolicySigned && (!foundPolicy || owner != client):
		return domain.NoSuchObject(s.Policy.Noun())
	case exposes && n.breaches[s.Breach] == nil:
		return domain.NoSuchObject(breachNoun)
	}
	return ""
}

func (n *named) mailRefusal(s *domain.Signal, kind domain.ResultEventKind) string {
	r, found := n.results[s.Result]
	if !found {
		return domain.NoSuchObject(s.Result.Noun())
	}
	return r.Refuses(domain.ResultStep{Result: s.Result, Kind: kind, At: s.At})
}

// enterSignals enters the ids of the signals that can be applied, and marks those
// that were entered before: also where they are refused by now, for what they
// name is gone since.
func (c *Change) enterSignals(ctx context.Context, batch []domain.Signal, results []domain.IngestResult) error {
	first, refused := map[string]int{}, map[string][]int{}
	var order []int
	for i := range batch {
		id := batch[i].ID
		if results[i].Refusal != "" {
			refused[id] = append(refused[id], i)
			continue
		}
		results[i].Repeated = true // until its id turns out to be new
		if _, again := first[id]; !again {
			first[id] = i
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(batch[a].ID, batch[b].ID) })
	ids, types, times := make([]string, len(order)), make([]string, len(order)), make([]time.Time, len(order))
	for n, i := range order {
		ids[n], types[n], times[n] = batch[i].ID, string(batch[i].Type), batch[i].At
	}

	c.Lock(SignalLocks)
	entered, err := pg.All[enteredRow](ctx, c, "enter signals", pg.SQL(`
		WITH entered AS (
			INSERT INTO signals (id, type, at, taken_at)
			SELECT id, type, at, ?3::timestamptz FROM unnest(?0::text[], ?1::text[], ?2::timestamptz[]) AS s (id, type, at)
			ON CONFLICT (id) DO NOTHING RETURNING id
		)
		SELECT id, true AS new FROM entered
		UNION ALL SELECT id, false FROM signals WHERE id = ANY(?4::text[])`,
		ids, types, times, c.At, slices.Collect(maps.Keys(refused))))
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

// applySignals applies signals whose objects are locked.
func (c *Change) applySignals(ctx context.Context, n *named, signals []*domain.Signal) error {
	var steps []domain.ResultStep
	var starts, completions []lesson
	var signatures []signature
	var published []publication
	var sightings []sighting
	var reports []reportedRow
	var classified []classifiedRow
	for _, s := range signals {
		user := domain.UserKey{Client: n.users[s.User], User: s.User}
		if kind, ok := s.AboutMail(); ok {
			steps = append(steps, domain.ResultStep{Result: s.Result, Kind: kind, At: s.At})
			continue
		}
		switch s.Type {
		case domain.CourseStarted:
			starts = append(starts, lesson{user, s.Course, s.At})
		case domain.CourseCompleted:
			completions = append(completions, lesson{user, s.Course, s.At})
		case domain.PolicySigned:
			signatures = append(signatures, signature{user, s.Policy, s.Version, s.At})
		case domain.PolicyPublished:
			published = append(published, publication{n.policies[s.Policy], s.Policy, s.At})
		case domain.ExposureFound, domain.ExposureResolved:
			sightings = append(sightings, n.breaches[s.Breach].sighting(user, s))
		case domain.EmailReported:
			reports = append(reports, reportedRowOf(user, s))
		case domain.EmailClassified:
			classified = append(classified, classifiedRowOf(s))
		}
	}

	if err := c.complete(ctx, completions); err != nil {
		return err
	}
	if err := c.start(ctx, starts); err != nil {
		return err
	}
	if err := c.takeReported(ctx, reports, classified); err != nil {
		return err
	}
	if err := c.sight(ctx, sightings); err != nil {
		return err
	}
	// Publishing comes second: who signed the new version is then known.
	if err := c.sign(ctx, signatures); err != nil {
		return err
	}
	if err := c.publish(ctx, published); err != nil {
		return err
	}
	return c.advanceResults(ctx, n.rows, steps)
}

// What users did, as an export writes it beside the records.

// SignalLine is a signal as a line of an ingestion has it; what its type does not have
// is nil.
type SignalLine struct {
	ID             string                `json:"id"`
	Type           domain.SignalType     `json:"type"`
	At             string                `json:"at"`
	UserID         *domain.UserID        `json:"user_id,omitzero"`
	CourseID       *domain.CourseID      `json:"course_id,omitzero"`
	PolicyID       *domain.PolicyID      `json:"policy_id,omitzero"`
	Version        *int                  `json:"version,omitzero"`
	MessageID      *string               `json:"message_id,omitzero"`
	Subject        *string               `json:"subject,omitzero"`
	Sender         *string               `json:"sender,omitzero"`
	Classification *domain.EmailClass    `json:"classification,omitzero"`
	MailboxAction  *domain.MailboxAction `json:"mailbox_action,omitzero"`
	ClientID       *domain.ClientID      `json:"client_id,omitzero"`
}

// exportSignalsSQL are the signals that tell what users did and no record of an import
// holds: courses begun and completed, policies signed, emails reported and classified.
// Of archived clients and policies there are none, as none is taken of them. Their ids
// follow from what they tell.
const exportSignalsSQL = `
	WITH reached AS (SELECT c.id FROM clients AS c WHERE c.archived_at IS NULL AND ?0)
	(SELECT 'course_completed/' || a.user_id || '/' || a.course_id || '/' || a.round AS id, 'course_completed' AS type,
		a.completed_at AS at, a.user_id, a.course_id, NULL::uuid AS policy_id, NULL::integer AS version,
		NULL AS message_id, NULL AS subject, NULL AS sender, NULL AS classification, NULL AS mailbox_action,
		NULL::uuid AS client_id
	FROM assignments AS a WHERE a.client_id IN (SELECT id FROM reached) AND a.completed_at IS NOT NULL
	ORDER BY a.client_id, a.user_id, a.course_id, a.round)
	UNION ALL
	(SELECT 'course_started/' || a.user_id || '/' || a.course_id || '/' || a.round, 'course_started', a.started_at,
		a.user_id, a.course_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
	FROM assignments AS a WHERE a.client_id IN (SELECT id FROM reached) AND a.started_at IS NOT NULL
		AND a.completed_at IS NULL
	ORDER BY a.client_id, a.user_id, a.course_id, a.round)
	UNION ALL
	(SELECT 'policy_signed/' || s.user_id || '/' || s.policy_id || '/' || s.version, 'policy_signed', s.signed_at,
		s.user_id, NULL, s.policy_id, s.version, NULL, NULL, NULL, NULL, NULL, NULL
	FROM policy_signatures AS s JOIN policies AS p ON p.client_id = s.client_id AND p.id = s.policy_id
	WHERE s.client_id IN (SELECT id FROM reached) AND p.archived_at IS NULL
	ORDER BY s.client_id, s.policy_id, s.version, s.user_id)
	UNION ALL
	(SELECT 'email_reported/' || e.user_id || '/' || md5(e.message_id), 'email_reported', e.reported_at,
		e.user_id, NULL, NULL, NULL, e.message_id, e.subject, e.sender, NULL, NULL, NULL
	FROM reported_emails AS e WHERE e.client_id IN (SELECT id FROM reached)
	ORDER BY e.client_id, e.user_id, e.message_id)
	UNION ALL
	(SELECT DISTINCT ON (e.client_id, e.message_id)
		'email_classified/' || e.client_id || '/' || md5(e.message_id), 'email_classified', e.classified_at,
		NULL, NULL, NULL, NULL, e.message_id, NULL, NULL, e.classification, e.mailbox_action, e.client_id
	FROM reported_emails AS e WHERE e.client_id IN (SELECT id FROM reached) AND e.classified_at IS NOT NULL
	ORDER BY e.client_id, e.message_id, e.classified_at DESC, e.id)`

// ExportSignals reads what users did, beside what records hold, as signals with their
// own dates.
func (d *DB) ExportSignals(ctx context.Context, partner domain.PartnerID) iter.Seq2[SignalLine, error] {
	reached := pg.SQL("true")
	if !partner.IsZero() {
		reached = pg.SQL("c.partner_id = ?", partner)
	}
	return pg.Each[SignalLine](ctx, d, "export signals", pg.SQL(`
		SELECT id, type, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, user_id, course_id,
			policy_id, version, message_id, subject, sender, classification, mailbox_action, client_id
		FROM (`+exportSignalsSQL+`) AS s`, reached))
}
