package records

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// A kind is declared by a type, which embeds batch and overrides the steps in which it differs, and by values that the
// usual steps and an export need. Its file has both, in the order in which an import runs the steps.

// kind implements Kind for objects that are rows of a table. An import sets the columns of a row from the fields of its
// record, and an export the fields from the columns (field).
type kind[Record, Row any] struct {
	object string // see Kind.Object

	// partner is the SQL condition that a row belongs to a partner (?). It is empty if all partners share the rows.
	partner string
	// order is the ORDER BY of an export.
	order string
	// columns are computed columns that every query of rows selects.
	columns string

	// audiences is the mode in which the audiences of the records' clients are locked, before all other rows. If empty,
	// they are not locked.
	audiences db.AudienceLock
	// rank is the rank of the rows in the lock order, and locked the ORDER BY in which batch.lock locks them.
	rank   db.LockRank
	locked string
	unique *unique // the name that must be unique; nil for none

	fields []field
	begin  func() steps[Record, Row]
}

// declare returns the kind whose steps are the methods of *Batch.
func declare[Batch any, Record, Row any, Steps interface {
	*Batch
	steps[Record, Row]
}](k kind[Record, Row]) Kind {
	k.fields = fieldsOf(reflect.TypeFor[Record](), reflect.TypeFor[Row]())
	k.begin = func() steps[Record, Row] { return Steps(new(Batch)) }
	return &k
}

// steps are what a kind does with a batch of records, in the order of an import. All but create have a usual form, a
// method of batch.
type steps[Record, Row any] interface {
	core() *batch[Record, Row]

	// lock locks the existing rows (batch.keep), and locks and reads what the kind needs in addition to the objects that
	// the records refer to (batch.found).
	lock(ctx context.Context) error
	// key returns the key of a record. The key of a row is the key of its record.
	key(in *Record) any
	// check returns an error if it refuses a record by its fields. before is nil for a new object.
	check(in *Record, before *Row) error
	// create sets the id, times, client and defaults of a new row, before its record is applied.
	create(in *Record, row *Row)
	// apply sets the columns that follow from a record but have no field. An error refuses the record.
	apply(in *Record, before, row *Row) error
	// nameOf returns the unique name of a row and, if the name is the key of an email address, the address.
	nameOf(row *Row) (n name, email string)
	// changesMore reports whether an accepted record changes something other than its row.
	changesMore(in *Record) bool
	// store stores the rows.
	store(ctx context.Context) error
	// follow adds or writes the effects of the records. committed does so after the commit, in its own transactions.
	follow(ctx context.Context) error
	committed(ctx context.Context) error

	// extend extends the query of an export. complete sets or clears fields of an exported record that have no column,
	// or that a column alone sets wrong.
	extend(q *bun.SelectQuery)
	complete(row *Row, out *Record) error
}

// batch is a batch of records of one kind that is applied in a change, with the usual steps.
type batch[Record, Row any] struct {
	*db.Change
	kind  *kind[Record, Row]
	steps steps[Record, Row] // of the type that embeds the batch
	list  []*change[Record, Row]
	// found are the objects that the records refer to.
	found objects
	// byKey holds rows by their keys: the existing ones, which are locked, and then those that earlier records leave.
	byKey map[any]*Row
	// inserts are the records whose rows are to be inserted, and updates those whose rows are to be updated.
	inserts, updates []*change[Record, Row]
}

// change is a record that is applied.
type change[Record, Row any] struct {
	in            *Record
	before, after *Row // before is nil for a new object
	result        *domain.ImportResult
}

func (a *change[Record, Row]) refused() bool { return a.result.Refusal != "" }

// clashError refuses a record that may be accepted after another one (domain.ImportResult.Clashes).
type clashError string

func (e clashError) Error() string { return string(e) }

func (k *kind[Record, Row]) Object() string { return k.object }

func (k *kind[Record, Row]) Type() reflect.Type { return reflect.TypeFor[Record]() }

