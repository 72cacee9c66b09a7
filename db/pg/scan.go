package pg

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"partnerapi/domain"
)

// scan appends the rows of a result to rows. For speed, it decodes the common types from the binary format directly
// into the fields, and leaves other types to the driver: a page of 500 rows has 13,000 values.
func scan[Row any](result pgx.Rows, types *pgtype.Map, rows []Row) ([]Row, error) {
	l, err := layoutOf(reflect.TypeFor[Row](), result.FieldDescriptions())
	if err != nil {
		return nil, err
	}
	for result.Next() {
		var empty Row
		rows = append(rows, empty)
		if err := l.read(types, result.RawValues(), unsafe.Pointer(&rows[len(rows)-1])); err != nil {
			return nil, err
		}
	}
	return rows, result.Err()
}

// layout maps the columns of a result to the fields of a row type: fields[i] is the field of columns[i].
type layout struct {
	columns []pgconn.FieldDescription
	fields  []field
}

// field is the field of a column in a row.
type field struct {
	offset uintptr // in the row
	typ    reflect.Type
	// decode reads a value that is not NULL. Nil leaves all values to the driver.
	decode decoder
	// nullable is true if the field stays zero for NULL: pointers, slices, dates, and fields marked nullzero.
	nullable bool
}

// decoder decodes a value that is not NULL, in PostgreSQL's binary format, into the field at an address.
type decoder func(src []byte, to unsafe.Pointer) error

// read decodes the values of a row into the zero row at an address.
func (l *layout) read(types *pgtype.Map, values [][]byte, row unsafe.Pointer) error {
	for i := range l.fields {
		f := &l.fields[i]
		to := unsafe.Add(row, f.offset)
		var err error
		switch {
		case values[i] == nil && f.nullable: // stays zero
		case values[i] == nil || f.decode == nil: // the driver returns an error for a NULL that the type cannot hold
			err = types.Scan(l.columns[i].DataTypeOID, l.columns[i].Format, values[i], reflect.NewAt(f.typ, to).Interface())
		default:
			err = f.decode(values[i], to)
		}
		if err != nil {
			return fmt.Errorf("read the column %s: %w", l.columns[i].Name, err)
		}
	}
	return nil
}

// layouts caches the layouts of each row type, a []*layout by its reflect.Type: one for each list of columns that
// queries return for it.
var layouts sync.Map

// layoutOf returns the layout of a row type for columns, from the cache if it is there.
func layoutOf(row reflect.Type, columns []pgconn.FieldDescription) (*layout, error) {
	same := func(l *layout) bool {
		return slices.EqualFunc(l.columns, columns, func(a, b pgconn.FieldDescription) bool {
			return a.DataTypeOID == b.DataTypeOID && a.Format == b.Format && a.Name == b.Name
		})
	}
	cached, _ := layouts.Load(row)
	known, _ := cached.([]*layout)
	if i := slices.IndexFunc(known, same); i >= 0 {
		return known[i], nil
	}

	l, err := newLayout(row, slices.Clone(columns)) // the driver reuses its slice
	if err == nil {
		layouts.Store(row, append(slices.Clip(known), l)) // a layout that a concurrent Store replaces is made again
	}
	return l, err
}

// newLayout creates the layout of a row type for columns. It returns an error if the type has no field for a column.
func newLayout(row reflect.Type, columns []pgconn.FieldDescription) (*layout, error) {
	l := &layout{columns: columns, fields: make([]field, len(columns))}
	if !isModel(row) {
		if len(columns) > 1 {
			return nil, fmt.Errorf("%s takes one column, not %d", row, len(columns))
		}
		for i, column := range columns {
			l.fields[i] = fieldOf(row, 0, column)
		}
		return l, nil
	}
	table := models.Get(row)
	for i, column := range columns {
		f := table.LookupField(column.Name)
		if f == nil {
			return nil, fmt.Errorf("%s has no column %s", table.TypeName, column.Name)
		}
		typ, offset := row, uintptr(0)
		for _, n := range f.Index { // the path through embedded structs
			part := typ.Field(n)
			typ, offset = part.Type, offset+part.Offset
		}
		l.fields[i] = fieldOf(typ, offset, column)
		l.fields[i].nullable = l.fields[i].nullable || f.NullZero
	}
	return l, nil
}

// fieldOf returns how a column is read into a field of type typ at an offset. decode is nil if the driver reads it.
func fieldOf(typ reflect.Type, offset uintptr, column pgconn.FieldDescription) field {
	f := field{offset: offset, typ: typ}
	f.nullable = typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ == dateType
	// Texts are the same bytes in both formats, and pgx requests the text format for them.
	if column.Format != pgtype.BinaryFormatCode && column.DataTypeOID != pgtype.TextOID {
		return f
	}
	if typ.Kind() == reflect.Pointer {
		if value := decoderOf(typ.Elem(), column.DataTypeOID); value != nil {
			f.decode = func(src []byte, to unsafe.Pointer) error {
				target := reflect.New(typ.Elem()).UnsafePointer()
				*(*unsafe.Pointer)(to) = target
				return value(src, target)
			}
		}
		return f
	}
	f.decode = decoderOf(typ, column.DataTypeOID)
	return f
}

