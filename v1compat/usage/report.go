package usage

import (
	"context"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Report lists the callers of version 1, and the progress of each towards version 2.
type Report struct {
	// Keys are the keys that called version 1 within the retention, the latest call first.
	Keys []*Key
	// Days are all days of the report, the oldest first, with the calls of all keys, also of those that never called
	// version 1.
	Days []Day
	// Parity are the keys with which parity called version 1 within the retention, the latest call first. Nothing else
	// in the report includes these calls.
	Parity []*ParityKey
}

// ParityKey is a key's use of version 1 by parity.
type ParityKey struct {
	Who
	// LastAt is the last call.
	LastAt domain.Time `json:"last_at"`
	// Calls and Failures count calls in the days of the report.
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	// Rows are the calls in the days of the report, as GET /v1/usage shows them.
	Rows []Row `json:"-"`
}

// Key is a key that called version 1.
type Key struct {
	ID      domain.KeyID
	Partner domain.PartnerID
	Who
	Use
	// Rows are its calls of version 1 in the days of the report, as GET /v1/usage shows them.
	Rows []Row
	// Days are all days of the report, the oldest first. Their Successors count only successors of its Operations.
	Days []Day
}

// Who describes a key: its prefix, its name and its partner, empty if it is no longer in the database. Live is false
// for a key that is revoked, expired or deleted.
type Who struct {
	Prefix      string `json:"key"`
	Name        string `json:"name"`
	PartnerName string `json:"partner"`
	Live        bool   `json:"live"`
}

// Use is a key's use of version 1.
type Use struct {
	// LastAt is its last call of version 1.
	LastAt domain.Time `json:"last_at"`
	// Calls and Failures count calls of version 1 in the days of the report.
	Calls    int64   `json:"calls"`
	Failures int64   `json:"failures"`
	Verdict  Verdict `json:"verdict"`
	// Operations are the operations that it called, the latest call first.
	Operations []Operation `json:"operations"`
}

// Operation is a key's use of one operation of version 1.
type Operation struct {
	// Operation and Successor are method and path; the latter is empty for an
	// operation that this program does not have.
	Operation string  `json:"operation"`
	Successor string  `json:"successor"`
	Verdict   Verdict `json:"verdict"`
	// Calls, Failures and SuccessorCalls cover the days of the report.
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	// FirstAt and LastAt cover the retention.
	FirstAt        domain.Time `json:"first_at"`
	LastAt         domain.Time `json:"last_at"`
	SuccessorCalls int64       `json:"successor_calls"`
	// SuccessorAt is the successor's last call on the last day with one that did not fail; nil for none.
	SuccessorAt *domain.Time `json:"successor_last_at"`
	// UserAgents are up to MaxAgents of the days of the report, the latest first; without calls in them, of the
	// last day with calls.
	UserAgents []string `json:"user_agents"`
}

// Day is one day's number of calls of version 1 and of the operations that succeed it.
type Day struct {
	Day        domain.Date `json:"day"`
	Calls      int64       `json:"calls"`
	Successors int64       `json:"successor_calls"`
}

// ReportQuery selects what a report covers.
type ReportQuery struct {
	// Successors maps each operation of version 1 to its successor in version 2, both as method and path.
	Successors map[string]string
	Now        time.Time
	// Days is how many days are reported, today included: 1 to Days. Verdicts cover the whole retention.
	Days int
	// Keys are the keys to report; empty means all.
	Keys []domain.KeyID
}

// Read reads a report. Keys that called only version 2 count only in the report's Days.
func Read(ctx context.Context, d pg.Runner, query ReportQuery) (*Report, error) {
	first := domain.DateOf(query.Now).AddDays(1 - query.Days)
	out := &Report{Days: make([]Day, query.Days)}
	for i := range out.Days {
		out.Days[i].Day = first.AddDays(i)
	}
	sums, err := totals(ctx, d, query)
	if err != nil {
		return nil, err
	}
	rows, err := ReadRows(ctx, d, first, query.Keys...)
	if err != nil {
		return nil, err
	}

	keys := out.addKeys(sums, query.Now)
	parity := out.addParity(sums)
	for _, r := range rows {
		if r.Surface == Parity {
			if p := parity[r.Key]; p != nil {
				p.add(r)
			}
			continue
		}
		day := min(first.DaysUntil(r.Day), query.Days-1) // a process whose clock is ahead may have later days
		out.Days[day].add(r)
		if k := keys[r.Key]; k != nil {
			k.add(r, day)
		}
	}
	return out, nil
}

// addKeys adds the keys of the totals of V1 to Keys, each without the rows of the report's days, and returns them by
// ID.
func (out *Report) addKeys(sums []total, now time.Time) map[domain.KeyID]*Key {
	keys := map[domain.KeyID]*Key{}
	for _, t := range sums {
		if t.Surface != V1 {
			continue
		}
		k := keys[t.Key]
		if k == nil {
			k = &Key{ID: t.Key, Partner: t.Partner, Days: slices.Clone(out.Days)}
			k.Who = Who{t.Prefix, t.Name, t.PartnerName, t.Live}
			keys[t.Key] = k
			out.Keys = append(out.Keys, k)
		}
		k.Operations = append(k.Operations, t.asOperation(now))
	}
	for _, k := range out.Keys { // the first of its operations was called last
		k.LastAt, k.Verdict = k.Operations[0].LastAt, overallVerdict(k.Operations)
	}
	return keys
}

// addParity adds the keys of the totals of Parity to out.Parity, each without its calls, and returns them by ID.
func (out *Report) addParity(sums []total) map[domain.KeyID]*ParityKey {
	keys := map[domain.KeyID]*ParityKey{}
	for _, t := range sums { // the latest call first
		if t.Surface == Parity && keys[t.Key] == nil {
			keys[t.Key] = &ParityKey{Who: Who{t.Prefix, t.Name, t.PartnerName, t.Live}, LastAt: domain.At(t.LastAt)}
			out.Parity = append(out.Parity, keys[t.Key])
		}
	}
	return keys
}

// total is a key's calls of one operation of version 1, directly or by parity, and of its successor, in all retained
// days.
type total struct {
	Key                       domain.KeyID
	Surface                   Surface // V1 or Parity
	Prefix, Name, PartnerName string
	Partner                   domain.PartnerID
	Live                      bool
	Operation, Successor      string
	FirstAt, LastAt           time.Time
	// AnsweredAt is the successor's last call of the last day on which not all failed.
	AnsweredAt *time.Time
	// UserAgents are the user agents of the last day.
	UserAgents []string
}

// asOperation returns the operation without its numbers of calls, which Key.add counts.
func (t total) asOperation(now time.Time) Operation {
	return Operation{
		Operation: t.Operation, Successor: t.Successor, FirstAt: domain.At(t.FirstAt), LastAt: domain.At(t.LastAt),
		SuccessorAt: domain.MaybeAt(t.AnsweredAt), UserAgents: t.UserAgents, Verdict: verdictOf(t.LastAt, t.AnsweredAt, now),
	}
}

// totals reads the totals of the selected keys, the latest calls first.
func totals(ctx context.Context, d pg.Runner, query ReportQuery) ([]total, error) {
	var operations, successors []string
	for operation, successor := range query.Successors {
		operations, successors = append(operations, operation), append(successors, successor)
	}
	// Of arrays that begin with a day, the greatest is the last day's.
	return pg.All[total](ctx, d, "sum up the use of v1", pg.SQL(`
		WITH totals AS (
			SELECT key_id, surface, operation, min(first_at) AS first_at, max(last_at) AS last_at,
				max(last_at) FILTER (WHERE calls > failures) AS answered_at,
				nullif((max(to_char(day, 'YYYY-MM-DD') || user_agents))[2:], '{}') AS user_agents
			FROM v1_usage WHERE ?keys GROUP BY key_id, surface, operation
		)
		SELECT t.key_id AS key, t.surface, coalesce(k.prefix, '') AS prefix, coalesce(k.name, '') AS name, coalesce(p.name, '') AS partner_name,
			coalesce(p.id, '00000000-0000-0000-0000-000000000000') AS partner,
			k.id IS NOT NULL AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?now::timestamptz) AS live,
			t.operation, coalesce(s.next, '') AS successor, t.first_at, t.last_at, n.answered_at, t.user_agents
		FROM totals AS t
		LEFT JOIN unnest(?operations::text[], ?successors::text[]) AS s (operation, next) ON s.operation = t.operation
		LEFT JOIN totals AS n ON n.key_id = t.key_id AND n.surface = ?v2 AND n.operation = s.next
		LEFT JOIN api_keys AS k ON k.id = t.key_id LEFT JOIN partners AS p ON p.id = k.partner_id
		WHERE t.surface <> ?v2
		ORDER BY t.last_at DESC, prefix, t.key_id, t.operation COLLATE "C"`,
		pg.Named{
			"keys":       keyCondition(query.Keys),
			"now":        query.Now,
			"operations": operations,
			"successors": successors,
			"v2":         V2,
		}))
}

// add adds a row of the report's days, which are read newest first. day is the index of its day. A call of version 1
// counts for the key, the day and its operation. A call of version 2 counts for the operations whose successor it
// called and, if there are any, for the day.
func (k *Key) add(r Row, day int) {
	if r.Surface == V1 {
		k.Calls, k.Failures = k.Calls+r.Calls, k.Failures+r.Failures
		k.Rows = append(k.Rows, r)
		k.Days[day].add(r)
	}
	isSuccessor := false
	for i := range k.Operations {
		o := &k.Operations[i]
		switch {
		case r.Surface == V1 && o.Operation == r.Operation:
			if o.Calls == 0 {
				o.UserAgents = nil // replaced by those of the report's days
			}
			o.Calls, o.Failures = o.Calls+r.Calls, o.Failures+r.Failures
			o.addAgents(r.UserAgents)
		case r.Surface == V2 && o.Successor == r.Operation:
			o.SuccessorCalls += r.Calls
			isSuccessor = true
		}
	}
	if isSuccessor {
		k.Days[day].add(r)
	}
}

// add adds a row of the report's days.
func (p *ParityKey) add(r Row) {
	p.Calls, p.Failures = p.Calls+r.Calls, p.Failures+r.Failures
	p.Rows = append(p.Rows, r)
}

// add adds the calls of a row of V1 or V2 to the calls of its version.
func (d *Day) add(r Row) {
	if r.Surface == V1 {
		d.Calls += r.Calls
	} else {
		d.Successors += r.Calls
	}
}

// addAgents adds user agents that are not listed yet, up to MaxAgents.
func (o *Operation) addAgents(agents []string) {
	for _, agent := range agents {
		if len(o.UserAgents) < MaxAgents && !slices.Contains(o.UserAgents, agent) {
			o.UserAgents = append(o.UserAgents, agent)
		}
	}
}

// Verdict is a key's progress from an operation of version 1 to its successor, or from version 1 as a whole.
type Verdict string

// The verdicts. A call of version 1 counts whatever its status, a call of the successor only if it did not fail.
const (
	// Moved: the successor was called after the last call of version 1, and that is at least Quiet ago.
	Moved Verdict = "moved"
	// HalfWay: the successor was called, and it is not Moved or Stopped.
	HalfWay Verdict = "half-way"
	// NotBegun: the successor was never called, and it is not Stopped.
	NotBegun Verdict = "not begun"
	// Stopped: the last call of version 1 is at least Silent ago, and the successor was not called since. Nothing shows
	// that the caller moved, but nothing calls version 1 either.
	Stopped Verdict = "stopped"
)

// Verdicts lists the verdicts, from the one that needs most attention.
var Verdicts = []Verdict{NotBegun, HalfWay, Stopped, Moved}

const (
	// Quiet is how long ago the last call of version 1 must be for Moved.
	Quiet = 7 * 24 * time.Hour
	// Silent is how long ago the last call of version 1 must be for Stopped.
	Silent = 30 * 24 * time.Hour
)

// verdictOf returns the verdict on an operation from its last call and its successor's last success; nil for none.
func verdictOf(lastCall time.Time, lastSuccessor *time.Time, now time.Time) Verdict {
	age := now.Sub(lastCall)
	succeeded := lastSuccessor != nil && lastSuccessor.After(lastCall)
	switch {
	case succeeded && age >= Quiet:
		return Moved
	case !succeeded && age >= Silent:
		return Stopped
	case lastSuccessor == nil:
		return NotBegun
	}
	return HalfWay
}

// overallVerdict returns the verdict on a key from its operations: Stopped if all are. Else it ignores the stopped
// ones: Moved or NotBegun if all others are, otherwise HalfWay.
func overallVerdict(operations []Operation) Verdict {
	counts := map[Verdict]int{}
	for _, o := range operations {
		counts[o.Verdict]++
	}
	switch len(operations) - counts[Stopped] {
	case 0:
		return Stopped
	case counts[Moved]:
		return Moved
	case counts[NotBegun]:
		return NotBegun
	}
	return HalfWay
}
