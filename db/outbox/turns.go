package outbox

import "strings"

// nextInTurn returns a FROM item, alias f, with the row that follows row w of a walk in turns:
// the first by key and due_at after w or, after the last row, the first of all up to where the
// walk began. The condition where is on the table's alias o.
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
