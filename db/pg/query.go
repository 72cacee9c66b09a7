package pg

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Query is a statement, or a part of one, with the values that it binds. It is
// made by SQL, From or Insert; a Query may be the value of a placeholder of
// another one, and stands there as it is. Queries are not changed once they run.
type Query interface {
	// write appends the statement's text and its values.
	write(*statement)
}

// Named are the values of a statement by name: @name in its text stands for one, as often
// as it is named. It is the only argument of SQL then. A name without a value, or a value
// that is not used, is a programming error, and panics.
type Named map[string]any

// fragment is SQL written by hand. A ? stands for the next value, ?0 ?1 … for
// the values by their places, @name for one of Named; each value is sent apart from the text.
type fragment struct {
	text string
	args []any
}

// SQL is a statement written by hand. A ? in the text stands for the next of the
// values, ?0 and so on for the value at that place, as often as it is named. A
// statement of more than four values takes them as Named. A value is sent apart from the
// text: where PostgreSQL cannot infer its type, the text says it, as in ?::date.
func SQL(text string, args ...any) Query { return fragment{text, args} }

func (f fragment) write(s *statement) { s.add(f.text, f.args) }

// Text is the text of a query, which Raw takes with other values: for hot reads,
// whose text is worth writing once.
func Text(q Query) string {
	var s statement
	q.write(&s)
	return s.sql()
}

// Bound returns the text of a query with its values, for a transaction of database/sql.
func Bound(q Query) (text string, args []any) {
	var s statement
	q.write(&s)
	return s.sql(), s.args
}

// Raw is a statement whose placeholders are written already ($1 and so on), for
// these values. It stands alone: within another query it is a programming error, and
// panics.
func Raw(text string, args []any) Query { return numbered{text, args} }

type numbered struct {
	text string
	args []any
}

func (n numbered) write(s *statement) {
	s.whole, s.args = n.text, make([]any, len(n.args))
	for i, value := range n.args {
		s.args[i] = wireValue(value)
	}
}

// statement is a query being written.
type statement struct {
	whole string // its text, where that was written before (Raw); else it is in text
	text  []byte
	args  []any
}

// sql is the text.
func (s *statement) sql() string {
	switch {
	case s.whole == "":
		return string(s.text)
	case len(s.text) > 0:
		panic("a Raw statement is part of another query")
	}
	return s.whole
}

// add appends a fragment. A placeholder without a value is a programming error,
// and panics.
func (s *statement) add(text string, args []any) {
	if len(args) == 0 {
		s.text = append(s.text, text...)
		return
	}
	if values, ok := args[0].(Named); ok {
		s.addNamed(text, values)
		return
	}
	numbers := make([]int, len(args)) // of the placeholders that the values have; 0 for none yet
	next := 0
	for {
		i := strings.IndexByte(text, '?')
		if i < 0 {
			s.text = append(s.text, text...)
			return
		}
		s.text = append(s.text, text[:i]...)
		text = text[i+1:]
		place := next
		if digits := leadingDigits(text); digits > 0 {
			place, _ = strconv.Atoi(text[:digits])
			text = text[digits:]
		} else {
			next++
		}
		s.bind(args[place], &numbers[place])
	}
}

// addNamed appends a fragment with named values.
func (s *statement) addNamed(text string, values Named) {
	numbers := make(map[string]int, len(values))
	for {
		before, after, found := strings.Cut(text, "@")
		s.text = append(s.text, before...)
		if !found {
			break
		}
		name := leadingName(after)
		text = after[len(name):]
		if name == "" { // an operator
			s.text = append(s.text, '@')
			continue
		}
		value, ok := values[name]
		if !ok {
			panic("a statement has no value @" + name)
		}
		number := numbers[name]
		s.bind(value, &number)
		numbers[name] = number
	}
	if len(numbers) < len(values) {
		panic("a statement uses not all of its named values: " + string(s.text))
	}
}

// bind appends the placeholder of a value, or the query that stands in its place.
func (s *statement) bind(value any, number *int) {
	if q, ok := value.(Query); ok {
		q.write(s)
		return
	}
	if *number == 0 {
		s.args = append(s.args, wireValue(value))
		*number = len(s.args)
	}
	s.text = strconv.AppendInt(append(s.text, '$'), int64(*number), 10)
}

