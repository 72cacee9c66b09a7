package db

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// How records of a kind become rows: one way for all kinds, and the fields of each.

// kind is how a batch of records of one kind of objects becomes rows of its table, in
// one change: what the fields of a record say of the row's columns is set (pair), and
// the kind says what else there is. Its functions may be nil.
type kind[Record, Row any] struct {
	*Change
	// rows are those that are there, which are locked, by their keys.
	rows map[any]*Row
	// key is that of a record; nil for its id.
	key func(*Record) any
	// refuse says why a record cannot be applied that has all that it needs, and leaves
	// what is fixed. before is nil for an object that is not there.
	refuse func(r *Record, before *Row) domain.ImportResult
	// fresh is the row of an object that is not there, before its record.
	fresh func(*Record) Row
	// finish sets what follows from a record beside its columns, and reports whether the
	// record changes something beside the row. An error refuses the record.
	finish func(a *applied[Record, Row]) (beside bool, err error)
	// names are what only one object may have.
	names *names[Row]
	// then notes what follows from a record that is applied, and changes something. It may
	// still set columns.
	then func(a *applied[Record, Row])
}

// applied is a record being applied.
type applied[Record, Row any] struct {
	record        *Record
	before, after *Row // before is nil for an object that is not there
	changed       bool // the row was there, and is another one now
	beside        bool // it changes something beside the row
	result        *domain.ImportResult
}

// names are names or addresses of which only one object has each.
type names[Row any] struct {
	column string
	// of is the name of a row, and within what.
	of func(*Row) (scope, key string)
	// query finds who has names (settleClaims), and taken refuses one that another has.
	query string
	taken func(holder [16]byte) domain.ImportResult
}

// apply applies a batch. The results are in its order.
func (k *kind[Record, Row]) apply(ctx context.Context, batch []Record, results []domain.ImportResult) error {
	made, changed, err := k.settle(ctx, batch, results)
	if err != nil {
		return err
	}
	return k.store(ctx, made, changed)
}

// store stores the rows that settle returned.
func (k *kind[Record, Row]) store(ctx context.Context, made, changed []*applied[Record, Row]) error {
	what := pg.Table[Row]()
	if err := pg.UpdateRows(ctx, k, "update imported "+what, after(changed)); err != nil {
		return err
	}
	return pg.CopyRows(ctx, k, "insert imported "+what, after(made))
}

// after are the rows as records leave them.
func after[Record, Row any](list []*applied[Record, Row]) []Row {
	rows := make([]Row, len(list))
	for i, a := range list {
		rows[i] = *a.after
	}
	return rows
}

// settle is apply without storing the rows that are made and those that are changed.
func (k *kind[Record, Row]) settle(ctx context.Context, batch []Record, results []domain.ImportResult) (
	made, changed []*applied[Record, Row], err error,
) {
	list := make([]*applied[Record, Row], 0, len(batch))
	for i := range batch {
		if results[i].Refusal != "" {
			continue
		}
		a := &applied[Record, Row]{record: &batch[i], result: &results[i]}
		if *a.result = k.judge(a); a.result.Refusal == "" {
			list = append(list, a)
		}
	}
	if err := k.settleNames(ctx, list); err != nil {
		return nil, nil, err
	}

	stored := map[*Row]*applied[Record, Row]{}
	for _, a := range list {
		if a.result.Refusal != "" {
			continue
		}
		a.result.Outcome = outcomeOf(a.before == nil, a.changed || a.beside)
		if a.result.Outcome != domain.ImportUnchanged && k.then != nil {
			k.then(a)
		}
		switch earlier := stored[a.before]; {
		case earlier != nil: // of the batch, and of the same object
			*earlier.after = *a.after
			stored[a.after] = earlier
			continue
		case a.before == nil:
			made = append(made, a)
		case a.changed:
			changed = append(changed, a)
		default:
			continue
		}
		stored[a.after] = a
	}
	return made, changed, nil
}

