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

// kind implements Kind for objects that are rows of a table. An import sets the columns of a row from the fields of its
// record, and an export the fields from the columns (mapping). The other fields of kind extend that; all may be zero.
type kind[Record, Row any] struct {
	object string // see Kind.Object

	// partner is the SQL condition that a row belongs to a partner (?). It is empty if all partners share the rows.
	partner string
	// order is the ORDER BY of an export.
	order string
	// columns are computed columns that every query of rows selects. extendExport extends the query of an export.
	columns      string
	extendExport func(*bun.SelectQuery)
	// adjustRecord sets or clears fields of an exported record that the mapping does not set, or sets wrong.
	adjustRecord func(*Row, *Record) error

	// audiences is the mode in which the audiences of the records' clients are locked, before all other rows. Empty
	// means that they are not locked.
	audiences db.AudienceLock
	// rank is the rank of the rows in the lock order. locked is the ORDER BY in which they are locked; empty means that
	// begin locks them.
	rank   db.LockRank
	locked string
	// key returns the key of a record. The key of a row is the key of its record. Nil means the id.
	key func(*Record) any
	// begin locks and reads what the kind needs in addition to the objects that records refer to; also the rows, if
	// locked is empty. It may set finish, prepare and afterStore of the batch's kind.
	begin func(context.Context, *recordBatch[Record, Row]) error
	// missingField returns the name of a required field that the record of a new object lacks, or "". It need not check
	// the fields with the rule new.
	missingField func(*Record) string
	// setDefaults sets the defaults of a new row, before its record is applied.
	setDefaults func(*Row)
	// finish sets columns that follow from a record but have no field. An error refuses the record.
	finish func(*recordBatch[Record, Row], *recordChange[Record, Row]) error
	// names describes the name that must be unique.
	names *names[Row]
	// visible reports whether callers can see a change, which then advances updated_at. Nil means that they always can.
	visible func(before, after *Row) bool
	// prepare runs before the rows are stored.
	prepare func(context.Context, *recordBatch[Record, Row]) error
	// afterStore runs after the rows are stored, and adds or writes the effects of the records.
	afterStore func(context.Context, *recordBatch[Record, Row]) error
	// afterCommit runs after the commit, and uses transactions of its own.
	afterCommit func(context.Context, *recordBatch[Record, Row]) error
}

func (k *kind[Record, Row]) Object() string { return k.object }

func (k *kind[Record, Row]) Type() reflect.Type { return reflect.TypeFor[Record]() }

