package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Report says who called version 1, and how far each is on its way to version 2.
type Report struct {
	// Keys are those that called version 1 in the days that are kept, the latest call
	// first.
	Keys []Key
	// Days are all days of the report, the oldest first, with the calls of all keys,
	// also of those that never called version 1.
	Days []Day
}

// Key is a key that called version 1.
type Key struct {
	ID      domain.KeyID
	Partner domain.PartnerID
	Who
	Use
	// Rows are its calls of version 1 in the days of the report, as GET /v1/usage
	// shows them.
	Rows []Row
	// Days are all days of the report, the oldest first. As its successors' calls
	// count those of the operations that follow what it called.
	Days []Day
}

// Who is what a key is listed by, what it is for and whose it is: empty where it is no
// longer in the database. Live is false for one that was revoked, has expired or is gone.
type Who struct {
	Prefix      string `json:"key"`
	Name        string `json:"name"`
	PartnerName string `json:"partner"`
	Live        bool   `json:"live"`
}

// Use is how a key used version 1.
type Use struct {
	// LastAt is its last call of version 1.
	LastAt domain.Time `json:"last_at"`
	// Calls and Failures are those of version 1 in the days of the report.
	Calls    int64   `json:"calls"`
	Failures int64   `json:"failures"`
	Verdict  Verdict `json:"verdict"`
	// Operations are those that it called, the latest call first.
	Operations []Operation `json:"operations"`
}

// Operation is an operation of version 1 as one key called it.
type Operation struct {
	// Operation and Successor are method and path; the latter is empty for an
	// operation that this program does not have.
	Operation string  `json:"operation"`
	Successor string  `json:"successor"`
	Verdict   Verdict `json:"verdict"`
	// Calls and Failures are those of the days of the report, and so are
	// SuccessorCalls.
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	// FirstAt and LastAt are of all that is kept.
	FirstAt        domain.Time `json:"first_at"`
	LastAt         domain.Time `json:"last_at"`
	SuccessorCalls int64       `json:"successor_calls"`
	// SuccessorAt is the successor's last call on a day on which not all failed; nil for
	// none.
	SuccessorAt *domain.Time `json:"successor_last_at"`
	// UserAgents are up to MaxAgents of the days of the report, the latest first, or of
	// the last day that it was called on.
	UserAgents []string `json:"user_agents"`
}

// Day is how often version 1 and what follows it were called on one day.
type Day struct {
	Day        domain.Date `json:"day"`
	Calls      int64       `json:"calls"`
	Successors int64       `json:"successor_calls"`
}

// Asked says what a report is of.
type Asked struct {
	// Successors gives the operation of version 2 that follows each of version 1, both
	// as method and path.
	Successors map[string]string
	Now        time.Time
	// Days is how many days are reported, today included: 1 to Days. Verdicts go by
	// all that is kept.
	Days int
	// Keys are the keys to report; empty means all.
	Keys []domain.KeyID
}

// Read reads a report.
func Read(ctx context.Context, d pg.Runner, of Asked) (*Report, error) {
	totals, err := Totals(ctx, d, of.Keys...)
	if err != nil {
		return nil, err
	}
	first := domain.DateOf(of.Now).AddDays(1 - of.Days)
	rows, err := From(ctx, d, first, of.Keys...)
	if err != nil {
		return nil, err
	}
	days := make([]Day, of.Days)
	for i := range days {
		days[i].Day = first.AddDays(i)
	}
	keys := keysOf(totals, of, days)
	out := &Report{Days: days}
	for _, r := range rows {
		day := min(first.DaysUntil(r.Day), len(days)-1) // another process's clock may be ahead
		out.Days[day].add(r)
		if k := keys[r.Key]; k != nil {
			k.add(r, day)
		}
	}
	if err := name(ctx, d, keys, of.Now); err != nil {
		return nil, err
	}
	for _, k := range keys {
		out.Keys = append(out.Keys, *k)
	}
	slices.SortFunc(out.Keys, func(a, b Key) int {
		return cmp.Or(b.LastAt.Time.Compare(a.LastAt.Time), cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.ID.UUID(), b.ID.UUID()))
	})
	return out, nil
}

