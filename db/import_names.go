package db

import (
	"context"
	"fmt"
	"reflect"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// names are names or addresses of which only one object has each.
type names[Row any] struct {
	field, column string
	// of is the name of a row, and within what; empty where it has none.
	of func(*Row) name
	// held is the condition that an object of the table, alias t, has the name k.
	held string
}

// name is a name or an address within a scope, such as a client.
type name struct{ Scope, Key string }

// holderRow is an object that has a name.
type holderRow struct {
	ID domain.ClientID // of whichever kind
	name
}

// settleNames refuses records that claim a name that another object has. A name that its
// holder gives up in the batch is free; of those who want one name the first gets it. For
// no two may have one even within a statement, names that go from one object to another
// are given up first.
func (b *importing[Record, Row]) settleNames(ctx context.Context) error {
	n := b.kind.names
	if n == nil {
		return nil
	}
	var claims []*applied[Record, Row]
	var scopes, keys []string
	moving := map[[16]byte]bool{} // who gives up the name that it has
	for _, a := range b.list {
		if a.refused() {
			continue
		}
		had, wanted := name{}, n.of(a.after)
		if a.before != nil {
			had = n.of(a.before)
		}
		if wanted == had || wanted.Key == "" && a.before == nil {
			continue
		}
		claims, moving[idOf(a.after)] = append(claims, a), true
		scopes, keys = append(scopes, wanted.Scope), append(keys, wanted.Key)
	}
	if len(claims) == 0 {
		return nil
	}
	rows, err := pg.All[holderRow](ctx, b, "look for names", pg.SQL(`
		SELECT t.id, k.scope, k.key FROM `+pg.Table[Row]()+` AS t
		JOIN unnest(?::text[], ?::text[]) AS k (scope, key) ON `+n.held, scopes, keys))
	if err != nil {
		return err
	}
	holders := make(map[name][16]byte, len(rows))
	for _, r := range rows {
		holders[r.name] = r.ID
	}

	giving := b.claim(claims, holders, moving)
	if len(giving) == 0 {
		return nil
	}
	_, err = pg.Exec(ctx, b, "take names away", pg.SQL(
		"UPDATE "+pg.Table[Row]()+" SET "+n.column+" = '~' || id WHERE id = ANY(?::uuid[])", giving))
	return err
}

// claim refuses the claims that cannot be met, and returns the objects whose names others
// get. Whose claim is refused keeps its name, by which others may be refused in turn.
func (b *importing[Record, Row]) claim(
	claims []*applied[Record, Row], holders map[name][16]byte, moving map[[16]byte]bool,
) (giving [][16]byte) {
	for settled := false; !settled; {
		settled, giving = true, nil
		taken := map[name][16]byte{}
		for _, a := range claims {
			id, wanted := idOf(a.after), b.kind.names.of(a.after)
			if a.refused() || wanted.Key == "" {
				continue
			}
			holder, held := holders[wanted]
			other, lost := taken[wanted]
			if held && !moving[holder] {
				other, lost = holder, true
			}
			switch {
			case lost:
				a.refuse(takenBy[Record](b.kind.names.field, other))
				a.result.Clashes, moving[id], settled = true, false, false
				continue
			case held:
				giving = append(giving, holder)
			}
			taken[wanted] = id
		}
	}
	return giving
}

// takenBy refuses a record that claims what another object of its kind has.
func takenBy[Record any](field string, other [16]byte) error {
	id := reflect.New(reflect.TypeFor[Record]()).Elem().FieldByName("ID")
	id.Field(0).Set(reflect.ValueOf(other).Convert(id.Field(0).Type()))
	return fmt.Errorf("%s: the %s %s has it already", field, id.Interface().(reference).Noun(), id.Interface())
}