// Export yields the records of a partner's rows, or of all rows if partner is zero or partners share them. An error is
// yielded last.
func (k *kind[Record, Row]) Export(ctx context.Context, d *db.DB, partner domain.PartnerID) iter.Seq2[any, error] {
	q := k.rows().OrderExpr(k.order)
	if k.extendExport != nil {
		k.extendExport(q)
	}
	if k.partner != "" && !partner.IsZero() {
		q.Apply(pg.Where(k.partner, partner))
	}
	return func(yield func(any, error) bool) {
		for row, err := range pg.Each[Row](ctx, d, "export "+pg.Table[Row](), q) {
			var record *Record
			if err == nil {
				record = recordOf[Record](&row)
			}
			if err == nil && k.adjustRecord != nil {
				err = k.adjustRecord(&row, record)
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

// recordBatch is a batch of records of one kind that is applied in a change.
type recordBatch[Record, Row any] struct {
	*db.Change
	kind *kind[Record, Row]
	list []*recordChange[Record, Row]
	// found are the objects that the records refer to.
	found objects
	// byKey holds rows by their keys: the existing ones, which are locked, and then those that earlier records leave.
	byKey map[any]*Row
	// inserts are the records whose rows are to be inserted, and updates those whose rows are to be updated.
	inserts, updates []*recordChange[Record, Row]
}

// recordChange is a record that is applied.
type recordChange[Record, Row any] struct {
	record        *Record
	before, after *Row // before is nil for a new object
	changed       bool // the row exists and changes
	sideEffect    bool // something other than the row changes: the program, or the members of a collection
	result        *domain.ImportResult
}

func (a *recordChange[Record, Row]) refuse(err error) { *a.result = domain.RefuseImport("%s", err) }

// clashError refuses a record that may be accepted after another one (domain.ImportResult.Clashes).
type clashError string

func (e clashError) Error() string { return string(e) }

func (a *recordChange[Record, Row]) refused() bool { return a.result.Refusal != "" }

// Import applies a batch in one change, which is retried after a conflict, and then runs afterCommit. After an error of
// afterCommit the results hold nevertheless.
func (k *kind[Record, Row]) Import(ctx context.Context, d *db.DB, batch []any) ([]domain.ImportResult, error) {
	var b *recordBatch[Record, Row]
	results, err := importBatch(ctx, d, batch, func(ctx context.Context, c *db.Change, results []domain.ImportResult) error {
		batchKind := *k // begin may set its functions
		b = &recordBatch[Record, Row]{Change: c, kind: &batchKind, found: objects{}, byKey: map[any]*Row{}}
		for i, record := range batch {
			b.list = append(b.list, &recordChange[Record, Row]{record: record.(*Record), result: &results[i]})
		}
		return b.apply(ctx)
	})
	if err == nil && b != nil && k.afterCommit != nil { // b is nil for an empty batch
		err = k.afterCommit(ctx, b)
	}
	return results, err
}

// apply reads and locks rows, computes the rows after the records, refuses records, stores rows, and runs afterStore.
func (b *recordBatch[Record, Row]) apply(ctx context.Context) error {
	if err := b.read(ctx); err != nil {
		return err
	}
	for _, a := range b.list {
		if err := b.resolve(a); err != nil {
			a.refuse(err)
			_, a.result.Clashes = errors.AsType[clashError](err)
		}
	}
	if err := b.settleNames(ctx); err != nil {
		return err
	}
	if b.kind.prepare != nil {
		if err := b.kind.prepare(ctx, b); err != nil {
			return err
		}
	}

	b.collectWrites()
	table := pg.Table[Row]()
	if err := pg.UpdateRows(ctx, b, "update imported "+table, rowsAfter(b.updates)); err != nil {
		return err
	}
	if err := pg.CopyRows(ctx, b, "insert imported "+table, rowsAfter(b.inserts)); err != nil || b.kind.afterStore == nil {
		return err
	}
	return b.kind.afterStore(ctx, b)
}

// rowsAfter returns the rows to store.
func rowsAfter[Record, Row any](list []*recordChange[Record, Row]) []Row {
	return pg.MapRows(list, func(a **recordChange[Record, Row]) Row { return *(*a).after })
}

// read locks audiences, looks up the objects that the records refer to, runs begin, and locks the existing rows.
func (b *recordBatch[Record, Row]) read(ctx context.Context) error {
	for _, a := range b.list {
		record := reflect.ValueOf(a.record).Elem()
		for _, f := range b.mapping().fields {
			if value, _ := f.value(record); value.IsValid() {
				b.found.want(value.Interface())
			}
		}
	}
	if b.kind.audiences != "" {
		err := b.LockAudiencesWhere(ctx, b.kind.audiences, pg.SQL(`(
			SELECT unnest(?::uuid[]) AS id UNION SELECT client_id FROM `+pg.Table[Row]()+` WHERE id = ANY(?::uuid[])) AS l`,
			b.found.ids(domain.ClientID{}.Prefix()), b.ids()))
		if err != nil {
			return err
		}
	}
	if err := lookUp(ctx, b.Change, b.found); err != nil {
		return err
	}
	if b.kind.begin != nil {
		if err := b.kind.begin(ctx, b); err != nil {
			return err
		}
	}
	if b.kind.locked == "" { // begin has locked the rows
		return nil
	}
	if b.kind.rank > 0 {
		b.WillLock(b.kind.rank)
	}
	rows, err := pg.All[Row](ctx, b, "lock "+pg.Table[Row](), b.kind.rows().
		Apply(pg.Where("id = ANY(?::uuid[])", b.ids())).OrderExpr(b.kind.locked).For("NO KEY UPDATE"))
	b.keep(rows)
	return err
}

func (b *recordBatch[Record, Row]) ids() [][16]byte {
	return pg.MapRows(b.list, func(a **recordChange[Record, Row]) [16]byte { return idOf((*a).record) })
}

// idsOf returns the ids of the rows to store.
func idsOf[Record, Row any](list []*recordChange[Record, Row]) [][16]byte {
	return pg.MapRows(list, func(a **recordChange[Record, Row]) [16]byte { return idOf((*a).after) })
}

func (b *recordBatch[Record, Row]) keep(rows []Row) {
	for i := range rows {
		b.byKey[b.kind.keyOf(recordOf[Record](&rows[i]))] = &rows[i]
	}
}

func (k *kind[Record, Row]) keyOf(r *Record) any {
	if k.key == nil {
		return idOf(r)
	}
	return k.key(r)
}

func (b *recordBatch[Record, Row]) mapping() *mapping {
	return mappingOf(reflect.TypeFor[Record](), reflect.TypeFor[Row]())
}

// resolve computes a.after, the row that a record leaves. updated_at advances if callers can see the change (visible).
// An error refuses the record.
func (b *recordBatch[Record, Row]) resolve(a *recordChange[Record, Row]) error {
	key := b.kind.keyOf(a.record)
	a.before = b.byKey[key]
	if err := b.check(a); err != nil {
		return err
	}
	if a.after = new(Row); a.before != nil {
		*a.after = *a.before
	}
	b.fill(a)
	if b.kind.finish != nil {
		if err := b.kind.finish(b, a); err != nil {
			return err
		}
	}

	a.changed = a.before != nil && !reflect.DeepEqual(a.before, a.after)
	updated := b.mapping().column(reflect.ValueOf(a.after).Elem(), "UpdatedAt")
	if a.changed && updated.IsValid() && (b.kind.visible == nil || b.kind.visible(a.before, a.after)) {
		at := updated.Addr().Interface().(*time.Time)
		*at = domain.Later(*at, b.At)
	}
	b.byKey[key] = a.after // for later records of the same object
	return nil
}

// check returns an error if a record lacks a field that a new object requires, changes a fixed field of an existing
// object, or refers to an object that does not exist.
func (b *recordBatch[Record, Row]) check(a *recordChange[Record, Row]) error {
	record := reflect.ValueOf(a.record).Elem()
	if a.before == nil {
		if field := b.missingField(a.record); field != "" {
			return missing(field)
		}
	} else if field := b.mapping().changedFixed(record, reflect.ValueOf(a.before).Elem()); field != "" {
		return cannotChange(field)
	}
	for _, f := range b.mapping().fields {
		if ref, ok := f.reference(record); ok && b.found.find(ref) == nil {
			return noSuch(f.name, ref)
		}
	}
	return nil
}

// missingField returns the name of the first required field that the record of a new object lacks, or "".
func (b *recordBatch[Record, Row]) missingField(record *Record) string {
	if b.kind.missingField != nil {
		if field := b.kind.missingField(record); field != "" {
			return field
		}
	}
	for _, f := range b.mapping().fields {
		if f.needed && f.optional(reflect.ValueOf(record).Elem()).IsZero() {
			return f.name
		}
	}
	return ""
}

// fill sets the columns of a.after from the record. A new row first gets its id, times and defaults, and last the
// client and the partner of the objects that the record refers to.
func (b *recordBatch[Record, Row]) fill(a *recordChange[Record, Row]) {
	m, record, row := b.mapping(), reflect.ValueOf(a.record).Elem(), reflect.ValueOf(a.after).Elem()
	if a.before == nil {
		for _, name := range []string{"CreatedAt", "UpdatedAt"} {
			if at := m.column(row, name); at.IsValid() {
				at.Set(reflect.ValueOf(b.At))
			}
		}
		if id := m.column(row, "ID"); id.IsValid() {
			id.Set(record.FieldByName("ID").Field(0).Convert(id.Type())) // Field(0) is the id in a domain.Ref
		}
		if b.kind.setDefaults != nil {
			b.kind.setDefaults(a.after)
		}
	}
	m.apply(record, row)

	if key := m.column(row, "NameKey"); key.IsValid() && m.columns["Name"] != nil {
		// An unchanged name keeps its key, because a migration may have changed the key to make it unique.
		name := m.column(row, "Name").String()
		if a.before == nil || name != m.column(reflect.ValueOf(a.before).Elem(), "Name").String() {
			key.SetString(domain.SortKey(name))
		}
	}
	if key := m.column(row, "EmailKey"); key.IsValid() {
		email, before := m.column(row, "Email").String(), ""
		if a.before != nil {
			before = m.column(reflect.ValueOf(a.before).Elem(), "Email").String()
		}
		if email != before {
			key.Set(reflect.ValueOf(db.StoredEmailKey(email)))
		}
		if domain.EmailKey(email) != domain.EmailKey(before) { // the row claims its new key
			m.column(row, "EmailState").SetZero()
		}
	}
	if a.before == nil {
		b.inherit(record, row)
	}
}

// inherit sets a new row's client and partner, if they are zero, to those of the objects that its record refers to.
func (b *recordBatch[Record, Row]) inherit(record, row reflect.Value) {
	for _, f := range b.mapping().fields {
		ref, ok := f.reference(record)
		if !ok {
			continue
		}
		object := b.found.find(ref)
		for _, name := range []string{"ClientID", "Client", "PartnerID", "Partner"} {
			column := b.mapping().column(row, name)
			for _, id := range []reflect.Value{reflect.ValueOf(object.ClientID), reflect.ValueOf(object.PartnerID)} {
				if column.IsValid() && column.Type() == id.Type() && column.IsZero() { // id is of this kind
					column.Set(id)
				}
			}
		}
	}
}

// collectWrites sets the outcome of each record that is not refused, and collects in inserts and updates the rows to
// insert and to update. If several records have the same object, only the row after the last of them is stored.
func (b *recordBatch[Record, Row]) collectWrites() {
	stored := map[*Row]*recordChange[Record, Row]{} // by the row that a record leaves, the record that stores it
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		switch {
		case a.before == nil:
			a.result.Outcome = domain.ImportCreated
		case a.changed || a.sideEffect:
			a.result.Outcome = domain.ImportUpdated
		default:
			a.result.Outcome = domain.ImportUnchanged
		}
		switch earlier := stored[a.before]; {
		case earlier != nil: // a.before is the row of an earlier record
			*earlier.after = *a.after
			stored[a.after] = earlier
			continue
		case a.before == nil:
			b.inserts = append(b.inserts, a)
		case a.changed:
			b.updates = append(b.updates, a)
		default:
			continue
		}
		stored[a.after] = a
	}
}