// leadingName returns the letters, digits and underscores that a text begins with; none if the
// first is a digit.
func leadingName(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(text)
	}
	if end > 0 && text[0] >= '0' && text[0] <= '9' {
		end = 0
	}
	return text[:end]
}

func leadingDigits(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

// Select is a SELECT put together from its clauses. Its methods change it and
// return it. The zero Select is of no use: begin with From.
type Select struct {
	from    string
	rows    Query // nil for those of the table
	columns []Query
	joins   []Query
	where   []Query
	order   string
	suffix  string
	limit   int
	offset  int
}

// From begins a SELECT on a table with its alias, as in "users AS u".
func From(table string) *Select { return &Select{from: table} }

// Rows selects from the rows of a query, under the alias of the table.
func (s *Select) Rows(q Query) *Select {
	s.rows = q
	return s
}

// Columns adds columns.
func (s *Select) Columns(text string, args ...any) *Select {
	s.columns = append(s.columns, SQL(text, args...))
	return s
}

// Join adds a join, spelled with its kind: "LEFT JOIN groups AS g ON …".
func (s *Select) Join(text string, args ...any) *Select {
	s.joins = append(s.joins, SQL(text, args...))
	return s
}

// Where adds a condition; all of them must hold.
func (s *Select) Where(text string, args ...any) *Select {
	s.where = append(s.where, SQL(text, args...))
	return s
}

// OrderBy sets the order.
func (s *Select) OrderBy(text string) *Select {
	s.order = text
	return s
}

// Limit bounds the number of rows; 0 means no bound.
func (s *Select) Limit(n int) *Select {
	s.limit = n
	return s
}

// Offset skips n rows.
func (s *Select) Offset(n int) *Select {
	s.offset = n
	return s
}

// For locks the rows, as in "NO KEY UPDATE OF u".
func (s *Select) For(lock string) *Select {
	s.suffix = " FOR " + lock
	return s
}

func (s *Select) write(st *statement) {
	st.list("SELECT ", ", ", s.columns)
	if _, alias, _ := strings.Cut(s.from, " AS "); s.rows != nil {
		st.add(" FROM (?) AS "+alias, []any{s.rows})
	} else {
		st.add(" FROM "+s.from, nil)
	}
	for _, join := range s.joins {
		st.add(" ", nil)
		join.write(st)
	}
	if len(s.where) > 0 {
		st.list(" WHERE (", ") AND (", s.where)
		st.add(")", nil)
	}
	if s.order != "" {
		st.add(" ORDER BY "+s.order, nil)
	}
	if s.limit > 0 {
		st.add(" LIMIT ?", []any{s.limit})
	}
	if s.offset > 0 {
		st.add(" OFFSET ?", []any{s.offset})
	}
	st.add(s.suffix, nil)
}

// list appends queries with a text before the first and between them.
func (s *statement) list(before, between string, queries []Query) {
	for i, q := range queries {
		if i == 0 {
			s.add(before, nil)
		} else {
			s.add(between, nil)
		}
		q.write(s)
	}
}

// prepared is a query that keeps one plan per connection.
type prepared struct{ Query }

// Prepared makes PostgreSQL keep one plan of a query for each connection, instead of planning
// it for its values at each call: for reads by key, and others whose best plan does not depend
// on the values. A Query within another one is planned with that one.
func Prepared(q Query) Query { return prepared{q} }

// once is a query whose text will not be run again: nothing is kept of it.
type once struct{ Query }

// planOf returns how a query is planned. Behind a pooler without prepared statements no plan
// is kept: each query is sent whole, in one round trip.
func (d *DB) planOf(q Query) pgx.QueryExecMode {
	switch q.(type) {
	case prepared:
		if d.pooler == TransactionPooler {
			return pgx.QueryExecModeCacheDescribe
		}
		return pgx.QueryExecModeCacheStatement
	case once:
		return pgx.QueryExecModeDescribeExec
	}
	return pgx.QueryExecModeCacheDescribe
}

// Contains is the condition that one of the columns, which hold sort keys,
// contains the key. % and _ in it stand for themselves.
func Contains(key string, columns ...string) Query {
	pattern := "%" + likeLiteral.Replace(key) + "%"
	conditions := make([]string, len(columns))
	for i, column := range columns {
		conditions[i] = column + " LIKE ?0"
	}
	return SQL(strings.Join(conditions, " OR "), pattern)
}

// likeLiteral escapes what LIKE takes for a pattern.
var likeLiteral = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