// keysOf are the keys that called version 1, with their operations, and no calls yet on
// the days.
func keysOf(totals []Total, of Asked, days []Day) map[domain.KeyID]*Key {
	type called struct {
		key       domain.KeyID
		operation string
	}
	answered := map[called]time.Time{}
	for _, t := range totals {
		if t.Surface == V2 {
			answered[called{t.Key, t.Operation}] = t.AnsweredAt
		}
	}
	keys := map[domain.KeyID]*Key{}
	for _, t := range totals {
		if t.Surface != V1 {
			continue
		}
		k := keys[t.Key]
		if k == nil {
			k = &Key{ID: t.Key, Days: slices.Clone(days)}
			keys[t.Key] = k
		}
		next := of.Successors[t.Operation]
		at := answered[called{t.Key, next}]
		o := Operation{
			Operation: t.Operation, Successor: next, FirstAt: domain.At(t.FirstAt), LastAt: domain.At(t.LastAt),
			UserAgents: t.UserAgents, Verdict: verdictOf(t.LastAt, at, of.Now),
		}
		if !at.IsZero() {
			o.SuccessorAt = domain.MaybeAt(&at)
		}
		k.Operations = append(k.Operations, o)
	}
	for _, k := range keys {
		slices.SortFunc(k.Operations, func(a, b Operation) int {
			return cmp.Or(b.LastAt.Time.Compare(a.LastAt.Time), cmp.Compare(a.Operation, b.Operation))
		})
		k.LastAt, k.Verdict = k.Operations[0].LastAt, together(k.Operations)
	}
	return keys
}

// add adds a row of the report's days, which are read the newest first.
func (k *Key) add(r Row, day int) {
	if r.Surface == V1 {
		k.Calls, k.Failures = k.Calls+r.Calls, k.Failures+r.Failures
		k.Rows = append(k.Rows, r)
		k.Days[day].add(r)
	}
	follows := false
	for i := range k.Operations {
		o := &k.Operations[i]
		switch {
		case r.Surface == V1 && o.Operation == r.Operation:
			if o.Calls == 0 {
				o.UserAgents = nil // those of the report's days, if there are such
			}
			o.Calls, o.Failures = o.Calls+r.Calls, o.Failures+r.Failures
			o.addAgents(r.UserAgents)
		case r.Surface == V2 && o.Successor == r.Operation:
			o.SuccessorCalls += r.Calls
			follows = true
		}
	}
	if follows {
		k.Days[day].add(r)
	}
}

func (d *Day) add(r Row) {
	if r.Surface == V1 {
		d.Calls += r.Calls
	} else {
		d.Successors += r.Calls
	}
}

func (o *Operation) addAgents(agents []string) {
	for _, agent := range agents {
		if len(o.UserAgents) < MaxAgents && !slices.Contains(o.UserAgents, agent) {
			o.UserAgents = append(o.UserAgents, agent)
		}
	}
}

// name reads what the keys are called, and whose they are.
func name(ctx context.Context, d pg.Runner, keys map[domain.KeyID]*Key, now time.Time) error {
	named, err := pg.All[struct {
		ID                        domain.KeyID
		Prefix, Name, PartnerName string
		Partner                   domain.PartnerID
		Live                      bool
	}](ctx, d, "read the keys that called v1", pg.SQL(`
		SELECT k.id, k.prefix, k.name, p.id AS partner, p.name AS partner_name,
			k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?::timestamptz) AS live
		FROM api_keys AS k JOIN partners AS p ON p.id = k.partner_id WHERE k.id = ANY (?::uuid[])`,
		now, pg.IDs(slices.Collect(maps.Keys(keys)))))
	for _, k := range named {
		into := keys[k.ID]
		into.Prefix, into.Name, into.Partner, into.PartnerName, into.Live = k.Prefix, k.Name, k.Partner, k.PartnerName, k.Live
	}
	return err
}