// judge says what becomes of the row of a record, or why the record is refused.
func (k *kind[Record, Row]) judge(a *applied[Record, Row]) domain.ImportResult {
	record := reflect.ValueOf(a.record).Elem()
	key := any(rowID(a.record))
	if k.key != nil {
		key = k.key(a.record)
	}
	a.before = k.rows[key]
	if a.before == nil {
		if field := record.FieldByName("Missing").String(); field != "" {
			return missing(field)
		}
	} else if field := changedFixed(a.record, a.before); field != "" {
		return cannotChange(field)
	}
	if k.refuse != nil {
		if refusal := k.refuse(a.record, a.before); refusal.Refusal != "" {
			return refusal
		}
	}

	if a.after = new(Row); a.before != nil {
		*a.after = *a.before
	} else {
		*a.after = k.fresh(a.record)
		if id := reflect.ValueOf(a.after).Elem().FieldByName("ID"); id.IsValid() {
			setID(id, record)
		}
	}
	applyFields(a.record, a.after)
	if k.finish != nil {
		beside, err := k.finish(a)
		if err != nil {
			return refused(err)
		}
		a.beside = beside
	}
	a.changed = a.before != nil && !reflect.DeepEqual(a.before, a.after)
	k.rows[key] = a.after // of which a later record may be, too
	return domain.ImportResult{}
}

// settleNames refuses records whose names others have. Names that go from one object to
// another within the batch are given up first.
func (k *kind[Record, Row]) settleNames(ctx context.Context, list []*applied[Record, Row]) error {
	if k.names == nil {
		return nil
	}
	var claims []claim
	of := map[[16]byte]*applied[Record, Row]{}
	for _, a := range list {
		wanted := claim{id: rowID(a.after)}
		wanted.scope, wanted.key = k.names.of(a.after)
		if a.before != nil {
			if scope, key := k.names.of(a.before); scope == wanted.scope && key == wanted.key {
				continue
			}
		} else if wanted.key == "" {
			continue
		}
		claims, of[wanted.id] = append(claims, wanted), a
	}
	settled, err := k.settleClaims(ctx, claims, k.names.query)
	if err != nil {
		return err
	}
	for id, holder := range settled.lost {
		*of[id].result = k.names.taken(holder)
	}
	return k.giveUp(ctx, settled, pg.Table[Row](), k.names.column)
}

func rowID[Row any](row *Row) [16]byte {
	return reflect.ValueOf(row).Elem().FieldByName("ID").Interface().(interface{ Bytes() [16]byte }).Bytes()
}

// outcomeOf is what became of a record of a new object, or of one that it changes.
func outcomeOf(isNew, changed bool) domain.ImportOutcome {
	switch {
	case isNew:
		return domain.ImportCreated
	case changed:
		return domain.ImportUpdated
	}
	return domain.ImportUnchanged
}

// lockRows locks those of the objects of a batch that are there, in the order of their
// keys.
func lockRows[Record, Row any](ctx context.Context, c *Change, batch []Record, order string) (map[any]*Row, error) {
	rows, err := pg.All[Row](ctx, c, "lock "+pg.Table[Row](), pg.Rows[Row]().
		Where("id = ANY(?::uuid[])", idsOf(batch)).OrderBy(order).For("NO KEY UPDATE"))
	return rowsByID(rows), err
}

// idsOf are the ids of records.
func idsOf[Record any](batch []Record) [][16]byte {
	ids := make([][16]byte, len(batch))
	for i := range batch {
		ids[i] = rowID(&batch[i])
	}
	return ids
}

// rowsByID are rows by their ids.
func rowsByID[Row any](rows []Row) map[any]*Row {
	by := make(map[any]*Row, len(rows))
	for i := range rows {
		by[rowID(&rows[i])] = &rows[i]
	}
	return by
}

// pair is a field of a record that is a column of its object's row, by its name in Go:
// the same, with ID behind it for a reference, or that of the tag row.
type pair struct {
	name  string // in lines
	field int    // of the record
	row   []int  // the place in the row
	fixed bool
	// computed says that a query fills the column, for an export alone.
	computed bool
	// omitZero says that an export leaves a zero out.
	omitZero bool
}

var pairLists sync.Map // of the types of record and row to []pair