var (
	dateType    = reflect.TypeFor[domain.Date]()
	timeType    = reflect.TypeFor[time.Time]()
	textsType   = reflect.TypeFor[[]string]()
	scannerType = reflect.TypeFor[sql.Scanner]()
)

// decoderOf returns the decoder of a PostgreSQL type into a Go type, or nil to leave it to the driver.
func decoderOf(typ reflect.Type, oid uint32) decoder {
	switch {
	case oid == pgtype.UUIDOID && typ.Kind() == reflect.Array && typ.Len() == 16 && typ.Elem().Kind() == reflect.Uint8:
		return decodeUUID
	case oid == pgtype.DateOID && typ == dateType:
		return decodeDate
	case oid == pgtype.TimestamptzOID && typ == timeType:
		return decodeTime
	case oid == pgtype.TextArrayOID && typ == textsType:
		return decodeTexts
	case reflect.PointerTo(typ).Implements(scannerType): // other than those above
		return nil
	case (oid == pgtype.TextOID || oid == pgtype.VarcharOID) && typ.Kind() == reflect.String:
		return decodeText
	case oid == pgtype.BoolOID && typ.Kind() == reflect.Bool:
		return decodeBool
	case oid == pgtype.Float8OID && typ.Kind() == reflect.Float64:
		return decodeFloat
	case typ.Kind() == reflect.Int && (oid == pgtype.Int2OID || oid == pgtype.Int4OID || oid == pgtype.Int8OID):
		return decodeInt
	default:
		return nil
	}
}

func decodeUUID(src []byte, to unsafe.Pointer) error {
	if len(src) != 16 {
		return errLength
	}
	*(*[16]byte)(to) = [16]byte(src)
	return nil
}

func decodeText(src []byte, to unsafe.Pointer) error {
	*(*string)(to) = string(src)
	return nil
}

func decodeBool(src []byte, to unsafe.Pointer) error {
	if len(src) != 1 {
		return errLength
	}
	*(*bool)(to) = src[0] != 0
	return nil
}

func decodeInt(src []byte, to unsafe.Pointer) error {
	switch len(src) {
	case 2:
		*(*int)(to) = int(int16(binary.BigEndian.Uint16(src)))
	case 4:
		*(*int)(to) = int(int32(binary.BigEndian.Uint32(src)))
	case 8:
		*(*int)(to) = int(binary.BigEndian.Uint64(src))
	default:
		return errLength
	}
	return nil
}

func decodeFloat(src []byte, to unsafe.Pointer) error {
	if len(src) != 8 {
		return errLength
	}
	*(*float64)(to) = math.Float64frombits(binary.BigEndian.Uint64(src))
	return nil
}

const (
	// PostgreSQL's epoch is 2000-01-01. epochSeconds is its Unix time, and epochDays the days since 0001-01-01.
	epochSeconds = 946684800
	epochDays    = 730119
)

func decodeTime(src []byte, to unsafe.Pointer) error {
	if len(src) != 8 {
		return errLength
	}
	micros := int64(binary.BigEndian.Uint64(src))
	if micros == math.MaxInt64 || micros == math.MinInt64 {
		return errInfinity
	}
	*(*time.Time)(to) = time.Unix(epochSeconds+micros/1e6, micros%1e6*1e3).UTC()
	return nil
}

func decodeDate(src []byte, to unsafe.Pointer) error {
	if len(src) != 4 {
		return errLength
	}
	days := int32(binary.BigEndian.Uint32(src))
	if days == math.MaxInt32 || days == math.MinInt32 {
		return errInfinity
	}
	*(*domain.Date)(to) = domain.Date{}.AddDays(epochDays + int(days))
	return nil
}

// decodeTexts decodes a text[] of at most one dimension: the number of dimensions, flags and type (4 bytes each), the
// number of elements and the lower bound, and the elements, each after its length. A NULL element is an error.
func decodeTexts(src []byte, to unsafe.Pointer) error {
	if len(src) < 12 {
		return errLength
	}
	dimensions, rest := binary.BigEndian.Uint32(src), src[12:]
	texts := []string{}
	if dimensions > 1 || dimensions == 1 && len(rest) < 8 {
		return errLength
	}
	if dimensions == 1 {
		n := int(binary.BigEndian.Uint32(rest))
		texts, rest = make([]string, 0, min(n, len(rest))), rest[8:]
		for range n {
			if len(rest) < 4 {
				return errLength
			}
			length := int(int32(binary.BigEndian.Uint32(rest)))
			if rest = rest[4:]; length < 0 || length > len(rest) {
				return errLength
			}
			texts, rest = append(texts, string(rest[:length])), rest[length:]
		}
	}
	*(*[]string)(to) = texts
	return nil
}

var (
	errLength   = errors.New("the value has an unexpected length")
	errInfinity = errors.New("the value is infinite")
)
