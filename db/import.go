package db

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file and the others called import_… apply what a platform says of its objects
// (decisions 10). A batch is of records of one kind, each of another object, and is
// applied in a transaction: what a record names of an object that is there is set, an
// object that is not there is made, and a record that says nothing new writes
// nothing. What is imported as new writes no events and sends no mail; what changes
// does as it would through the API.

const (
	// importLock is the advisory lock of the process that imports.
	importLock = "import"
	// importTries is how often a batch is tried that clashes with other writers.
	importTries = 5
)

// Importing runs fn unless another process is importing, and reports whether it ran.
// It needs four connections of the pool, and no transaction around it.
func (d *DB) Importing(ctx context.Context, fn func(context.Context) error) (bool, error) {
	return d.TryAdvisoryLock(ctx, importLock, fn)
}

// TryImport runs fn in one transaction, and rolls back what it did whether it succeeds
// or not. The methods that import work in it at savepoints, one at a time.
func (d *DB) TryImport(ctx context.Context, fn func(context.Context) error) error {
	return d.DryRun(ctx, func(ctx context.Context) error { return fn(context.WithValue(ctx, tryingKey{}, true)) })
}

type tryingKey struct{}

// trying reports whether what ctx's transaction does is rolled back in the end.
func trying(ctx context.Context) bool { return ctx.Value(tryingKey{}) != nil }

// staleBatch is of how many clients a transaction marks the summaries.
const staleBatch = 500

// StaleSummaries marks the summaries as stale of the clients with users who changed
// since a moment: the next reads make them again. It must not be called in a
// transaction.
func (d *DB) StaleSummaries(ctx context.Context, since time.Time) error {
	for last := (domain.ClientID{}); ; {
		var batch []domain.ClientID
		err := d.Change(ctx, func(ctx context.Context, c *Change) (err error) {
			c.Lock(ClientLocks)
			batch, err = pg.All[domain.ClientID](ctx, c, "lock clients with stale summaries", pg.SQL(`
				SELECT c.id FROM clients AS c WHERE c.id > ?0 AND EXISTS (
					SELECT 1 FROM users AS u WHERE u.client_id = c.id AND u.updated_at >= ?1)
				ORDER BY c.id LIMIT ?2 FOR NO KEY UPDATE`, last, since, staleBatch))
			if err != nil {
				return err
			}
			_, err = pg.Exec(ctx, c, "mark summaries as stale", pg.SQL(
				"UPDATE clients SET summarized_at = least(summarized_at, ?1) WHERE id = ANY(?0::uuid[])",
				pg.IDs(batch), c.At.Add(-2*domain.SummaryAge)))
			return err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1]
	}
}

// importBatch applies a batch of records in a change, again where it clashes with
// what others write meanwhile. The results are in the order of the batch, refused
// where apply says nothing.
func importBatch[T any](
	ctx context.Context, d *DB, batch []T,
	apply func(c *Change, ctx context.Context, batch []T, results []domain.ImportResult) error,
) ([]domain.ImportResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		results := make([]domain.ImportResult, len(batch))
		err := d.Savepoint(ctx, func(ctx context.Context) error {
			return d.Change(ctx, func(ctx context.Context, c *Change) error { return apply(c, ctx, batch, results) })
		})
		if err == nil {
			return results, nil
		}
		if try == importTries || !pg.Retryable(err) && !pg.UniqueViolation(err) && !domain.IsCode(err, domain.Conflict) {
			return nil, err
		}
	}
}

// mapped are rows by their keys.
func mapped[Row any, K comparable](rows []Row, key func(*Row) K) map[K]Row {
	by := make(map[K]Row, len(rows))
	for i := range rows {
		by[key(&rows[i])] = rows[i]
	}
	return by
}

// referredClient is a client that records refer to.
type referredClient struct {
	ID        domain.ClientID
	PartnerID domain.PartnerID
	Archived  bool
	// There tells it from a client that is not there.
	There bool
}

// clientsCalled reads those of the clients that are there.
func (c *Change) clientsCalled(
	ctx context.Context, ids []domain.ClientID,
) (map[domain.ClientID]referredClient, error) {
	rows, err := pg.All[referredClient](ctx, c, "look for clients", pg.SQL(`
		SELECT id, partner_id, archived_at IS NOT NULL AS archived, true AS there FROM clients
		WHERE id = ANY(?::uuid[])`, pg.IDs(sortedUnique(ids))))
	return mapped(rows, func(r *referredClient) domain.ClientID { return r.ID }), err
}

// clientRef is a reference to a client, and userRef one to a user.
type clientRef = domain.Optional[domain.Ref[domain.ClientKind]]