// pairsOf are the pairs of a record and a row.
func pairsOf(record, row reflect.Type) (list []pair) {
	types := [2]reflect.Type{record, row}
	if known, ok := pairLists.Load(types); ok {
		return known.([]pair)
	}
	for i := range record.NumField() {
		f := record.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("record"), ",")
		value, isField := f.Type.FieldByName("Value")
		if !isField || name == "" {
			continue
		}
		for _, column := range []string{f.Tag.Get("row"), f.Name, f.Name + "ID"} {
			to, ok := row.FieldByName(column)
			if !ok || !plainType(pointee(value.Type)).ConvertibleTo(pointee(to.Type)) {
				continue
			}
			list = append(list, pair{
				name: name, field: i, row: to.Index, omitZero: option == "omitzero",
				computed: strings.Contains(to.Tag.Get("bun"), "scanonly"),
				fixed:    strings.Contains(","+f.Tag.Get("rule")+",", ",fixed,"),
			})
			break
		}
	}
	pairLists.Store(types, list)
	return list
}

// plainType is what rows have for the type of a field: the time of a domain.Time, the
// id of a domain.Ref.
func plainType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Struct && t.NumField() == 1 {
		return t.Field(0).Type
	}
	return t
}

func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// value is what a record says of a column, as rows have it. It is not valid for null,
// and given is false where the record says nothing.
func (p *pair) value(record reflect.Value) (value reflect.Value, given bool) {
	field := record.Field(p.field)
	value = reflect.Indirect(field.FieldByName("Value"))
	if given = field.FieldByName("Given").Bool(); !given || !value.IsValid() {
		return reflect.Value{}, given
	}
	if plainType(value.Type()) != value.Type() {
		value = value.Field(0)
	}
	return value, true
}

// differs reports whether a column, which may be a pointer, has another value.
func differs(column, value reflect.Value) bool {
	if column.Kind() == reflect.Pointer {
		if column.IsNil() || !value.IsValid() {
			return column.IsNil() == value.IsValid()
		}
		column = column.Elem()
	}
	if at, ok := value.Interface().(time.Time); ok {
		return !at.Equal(column.Interface().(time.Time))
	}
	return !reflect.DeepEqual(column.Interface(), value.Convert(column.Type()).Interface())
}

// applyFields sets what a record says of its row's columns. What is the same stays as
// it is, so that rows can be compared.
func applyFields[Record, Row any](record *Record, row *Row) {
	from, into := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	for _, p := range pairsOf(from.Type(), into.Type()) {
		value, given := p.value(from)
		column := into.FieldByIndex(p.row)
		switch {
		case p.computed || !given || !differs(column, value):
		case !value.IsValid():
			column.SetZero()
		case column.Kind() == reflect.Pointer:
			made := reflect.New(column.Type().Elem())
			made.Elem().Set(value.Convert(made.Type().Elem()))
			column.Set(made)
		default:
			column.Set(value.Convert(column.Type()))
		}
	}
}

// changedFixed is the fixed field of a record that says another thing than what is
// there; empty for none.
func changedFixed[Record, Row any](record *Record, row *Row) string {
	from, of := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	for _, p := range pairsOf(from.Type(), of.Type()) {
		if value, _ := p.value(from); p.fixed && value.IsValid() && differs(of.FieldByIndex(p.row), value) {
			return p.name
		}
	}
	return ""
}

// recordOf is a row as a record, without what its columns do not say.
func recordOf[Record, Row any](row *Row) (record Record) {
	into, from := reflect.ValueOf(&record).Elem(), reflect.ValueOf(row).Elem()
	setID(into.FieldByName("ID").Field(0), from)
	for _, p := range pairsOf(into.Type(), from.Type()) {
		column := from.FieldByIndex(p.row)
		if p.omitZero && column.IsZero() || column.Kind() == reflect.Pointer && column.IsNil() {
			continue
		}
		column = reflect.Indirect(column)
		field := into.Field(p.field)
		field.FieldByName("Given").SetBool(true)
		value := field.FieldByName("Value")
		if value.Kind() == reflect.Pointer {
			value.Set(reflect.New(value.Type().Elem()))
			value = value.Elem()
		}
		if plainType(value.Type()) != value.Type() {
			value = value.Field(0)
		}
		value.Set(column.Convert(value.Type()))
	}
	return record
}

// setID sets an id to that of a row, or of a record.
func setID(id, of reflect.Value) {
	from := of.FieldByName("ID")
	if from.Kind() == reflect.Struct {
		from = from.Field(0) // of a domain.Ref
	}
	id.Set(from.Convert(id.Type()))
}
