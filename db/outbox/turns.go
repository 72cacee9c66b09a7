package outbox

import "strings"

// nextInTurn returns an SQL FROM item, alias f, with the row after row w of a cyclic walk over the keys of a table: the
// row with the next greater key and its earliest due_at or, after the greatest key, that with the smallest key. The
// walk ends at the key began. Only rows of table, alias o, that match where count. f.wrapped is true after the greatest
// key.
func nextInTurn(table, key, where, began string) string {
	return strings.NewReplacer("{table}", table, "{key}", key, "{where}", where, "{began}", began).Replace(`((
		SELECT o.{key}, o.due_at, w.wrapped FROM {table} AS o WHERE {where} AND o.{key} > w.{key}
			AND o.{key} <= CASE WHEN w.wrapped THEN {began} ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END
		ORDER BY o.{key}, o.due_at LIMIT 1
	) UNION ALL (
		SELECT o.{key}, o.due_at, true FROM {table} AS o
		WHERE {where} AND NOT w.wrapped AND o.{key} <= {began} ORDER BY o.{key}, o.due_at LIMIT 1
	) LIMIT 1) AS f`)
}
