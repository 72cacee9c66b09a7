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

// kind is a kind of objects whose records are rows of a table: what the fields of a
// record say of the row's columns is set, and the other way for an export (mapping). The
// kind says what else there is; what it leaves out there is not.
type kind[Record, Row any] struct {
	object string

	// partner is the condition that a row is of a partner.
	partner string
	// order is that of an export.
	order string
	// columns are computed for rows, and listed adds to them what an export needs.
	columns string
	listed  func(*pg.Select)
	// exported says in a record what columns do not.
	exported func(*Row, *Record) error

	// audiences is how the audiences of the clients whose objects the records are are
	// locked, before all else; empty for not.
	audiences db.AudienceLock
	// rank and locked are the place of the rows in the lock order, and their own order.
	rank   db.LockRank
	locked string
	// key is that of a record; that of a row is that of its record. Nil for the id.
	key func(*Record) any
	// begin locks and reads what the kind has beside what records refer to: rows too, where
	// they are not found by their ids. It may set finish and follow of the batch.
	begin func(context.Context, *recordBatch[Record, Row]) error
	// lacks is a field, beside those of the rule new, that a record of a new object has to
	// have and has not; empty for none.
	lacks func(*Record) string
	// fresh sets what a row has before its first record.
	fresh func(*Row)
	// finish sets what follows from a record beside its columns. An error refuses it.
	finish func(*recordBatch[Record, Row], *recordChange[Record, Row]) error
	// names are what only one object may have.
	names *names[Row]
	// shown reports whether callers are shown a change, which moves updated_at; nil for each.
	shown func(before, after *Row) bool
	// prepare does what rows have to have happened before they are stored.
	prepare func(context.Context, *recordBatch[Record, Row]) error
	// follow does and notes what follows from the rows that are made and changed.
	follow func(context.Context, *recordBatch[Record, Row]) error
	// committed does what follows in transactions of its own.
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
	// byKey are the rows that are there, which are locked, by their keys.
	byKey map[any]*Row
	// made and changed are what is stored.
	made, changed []*recordChange[Record, Row]
}

// recordChange is a record being applied.
type recordChange[Record, Row any] struct {
	record        *Record
	before, after *Row // before is nil for an object that is not there
	changed       bool // the row was there, and is another one now
	beside        bool // it changes something beside the row
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

// read finds what the records refer to, and locks the rows that are there.
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

// ids are those of the records.
func (b *recordBatch[Record, Row]) ids() [][16]byte {
	return pg.MapRows(b.list, func(a **recordChange[Record, Row]) [16]byte { return idOf((*a).record) })
}

// idsOf are those of the rows that are stored.
func idsOf[Record, Row any](list []*recordChange[Record, Row]) [][16]byte {
	return pg.MapRows(list, func(a **recordChange[Record, Row]) [16]byte { return idOf((*a).after) })
}

// keep keeps rows that are there, by their keys.
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

// resolve says what becomes of the row of a record, or why the record is refused.
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
	b.byKey[key] = a.after // of which a later record may be, too
	return nil
}

// check refuses a record that lacks what it needs, changes what is fixed, or refers to
// what is not there.
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

// lacks is the first field that a record of a new object has to have and has not; empty
// for none.
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

// fill sets the columns that a record says. A new row is of the client and the partner
// of what the record refers to.
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
		// One whose name stays keeps the key, which a migration may have made.
		name := m.column(row, "Name").String()
		if a.before == nil || name != m.column(reflect.ValueOf(a.before).Elem(), "Name").String() {
			key.SetString(domain.SortKey(name))
		}
	}
	if a.before == nil {
		b.inherit(record, row)
	}
}

// inherit makes a new row one of the client and the partner of what its record refers to.
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
// insert and to update. Of several records of one object, its only row is stored as the last
// one leaves it.
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