type userRef = domain.Optional[domain.Ref[domain.UserKind]]

// refsOf are the ids in a field of records, zero where a record has none.
func refsOf[Record any, K domain.Kind](batch []Record, in func(*Record) domain.Optional[domain.Ref[K]]) []domain.ID[K] {
	ids := make([]domain.ID[K], len(batch))
	for i := range batch {
		ids[i] = in(&batch[i]).Value.ID
	}
	return ids
}

// missing is the refusal of a new object that lacks a field.
func missing(field string) domain.ImportResult { return domain.RefuseImport("%s is missing", field) }

// noSuch is the refusal of a record whose field refers to what is not there.
func noSuch(field, noun string) domain.ImportResult {
	return domain.RefuseImport("%s: %s", field, domain.NoSuchObject(noun))
}

// takenBy is the refusal of a record that names what another object has, by which it
// says that.
func takenBy[K domain.Kind](field string, other domain.ID[K]) domain.ImportResult {
	r := domain.RefuseImport("%s: the %s %s has it already", field, other.Noun(), domain.RefTo(other))
	r.Clashes = true
	return r
}

// cannotChange is the refusal of a record that says another thing than before of
// what stays as it is.
func cannotChange(field string) domain.ImportResult {
	return domain.RefuseImport("%s cannot be changed", field)
}

func refused(err error) domain.ImportResult { return domain.RefuseImport("%s", err) }

// latest is the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sortedUnique sorts ids and drops those that are there twice.
func sortedUnique[K domain.Kind](ids []domain.ID[K]) []domain.ID[K] {
	slices.SortFunc(ids, func(a, b domain.ID[K]) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// claim is a name or an address that an object is to have; of a scope, such as its
// client, only one has it. An empty key gives up what the object has.
type claim struct {
	id         [16]byte
	scope, key string
}

func (k claim) name() string { return k.scope + "/" + k.key }

// holderRow is an object that has a name of a scope.
type holderRow struct {
	ID    domain.PartnerID // of whichever kind
	Scope string
	Key   string
}

// settledClaims is what became of claims.
type settledClaims struct {
	// lost are the objects that cannot have what they claim, with who has it.
	lost map[[16]byte][16]byte
	// giving are the objects whose names others of the batch get. For no two may have
	// one even within a statement, they give them up first.
	giving [][16]byte
}

// settleClaims says which claims of a batch can be met. Each claims another name than
// it has. The query finds who has names: the columns id, scope and key of objects with
// the scopes ?0 and the keys ?1, of which it may return more.
func (c *Change) settleClaims(ctx context.Context, claims []claim, query string) (settledClaims, error) {
	if len(claims) == 0 {
		return settledClaims{}, nil
	}
	scopes, keys := make([]string, len(claims)), make([]string, len(claims))
	for i, k := range claims {
		scopes[i], keys[i] = k.scope, k.key
	}
	rows, err := pg.All[holderRow](ctx, c, "look for names", pg.SQL(query, scopes, keys))
	held := make(map[string][16]byte, len(rows))
	for _, r := range rows {
		held[claim{scope: r.Scope, key: r.Key}.name()] = r.ID
	}
	return settle(claims, held), err
}

// settle is settleClaims, where held are those who have names. A name that its holder
// gives up in the batch is free; of those who want one name the first gets it.
func settle(claims []claim, held map[string][16]byte) settledClaims {
	out := settledClaims{lost: map[[16]byte][16]byte{}}
	moves := make(map[[16]byte]bool, len(claims))
	for _, k := range claims {
		moves[k.id] = true
	}
	for settled := false; !settled; {
		settled = true
		out.giving = nil
		taken := map[string][16]byte{}
		for _, k := range claims {
			if _, lost := out.lost[k.id]; lost || k.key == "" {
				continue
			}
			by, busy := held[k.name()]
			first, twice := taken[k.name()]
			switch {
			case twice:
				out.lost[k.id], moves[k.id], settled = first, false, false
				continue
			case busy && !moves[by]:
				out.lost[k.id], moves[k.id], settled = by, false, false
				continue
			case busy:
				out.giving = append(out.giving, by)
			}
			taken[k.name()] = k.id
		}
	}
	return out
}

// giveUp takes their keys, as of names, from objects that give them up.
func (c *Change) giveUp(ctx context.Context, s settledClaims, table, column string) error {
	if len(s.giving) == 0 {
		return nil
	}
	_, err := pg.Exec(ctx, c, "take names away", pg.SQL(
		"UPDATE "+table+" SET "+column+" = '~' || id WHERE id = ANY(?::uuid[])", s.giving))
	return err
}

// StagedLine is a line of an import that waits until it is its turn.
type StagedLine struct {
	bun.BaseModel `bun:"table:import_lines,alias:l"`

	Kind  int // the place of its kind among those that are applied
	Round int // in which of its rounds it is tried
	Line  int // its number in the input

	// Object is of which object it is, where the lines of a kind are applied by the
	// places of their objects: with those of one client and, within them, of one user.
	// Nil where they are applied in their order.
	Object   *[16]byte
	ClientID *domain.ClientID
	UserID   *domain.UserID

	Outcome int // what became of it so far, a domain.ImportOutcome
	Text    string
}

// StageLines stages lines.
func (d *DB) StageLines(ctx context.Context, lines []StagedLine) error {
	return pg.CopyRows(ctx, d, "stage lines", lines)
}

// ClearStage drops all lines that are staged.
func (d *DB) ClearStage(ctx context.Context) error {
	_, err := pg.Exec(ctx, d, "drop staged lines", pg.SQL("DELETE FROM import_lines"))
	return err
}

// StageRepeated has the lines of objects that earlier lines are of, too, wait for the
// second round of their kind, in their order: each object has one in the first then.
func (d *DB) StageRepeated(ctx context.Context) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		// Without statistics the table seems to be empty, and worth to be read for each line.
		_, err := pg.Exec(ctx, d, "join whole tables", pg.SQL("SELECT set_config('enable_nestloop', 'off', true)"))
		if err != nil {
			return err
		}
		_, err = pg.Exec(ctx, d, "stage repeated lines", pg.SQL(`
			UPDATE import_lines AS l SET round = 1, client_id = NULL, user_id = NULL
			FROM (
				SELECT kind, object, min(line) AS line FROM import_lines WHERE object IS NOT NULL
				GROUP BY kind, object HAVING count(*) > 1
			) AS first
			WHERE l.kind = first.kind AND l.object = first.object AND l.line > first.line`))
		return err
	})
}

