package outbox

import "strings"

// nextInTurn returns an SQL item for LATERAL, alias f: the row after w (key, wrapped) of a cyclic walk over the UUID
// keys of a table. It has the next greater key, whose branch LIMIT 1 takes first, otherwise the smallest, wrapped from
// then on, and the key's earliest due_at. The walk ends with the value began. Only rows of table, alias o, that match
// where count.
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
