package records

import (
	"context"
	"iter"
	"reflect"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// kind implements Kind for objects that are rows of a table. An import sets the columns of a
// row from the fields of its record, and an export the fields from the columns (mapping). The
// other members of kind add to that; a zero one adds nothing.
type kind[Record, Row any] struct {
	object string

	// partner is the SQL condition that a row belongs to a partner (?); empty if all share the rows.
	partner string
	// order is the ORDER BY of an export.
	order string
	// columns are computed columns that every query of rows selects; listed extends an export's query.
	columns string
	listed  func(*pg.Select)
	// exported sets or clears fields of an exported record that the columns alone do not give.
	exported func(*Row, *Record) error

	// audiences is the lock that is taken first, on the audiences of the records' clients;
	// empty for none.
	audiences db.AudienceLock
	// rank is the rows' place in the lock order; locked is their own order, empty if begin locks them.
	rank   db.LockRank
	locked string
	// key returns the key of a record; a row has the key of its record. Nil means the id.
	key func(*Record) any
	// begin locks and reads what the kind needs beyond the objects that records refer to, and
	// the rows if locked is empty. It may set finish, prepare and follow of the batch's kind.
	begin func(context.Context, *recordBatch[Record, Row]) error
	// lacks returns a required field, beside those of the rule new, that a record of a new
	// object lacks; empty for none.
	lacks func(*Record) string
	// fresh sets the defaults of a new row, before its record is applied.
	fresh func(*Row)
	// finish sets what a record implies beyond its columns. An error refuses the record.
	finish func(*recordBatch[Record, Row], *recordChange[Record, Row]) error
	// names describes the name that must be unique.
	names *names[Row]
	// shown reports whether callers see a change, which then advances updated_at; nil if they always do.
	shown func(before, after *Row) bool
	// prepare runs before the rows are stored.
	prepare func(context.Context, *recordBatch[Record, Row]) error
	// follow runs after the rows are stored, and applies the consequences.
	follow func(context.Context, *recordBatch[Record, Row]) error
	// committed runs after the commit, in transactions of its own.
	committed func(context.Context, *recordBatch[Record, Row]) error
}

func (k *kind[Record, Row]) Object() string { return k.object }

func (k *kind[Record, Row]) Type() reflect.Type { return reflect.TypeFor[Record]() }

// Export reads the rows as records.
func (k *kind[Record, Row]) Export(ctx context.Context, d *db.DB, partner domain.PartnerID) iter.Seq2[any, error] {
	q := k.rows().OrderBy(k.order)
	if k.listed != nil {
		k.listed(q)
	}
	if k.partner != "" && !partner.IsZero() {
		q.Where(k.partner, partner)
	}
	return func(yield func(any, error) bool) {
		for row, err := range pg.Each[Row](ctx, d, "export "+pg.Table[Row](), q) {
			var record *Record
			if err == nil {
				record = recordOf[Record](&row)
			}
			if err == nil && k.exported != nil {
				err = k.exported(&row, record)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// ofPartner is the condition that rows of a table, by its alias, are of a partner's clients.
func ofPartner(alias string) string {
	return alias + ".client_id IN (SELECT id FROM clients WHERE partner_id = ?)"
}

// rows selects rows of the table.
func (k *kind[Record, Row]) rows() *pg.Select {
	q := pg.Rows[Row]()
	if k.columns != "" {
		q.Columns(k.columns)
	}
	return q
}

// recordBatch is a batch of records of one kind being applied in a change.
type recordBatch[Record, Row any] struct {
	*db.Change
	kind *kind[Record, Row]
	list []*recordChange[Record, Row]
	// found are the objects that the records refer to.
	found objects
	// byKey are the existing rows, locked, and those of earlier records, by their keys.
	byKey map[any]*Row
	// made are to be inserted, and changed to be updated.
	made, changed []*recordChange[Record, Row]
}

// recordChange is a record being applied.
type recordChange[Record, Row any] struct {
	record        *Record
	before, after *Row // before is nil for a new object
	changed       bool // the row existed, and its content changes
	beside        bool // it changes something other than the row
	result        *domain.ImportResult
}

// refuse refuses the record.
func (a *recordChange[Record, Row]) refuse(err error) { *a.result = domain.RefuseImport("%s", err) }

// refused reports whether the record is refused.
func (a *recordChange[Record, Row]) refused() bool { return a.result.Refusal != "" }

// Import applies records.
func (k *kind[Record, Row]) Import(ctx context.Context, d *db.DB, batch []any) ([]domain.ImportResult, error) {
	var b *recordBatch[Record, Row]
	results, err := importBatch(ctx, d, batch, func(ctx context.Context, c *db.Change, results []domain.ImportResult) error {
		of := *k
		b = &recordBatch[Record, Row]{Change: c, kind: &of, found: objects{}, byKey: map[any]*Row{}}
		for i, record := range batch {
			b.list = append(b.list, &recordChange[Record, Row]{record: record.(*Record), result: &results[i]})
		}
		return b.apply(ctx)
	})
	if err == nil && b != nil && k.committed != nil {
		err = k.committed(ctx, b)
	}
	return results, err
}

func (b *recordBatch[Record, Row]) apply(ctx context.Context) error {
	if err := b.read(ctx); err != nil {
		return err
	}
	for _, a := range b.list {
		if err := b.resolve(a); err != nil {
			a.refuse(err)
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
	what := pg.Table[Row]()
	if err := pg.UpdateRows(ctx, b, "update imported "+what, rowsAfter(b.changed)); err != nil {
		return err
	}
	if err := pg.CopyRows(ctx, b, "insert imported "+what, rowsAfter(b.made)); err != nil || b.kind.follow == nil {
		return err
	}
	return b.kind.follow(ctx, b)
}

// rowsAfter are the rows as records leave them.
func rowsAfter[Record, Row any](list []*recordChange[Record, Row]) []Row {
	return pg.MapRows(list, func(a **recordChange[Record, Row]) Row { return *(*a).after })
}

// read looks up the objects that the records refer to, and locks the existing rows.
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
			b.found.ids(domain.ClientKind{}.Prefix()), b.ids()))
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
	if b.kind.locked == "" {
		return nil
	}

	if b.kind.rank > 0 {
		b.Lock(b.kind.rank)
	}
	rows, err := pg.All[Row](ctx, b, "lock "+pg.Table[Row](), b.kind.rows().
		Where("id = ANY(?::uuid[])", b.ids()).OrderBy(b.kind.locked).For("NO KEY UPDATE"))
	b.keep(rows)
	return err
}

// ids returns the ids of the records.
func (b *recordBatch[Record, Row]) ids() [][16]byte {
	return pg.MapRows(b.list, func(a **recordChange[Record, Row]) [16]byte { return idOf((*a).record) })
}

// idsOf returns the ids of the rows that are stored.
func idsOf[Record, Row any](list []*recordChange[Record, Row]) [][16]byte {
	return pg.MapRows(list, func(a **recordChange[Record, Row]) [16]byte { return idOf((*a).after) })
}

// keep adds existing rows to byKey.
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

// resolve computes the row that a record leaves. It returns an error if the record is refused.
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
	if a.changed && updated.IsValid() && (b.kind.shown == nil || b.kind.shown(a.before, a.after)) {
		at := updated.Addr().Interface().(*time.Time)
		*at = domain.Later(*at, b.At)
	}
	b.byKey[key] = a.after // for later records of the same object
	return nil
}

// check returns an error if a record lacks a required field, changes a fixed one, or refers
// to an object that does not exist.
func (b *recordBatch[Record, Row]) check(a *recordChange[Record, Row]) error {
	record := reflect.ValueOf(a.record).Elem()
	if a.before == nil {
		if field := b.lacks(a.record); field != "" {
			return missing(field)
		}
	} else if field := b.mapping().changedFixed(record, reflect.ValueOf(a.before).Elem()); field != "" {
		return cannotChange(field)
	}
	for _, f := range b.mapping().fields {
		if to, is := f.reference(record); is && b.found.find(to) == nil {
			return noSuch(f.name, to)
		}
	}
	return nil
}

// lacks returns the first required field that a record of a new object lacks; empty for none.
func (b *recordBatch[Record, Row]) lacks(record *Record) string {
	if b.kind.lacks != nil {
		if field := b.kind.lacks(record); field != "" {
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

// fill sets the columns that a record gives. A new row gets the client and the partner of the
// objects that the record refers to.
func (b *recordBatch[Record, Row]) fill(a *recordChange[Record, Row]) {
	m, record, row := b.mapping(), reflect.ValueOf(a.record).Elem(), reflect.ValueOf(a.after).Elem()
	if a.before == nil {
		for _, name := range []string{"CreatedAt", "UpdatedAt"} {
			if at := m.column(row, name); at.IsValid() {
				at.Set(reflect.ValueOf(b.At))
			}
		}
		if id := m.column(row, "ID"); id.IsValid() {
			id.Set(record.FieldByName("ID").Field(0).Convert(id.Type()))
		}
		if b.kind.fresh != nil {
			b.kind.fresh(a.after)
		}
	}
	m.apply(record, row)

	if key := m.column(row, "NameKey"); key.IsValid() && m.columns["Name"] != nil {
		// An unchanged name keeps its key, which a migration may have computed.
		name := m.column(row, "Name").String()
		if a.before == nil || name != m.column(reflect.ValueOf(a.before).Elem(), "Name").String() {
			key.SetString(domain.SortKey(name))
		}
	}
	if a.before == nil {
		b.inherit(record, row)
	}
}

// inherit gives a new row the client and the partner of the objects that its record refers to.
func (b *recordBatch[Record, Row]) inherit(record, row reflect.Value) {
	for _, f := range b.mapping().fields {
		to, is := f.reference(record)
		if !is {
			continue
		}
		of := b.found.find(to)
		for _, c := range []struct {
			name string
			id   reflect.Value
		}{{"ClientID", reflect.ValueOf(of.ClientID)}, {"PartnerID", reflect.ValueOf(of.PartnerID)}} {
			column := b.mapping().column(row, c.name)
			if column.IsValid() && column.Type() == c.id.Type() && column.IsZero() {
				column.Set(c.id)
			}
		}
	}
}

// collectWrites sets the outcome of each record, and collects in made and changed the rows to
// insert and to update. Several records of one object store one row, as the last of them
// leaves it.
func (b *recordBatch[Record, Row]) collectWrites() {
	stored := map[*Row]*recordChange[Record, Row]{}
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		switch {
		case a.before == nil:
			a.result.Outcome = domain.ImportCreated
		case a.changed || a.beside:
			a.result.Outcome = domain.ImportUpdated
		default:
			a.result.Outcome = domain.ImportUnchanged
		}
		switch earlier := stored[a.before]; {
		case earlier != nil:
			*earlier.after = *a.after
			stored[a.after] = earlier
			continue
		case a.before == nil:
			b.made = append(b.made, a)
		case a.changed:
			b.changed = append(b.changed, a)
		default:
			continue
		}
		stored[a.after] = a
	}
}
