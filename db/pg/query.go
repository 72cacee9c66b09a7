package pg

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Query is a statement, or a part of a statement, with its bound values. SQL, Raw, From and Insert return one. A Query
// may also be the value of a placeholder of another Query: its text then replaces the placeholder. A Query must not be
// changed after it has run.
type Query interface {
	// write appends the statement's text and its values.
	write(*statement)
}

// Named are the values of a statement by name, as the only argument of SQL. @name in the text stands for a value, any
// number of times. A name without a value, or a value that is not used, is a programming error and panics.
type Named map[string]any

// fragment is the Query of SQL.
type fragment struct {
	text string
	args []any
}

// SQL returns a handwritten statement. In the text, ? stands for the next value, and ?0, ?1 and so on for the value
// with that index, any number of times. A statement with more than four values takes them as Named. Values are passed
// as parameters: if PostgreSQL cannot infer the type of one, the text has to cast it, as in ?::date.
func SQL(text string, args ...any) Query { return fragment{text, args} }

func (f fragment) write(s *statement) { s.add(f.text, f.args) }

// Text returns the text of a query, to be used with Raw and other values. It is for frequent reads, so that their text
// is built only once.
func Text(q Query) string {
	var s statement
	q.write(&s)
	return s.sql()
}

// Raw returns a statement with PostgreSQL's placeholders, $1 and so on, and their values. It must not be a part of
// another query: that is a programming error and panics.
func Raw(text string, args []any) Query { return numbered{text, args} }

// numbered is the Query of Raw.
type numbered fragment

// write makes the query the whole statement: it cannot be a part of one.
func (n numbered) write(s *statement) {
	s.whole, s.args = n.text, make([]any, len(n.args))
	for i, value := range n.args {
		s.args[i] = wireValue(value)
	}
}

// statement is the text and the values of a query while it is written.
type statement struct {
	whole string // the text of Raw; other queries append to text
	text  []byte
	args  []any
}

// sql returns the text that was built or, if a Raw query was written, its text (whole). It panics if there are both.
func (s *statement) sql() string {
	switch {
	case s.whole == "":
		return string(s.text)
	case len(s.text) > 0:
		panic("a Raw statement is part of another query")
	}
	return s.whole
}

// add appends a fragment. It replaces the placeholders of SQL, ? and ?N, by PostgreSQL's, $N. A placeholder without a
// value is a programming error and panics. Without values, the text is appended as it is.
func (s *statement) add(text string, args []any) {
	if len(args) == 0 {
		s.text = append(s.text, text...)
		return
	}
	if values, ok := args[0].(Named); ok {
		s.addNamed(text, values)
		return
	}
	numbers := make([]int, len(args)) // the number of each value's placeholder; 0 if it has none yet
	next := 0
	for {
		i := strings.IndexByte(text, '?')
		if i < 0 {
			s.text = append(s.text, text...)
			return
		}
		s.text = append(s.text, text[:i]...)
		index, rest := cutLeading(text[i+1:], digits) // index is empty for a bare ?
		text = rest
		place := next
		if index != "" {
			place, _ = strconv.Atoi(index)
		} else {
			next++
		}
		s.bind(args[place], &numbers[place])
	}
}

// addNamed is add for named values.
func (s *statement) addNamed(text string, values Named) {
	numbers := make(map[string]int, len(values))
	for {
		before, after, found := strings.Cut(text, "@")
		s.text = append(s.text, before...)
		if !found {
			break
		}
		name, rest := cutLeading(after, letters+digits)
		text = rest
		if name == "" { // a PostgreSQL operator such as @>
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

// bind appends the placeholder of a value or, if the value is a Query, that query. number is the number of the value's
// placeholder; bind sets it if it is 0.
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

// The characters of the names and indexes of placeholders.
const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
)

// cutLeading splits a text after its leading characters that are in a set.
func cutLeading(text, set string) (leading, rest string) {
	rest = strings.TrimLeft(text, set)
	return text[:len(text)-len(rest)], rest
}

// Select is a SELECT that is built from its clauses. Its methods change it and return it. From creates one; the zero
// Select is not usable.
type Select struct {
	from    string
	rows    Query // see Rows; nil for the rows of the table
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

// Rows makes s select from the rows of a query, under the alias of the table, instead of from the table.
func (s *Select) Rows(q Query) *Select {
	s.rows = q
	return s
}

// Columns adds columns.
func (s *Select) Columns(text string, args ...any) *Select {
	s.columns = append(s.columns, SQL(text, args...))
	return s
}

// Join adds a join, written with its kind, as in "LEFT JOIN groups AS g ON …".
func (s *Select) Join(text string, args ...any) *Select {
	s.joins = append(s.joins, SQL(text, args...))
	return s
}

// Where adds a condition. All conditions must hold.
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

// For adds a locking clause, as in "NO KEY UPDATE OF u".
func (s *Select) For(lock string) *Select {
	s.suffix = " FOR " + lock
	return s
}

func (s *Select) write(st *statement) {
	st.list("SELECT ", ", ", s.columns)
	if s.rows != nil {
		_, alias, _ := strings.Cut(s.from, " AS ")
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

// list appends queries, with the text before in front of the first one and the text between in front of the others.
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

// prepared is the Query of Prepared.
type prepared struct{ Query }

// Prepared returns q as a prepared statement: PostgreSQL keeps a plan for each connection, instead of planning the
// query for its values at each call. It is for reads by key, and for other queries whose best plan does not depend on
// the values. It has no effect on a part of another query.
func Prepared(q Query) Query { return prepared{q} }

// unrepeated is a query that will not run again with the same text, so that the driver need not cache its description.
type unrepeated struct{ Query }

// execMode returns the mode in which the driver runs a query. PostgreSQL keeps the plans of Prepared queries, unless a
// pooler without prepared statements is in between. It plans all others at each execution; the driver caches the types
// of their parameters and columns, except for an unrepeated one.
func (d *DB) execMode(q Query) pgx.QueryExecMode {
	switch q.(type) {
	case prepared:
		if d.pooler == TransactionPooler {
			return pgx.QueryExecModeCacheDescribe
		}
		return pgx.QueryExecModeCacheStatement
	case unrepeated:
		return pgx.QueryExecModeDescribeExec
	}
	return pgx.QueryExecModeCacheDescribe
}

// Contains returns the condition that one of the columns, of sort keys, contains key. In key, % and _ are no wildcards.
func Contains(key string, columns ...string) Query {
	pattern := Pattern(key)
	conditions := make([]string, len(columns))
	for i, column := range columns {
		conditions[i] = column + " LIKE ?0"
	}
	return SQL(strings.Join(conditions, " OR "), pattern)
}

// Pattern returns the pattern of LIKE for texts that contain the given texts one after another, with anything between them.
func Pattern(texts ...string) string {
	pattern := "%"
	for _, text := range texts {
		pattern += likeLiteral.Replace(text) + "%"
	}
	return pattern
}

// likeLiteral escapes the special characters of LIKE.
var likeLiteral = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
