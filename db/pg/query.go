package pg

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// Query is a statement, or a part of a statement, with its bound values: one of Bun's builders, or what SQL, Raw and
// Insert return. A Query may also be the value of a placeholder of another Query: its text then replaces the
// placeholder. A Query must not be changed after it has run.
type Query = schema.QueryAppender

// Named are the values of a statement by name, as the only argument of SQL. ?name in the text stands for a value, any
// number of times. A name without a value, or a value that is not used, is a programming error and panics.
type Named map[string]any

// SQL returns a handwritten statement, with the placeholders of Bun: ? stands for the next value, ?0, ?1 and so on for
// the value with that index, any number of times, and \? for a question mark. Three values or more are passed as Named.
// Values are passed as parameters: if PostgreSQL cannot infer the type of one, the text has to cast it, as in ?::date. A
// placeholder without a value panics. Without values, the text is used as it is.
func SQL(text string, args ...any) Query { return fragment{text, args} }

// fragment is the Query of SQL.
type fragment struct {
	text string
	args []any
}

// AppendQuery implements Query.
func (f fragment) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	if len(f.args) == 0 {
		return append(b, f.text...), nil
	}
	if values, ok := f.args[0].(Named); ok {
		return values.append(gen, b, f.text), nil
	}
	bound, args := make([]value, len(f.args)), make([]any, len(f.args)+1)
	for i, arg := range f.args {
		bound[i].value, args[i] = arg, &bound[i]
	}
	args[len(f.args)] = missing(f.text)
	for before, rest, found := strings.Cut(f.text, "?"); found; before, rest, found = strings.Cut(rest, "?") {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err == nil && n >= len(f.args) && !strings.HasSuffix(before, `\`) {
			panic("a statement has more placeholders than values: " + f.text)
		}
	}
	return gen.AppendQuery(b, f.text, args...), nil
}

// append appends a text with the named values.
func (n Named) append(gen schema.QueryGen, b []byte, text string) []byte {
	values := make(namedValues, len(n))
	for name, v := range n {
		values[name] = &value{value: v}
	}
	b = gen.AppendQuery(b, text, values)
	for name, v := range values {
		if !v.used {
			panic("a statement does not use its value ?" + name + ": " + text)
		}
	}
	return b
}

// namedValues are Bun's named arguments of a fragment.
type namedValues map[string]*value

// AppendNamedArg implements schema.NamedArgAppender.
func (n namedValues) AppendNamedArg(gen schema.QueryGen, b []byte, name string) ([]byte, bool) {
	v, ok := n[name]
	if ok {
		b, _ = v.AppendQuery(gen, b) // has no error
	}
	return b, ok
}

// unnamed are the named arguments of a statement whose texts have no value of a name. Bun asks them last.
type unnamed struct{}

// AppendNamedArg implements schema.NamedArgAppender.
func (unnamed) AppendNamedArg(_ schema.QueryGen, _ []byte, name string) ([]byte, bool) {
	panic("a statement has no value ?" + name)
}

// missing is what Bun appends for the placeholder after the last value of a text.
type missing string

// AppendQuery implements Query.
func (m missing) AppendQuery(schema.QueryGen, []byte) ([]byte, error) {
	panic("a statement has more placeholders than values: " + string(m))
}

// Where returns a condition for the Apply method of Bun's SELECT. Like SQL, it binds its values; Bun's Where would write
// them into the text.
func Where(text string, args ...any) func(*bun.SelectQuery) *bun.SelectQuery {
	return func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("?", SQL(text, args...)) }
}

// From begins a SELECT on a table with its alias, as in "users AS u".
func From(table string) *bun.SelectQuery { return bun.NewSelectQuery(nil).TableExpr(table) }

// FromRows begins a SELECT on the rows of a query, under an alias.
func FromRows(q Query, alias string) *bun.SelectQuery {
	return bun.NewSelectQuery(nil).TableExpr("(?) AS "+alias, q)
}

// Limit bounds the number of rows of a query. The number is bound: written into the text, it would change the plan.
func Limit(q Query, n int) Query { return SQL("? LIMIT ?", q, n) }

// Text returns the text of a query, to be used with Raw and other values. It is for frequent reads, so that their text
// is built only once.
func Text(q Query) string {
	text, _ := render(q)
	return text
}

// Raw returns a statement with PostgreSQL's placeholders, $1 and so on, and their values. It must not be a part of
// another query: that is a programming error and panics.
func Raw(text string, args []any) Query { return numbered{text, args} }

// numbered is the Query of Raw.
type numbered fragment

// AppendQuery implements Query.
func (n numbered) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	s := gen.Dialect().(*statement)
	s.whole, s.args = n.text, make([]any, len(n.args))
	for i, v := range n.args {
		s.args[i] = wireValue(v)
	}
	return append(b, n.text...), nil
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
		if d.prepares {
			return pgx.QueryExecModeCacheStatement
		}
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
