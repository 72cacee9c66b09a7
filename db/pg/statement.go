package pg

import (
	"fmt"
	"strconv"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

// dialect is Bun's dialect of PostgreSQL. It maps row types to columns.
var dialect = pgdialect.New()

// statement is the dialect in which Bun writes one statement. It collects the values, for which $1, $2 and so on stand
// in the text. Bun's own dialect writes values into the text, and PostgreSQL would have to plan each text anew.
type statement struct {
	*pgdialect.Dialect
	args  []any
	whole string // the text of a Raw query, which must be all of the statement
}

// render returns the text of a query and its values. It panics at a programming error, such as a value that would be
// written into the text.
func render(q Query) (text string, args []any) {
	s := statement{Dialect: dialect}
	b, err := q.AppendQuery(schema.NewQueryGen(&s).WithArg(unnamed{}), nil)
	if err != nil {
		panic(err)
	}
	if text = string(b); s.whole != "" && s.whole != text {
		panic("a Raw statement is part of another query: " + text)
	}
	return text, s.args
}

// value is a value of a statement, or a Query, in the place of a placeholder.
type value struct {
	value  any
	used   bool
	number int // of its placeholder; 0 before the first use, and for a Query
}

// AppendQuery implements Query. It binds the value once, however often it is used.
func (v *value) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	v.used = true
	if q, ok := v.value.(Query); ok {
		b, err := q.AppendQuery(gen, b)
		if err != nil {
			panic(err) // Bun would write it into the text
		}
		return b, nil
	}
	s := gen.Dialect().(*statement)
	if v.number == 0 {
		s.args = append(s.args, wireValue(v.value))
		v.number = len(s.args)
	}
	return strconv.AppendInt(append(b, '$'), int64(v.number), 10), nil
}

// The methods of the dialect that would write a value into the text. Bun writes numbers itself, so that TestBuilders
// looks for them in the code.

func (*statement) AppendString(_ []byte, v string) []byte  { return written(v) }
func (*statement) AppendTime(_ []byte, v time.Time) []byte { return written(v) }
func (*statement) AppendBytes(_ []byte, v []byte) []byte   { return written(v) }
func (*statement) AppendJSON(_ []byte, v []byte) []byte    { return written(v) }
func (*statement) AppendBool(_ []byte, v bool) []byte      { return written(v) }
func (*statement) AppendUint32(_ []byte, v uint32) []byte  { return written(v) }
func (*statement) AppendUint64(_ []byte, v uint64) []byte  { return written(v) }

// written panics: the values of a statement are bound (SQL, Where).
func written(v any) []byte {
	panic(fmt.Sprintf("the value %v would be written into a statement's text: pass it by SQL or Where", v))
}