const (
	// stageLines and stageBytes bound what EachStaged holds of the texts of lines.
	stageLines = 1000
	stageBytes = 4 << 20
)

// EachStaged calls fn with the lines of a round, by their places and those of one place
// in their order, until it returns an error. A user's client is that of now. The lines
// are read in a transaction of its own, as they are when it begins.
func (d *DB) EachStaged(ctx context.Context, kind, round int, fn func(StagedLine) error) error {
	q := pg.SQL(`
		SELECT l.kind, l.round, l.line, l.user_id, l.outcome, octet_length(l.text) AS size
		FROM import_lines AS l LEFT JOIN users AS u ON u.id = l.user_id WHERE l.kind = ? AND l.round = ?
		ORDER BY coalesce(u.client_id, l.client_id) NULLS FIRST, l.user_id NULLS FIRST, l.line`, kind, round)

	return d.Snapshot(ctx, func(ctx context.Context) error {
		var part []StagedLine
		size := 0
		for l, err := range pg.Each[sizedLine](ctx, d, "read staged lines", q) {
			if err != nil {
				return err
			}
			if part, size = append(part, l.StagedLine), size+l.Size; len(part) < stageLines && size < stageBytes {
				continue
			}
			if err := d.withTexts(ctx, part, fn); err != nil {
				return err
			}
			part, size = part[:0], 0
		}
		return d.withTexts(ctx, part, fn)
	})
}

type sizedLine struct {
	StagedLine
	Size int `bun:",scanonly"`
}

// withTexts calls fn with lines of one round, whose texts it reads.
func (d *DB) withTexts(ctx context.Context, lines []StagedLine, fn func(StagedLine) error) error {
	if len(lines) == 0 {
		return nil
	}
	numbers := make([]int, len(lines))
	for i := range lines {
		numbers[i] = lines[i].Line
	}
	if err := lookUpByKey(ctx, d); err != nil { // the cursor has its plan by now
		return err
	}
	rows, err := pg.All[StagedLine](ctx, d, "read the texts of lines", pg.SQL(`
		SELECT n.line, l.text FROM unnest(?::bigint[]) AS n (line) CROSS JOIN LATERAL (
			SELECT text FROM import_lines WHERE kind = ? AND round = ? AND line = n.line LIMIT 1
		) AS l`, numbers, lines[0].Kind, lines[0].Round))
	texts := make(map[int]string, len(rows))
	for i := range rows {
		texts[rows[i].Line] = rows[i].Text
	}
	for i := 0; i < len(lines) && err == nil; i++ {
		lines[i].Text = texts[lines[i].Line]
		err = fn(lines[i])
	}
	return err
}