// Export yields the records of a partner's rows, or of all rows if partner is zero or partners share them. An error is
// yielded last.
func (k *kind[Record, Row]) Export(ctx context.Context, d *db.DB, partner domain.PartnerID) iter.Seq2[any, error] {
	s, q := k.begin(), k.rows().OrderExpr(k.order)
	s.extend(q)
	if k.partner != "" && !partner.IsZero() {
		q.Apply(pg.Where(k.partner, partner))
	}
	return func(yield func(any, error) bool) {
		for row, err := range pg.Each[Row](ctx, d, "export "+pg.Table[Row](), q) {
			var record *Record
			if err == nil {
				record = recordOf[Record](k.fields, &row)
				err = s.complete(&row, record)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// ofPartner returns the condition that a row with an alias belongs to a client of the partner (?).
func ofPartner(alias string) string {
	return alias + ".client_id IN (SELECT id FROM clients WHERE partner_id = ?)"
}

// rows selects the columns of the table and the computed columns.
func (k *kind[Record, Row]) rows() *bun.SelectQuery {
	q := pg.Rows[Row]()
	if k.columns != "" {
		q.ColumnExpr(k.columns)
	}
	return q
}

// Import applies a batch in one change, which is retried after a conflict, and then runs the step committed. After an
// error of that step the results are valid nevertheless.
func (k *kind[Record, Row]) Import(ctx context.Context, d *db.DB, list []any) ([]domain.ImportResult, error) {
	var s steps[Record, Row]
	results, err := importBatch(ctx, d, list, func(ctx context.Context, c *db.Change, results []domain.ImportResult) error {
		s = k.begin()
		b := s.core()
		b.Change, b.kind, b.steps, b.found, b.byKey = c, k, s, objects{}, map[any]*Row{}
		for i, record := range list {
			b.list = append(b.list, &change[Record, Row]{in: record.(*Record), result: &results[i]})
		}
		return b.run(ctx)
	})
	if err == nil && s != nil { // s is nil for an empty batch
		err = s.committed(ctx)
	}
	return results, err
}

// run reads and locks rows, computes the rows after the records, refuses records, stores rows, and runs the step
// follow.
func (b *batch[Record, Row]) run(ctx context.Context) error {
	for _, a := range b.list {
		for _, f := range b.kind.fields {
			b.found.wantAll(f.value(reflect.ValueOf(a.in).Elem()))
		}
	}
	if b.kind.audiences != "" {
		err := b.LockAudiencesWhere(ctx, b.kind.audiences, pg.SQL(`(
			SELECT unnest(?::uuid[]) AS id UNION SELECT client_id FROM `+pg.Table[Row]()+` WHERE id = ANY(?::uuid[])) AS l`,
			b.found.ids(domain.ClientID{}.Prefix()), idsOf(b.list)))
		if err != nil {
			return err
		}
	}
	if err := lookUp(ctx, b.Change, b.found); err != nil {
		return err
	}
	if err := b.steps.lock(ctx); err != nil {
		return err
	}
	for _, a := range b.list {
		if err := b.resolve(a); err != nil {
			*a.result = domain.RefuseImport("%s", err)
			_, a.result.Clashes = errors.AsType[clashError](err)
		}
	}
	if err := b.settleNames(ctx); err != nil {
		return err
	}
	b.collectWrites()
	if err := b.steps.store(ctx); err != nil {
		return err
	}
	return b.steps.follow(ctx)
}

// resolve computes a.after, the row that a record leaves. An error refuses the record.
func (b *batch[Record, Row]) resolve(a *change[Record, Row]) error {
	key := b.steps.key(a.in)
	a.before = b.byKey[key]
	if err := b.steps.check(a.in, a.before); err != nil {
		return err
	}
	if a.after = new(Row); a.before != nil {
		*a.after = *a.before
	} else {
		b.steps.create(a.in, a.after)
	}
	applyFields(b.kind.fields, a.in, a.after)
	if err := b.steps.apply(a.in, a.before, a.after); err != nil {
		return err
	}
	b.byKey[key] = a.after // for later records of the same object
	return nil
}

// collectWrites sets the outcome of each record that is not refused, and collects in inserts and updates the rows to
// insert and to update. If several records have the same object, only the row after the last of them is stored.
func (b *batch[Record, Row]) collectWrites() {
	writers := map[any]*change[Record, Row]{} // by the key of a row, the record that stores it
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		key, differs := b.steps.key(a.in), changed(a.before, a.after)
		switch {
		case a.before == nil:
			a.result.Outcome = domain.ImportCreated
		case differs || b.steps.changesMore(a.in):
			a.result.Outcome = domain.ImportUpdated
		default:
			a.result.Outcome = domain.ImportUnchanged
		}
		switch {
		case writers[key] != nil:
			writers[key].after = a.after
		case a.before == nil:
			writers[key], b.inserts = a, append(b.inserts, a)
		case differs:
			writers[key], b.updates = a, append(b.updates, a)
		}
	}
}

// The usual steps.

func (b *batch[Record, Row]) core() *batch[Record, Row] { return b }

// lock locks the existing rows by their ids.
func (b *batch[Record, Row]) lock(ctx context.Context) error {
	if b.kind.rank > 0 {
		b.WillLock(b.kind.rank)
	}
	rows, err := pg.All[Row](ctx, b, "lock "+pg.Table[Row](), b.kind.rows().
		Apply(pg.Where("id = ANY(?::uuid[])", idsOf(b.list))).OrderExpr(b.kind.locked).For("NO KEY UPDATE"))
	b.keep(rows)
	return err
}

// keep adds existing rows to byKey.
func (b *batch[Record, Row]) keep(rows []Row) {
	for i := range rows {
		b.byKey[b.steps.key(recordOf[Record](b.kind.fields, &rows[i]))] = &rows[i]
	}
}

// key returns the id of a record.
func (b *batch[Record, Row]) key(in *Record) any { return idOf(in) }

// check returns an error if a record lacks a field that a new object requires, changes a fixed field of an existing
// object, or refers to an object that does not exist.
func (b *batch[Record, Row]) check(in *Record, before *Row) error {
	if err := checkFields(b.kind.fields, in, before); err != nil {
		return err
	}
	for _, f := range b.kind.fields {
		value := f.value(reflect.ValueOf(in).Elem())
		if !value.IsValid() {
			continue
		}
		if ref, ok := value.Interface().(reference); ok && b.found.find(ref) == nil {
			return noSuch(f.name, ref)
		}
	}
	return nil
}

func (b *batch[Record, Row]) apply(*Record, *Row, *Row) error { return nil }

func (b *batch[Record, Row]) nameOf(*Row) (name, string) { return name{}, "" }

func (b *batch[Record, Row]) changesMore(*Record) bool { return false }

func (b *batch[Record, Row]) store(ctx context.Context) error {
	table := pg.Table[Row]()
	if err := pg.UpdateRows(ctx, b, "update imported "+table, rowsAfter(b.updates)); err != nil {
		return err
	}
	return pg.CopyRows(ctx, b, "insert imported "+table, rowsAfter(b.inserts))
}

func (b *batch[Record, Row]) follow(context.Context) error { return nil }

func (b *batch[Record, Row]) committed(context.Context) error { return nil }

func (b *batch[Record, Row]) extend(*bun.SelectQuery) {}

func (b *batch[Record, Row]) complete(*Row, *Record) error { return nil }

// Helpers of the steps.

// rowsAfter returns the rows that records leave.
func rowsAfter[Record, Row any](list []*change[Record, Row]) []Row {
	return pg.MapRows(list, func(a **change[Record, Row]) Row { return *(*a).after })
}

// idsOf returns the ids of the records.
func idsOf[Record, Row any](list []*change[Record, Row]) [][16]byte {
	return pg.MapRows(list, func(a **change[Record, Row]) [16]byte { return idOf((*a).in).Bytes() })
}

// changed reports whether the row existed and changes.
func changed[Row any](before, after *Row) bool {
	return before != nil && !reflect.DeepEqual(before, after)
}

// touch advances updated_at, the column at of a row, if the row existed and changes.
func (b *batch[Record, Row]) touch(before, row *Row, at *time.Time) {
	if changed(before, row) {
		*at = domain.Later(*at, b.At)
	}
}

// setArchived sets an object's time of archiving from the field archived of its record: to nil for false, and for true
// to the time of the change, unless the object is already archived. Without a value, it does not change the time.
func (b *batch[Record, Row]) setArchived(archived domain.Optional[bool], at **time.Time) {
	switch {
	case !archived.Given: // unchanged
	case !archived.Value:
		*at = nil
	case *at == nil:
		*at = &b.At
	}
}

// archivedField returns the field archived of an exported record: true, or no value if at is nil.
func archivedField(at *time.Time) domain.Optional[bool] {
	return domain.Optional[bool]{Given: at != nil, Value: at != nil}
}

// setEmailKey sets the columns that follow from an email address, if the address changes.
func setEmailKey(before, email string, key, state **string) {
	if email != before {
		*key = db.StoredEmailKey(email)
	}
	if domain.EmailKey(email) != domain.EmailKey(before) {
		*state = nil // the row claims its new key
	}
}

// setNameKey sets the key of a name, if the name changes. An unchanged name keeps its key, because a migration may have
// changed the key to make it unique.
func setNameKey(before, name string, key *string) {
	if name != before {
		*key = domain.SortKey(name)
	}
}
